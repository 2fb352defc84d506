"""The stage that finds what a call means: one look into the domain's table.

Never takes a name apart, and never tells a hidden tool from a missing one.
"""

from collections.abc import Awaitable
from itertools import islice

from thoughtgate.calls.altered import altered
from thoughtgate.calls.snapshot import Snapshot
from thoughtgate.core.calls import Call, ItemName, Result
from thoughtgate.core.errors import UnknownTarget
from thoughtgate.core.ports import Next
from thoughtgate.core.tools import Item, Kind
from thoughtgate.engines.names import nearest

_CALLED = {
    Kind.PROMPT: "prompt",
    Kind.RESOURCE: "resource",
    Kind.SUBSCRIBE: "resource",
    Kind.UNSUBSCRIBE: "resource",
    Kind.PROMPT_COMPLETION: "prompt",
    Kind.RESOURCE_COMPLETION: "resource template",
    Kind.METHOD: "method",
}
_COMPARED = 300
"""Names that are compared with one that is not there: it takes time that others wait for."""


def resolved(call: Call, call_next: Next, *, snapshot: Snapshot) -> Awaitable[Result]:
    """Put what is meant and its true arguments into the call.

    Raises:
        UnknownTarget: The domain shows nothing such, or there is no such domain.
        InvalidArguments: The client sent an argument that the domain hides.
    """
    if isinstance(call.target, ItemName):
        item = snapshot.found(call)
        if not isinstance(item, Item):
            raise UnknownTarget(name=call.target.name, kind=_CALLED[call.target.kind])
        arguments = snapshot.view(call.domain).offered.true_arguments(item, call.arguments)
        return call_next(
            altered(call, target=item, advertised=call.target.name, arguments=arguments)
        )
    entry = snapshot.entry(call)
    if entry is None:
        raise unknown(call.target.name, call.domain, snapshot)
    return call_next(
        altered(
            call,
            target=entry.tool,
            advertised=entry.name,
            arguments=entry.to_true(call.arguments),
        )
    )


def unknown(name: str, domain: str, snapshot: Snapshot) -> UnknownTarget:
    """Return the error for a tool that a domain does not show, with similar ones that it shows."""
    shown = snapshot.view(domain).table if domain in snapshot.domains else {}
    return UnknownTarget(
        name=name,
        hint=_hint(snapshot.gone.get(domain, {}).get(name)),
        nearest=nearest(name, islice(shown, _COMPARED)),
    )


def _hint(revision: str | None) -> str:
    """Say so when the client has seen the tool here before: its list is out of date."""
    if revision is None:
        return ""
    return f"it was removed at catalogue revision {revision[:19]}, list the tools again"
