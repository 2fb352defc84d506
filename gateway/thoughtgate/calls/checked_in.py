"""The stage that holds arguments against the tool's true input schema.

Never repairs anything but a null for an optional property, and that only where the server's
policy says so.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import replace

from thoughtgate.calls.altered import altered
from thoughtgate.calls.snapshot import Snapshot
from thoughtgate.core.calls import Call, Result, Source
from thoughtgate.core.errors import InvalidArguments
from thoughtgate.core.json import JsonObject
from thoughtgate.core.ports import Next
from thoughtgate.core.problems import Problem
from thoughtgate.core.servers import NullPolicy
from thoughtgate.core.tools import Tool
from thoughtgate.schema.checks import Check, compiled
from thoughtgate.schema.explain import Report, arguments_report
from thoughtgate.schema.repair import drop_nulls
from thoughtgate.views import Entry

_UNEXPLAINED = Problem(
    pointer="",
    keyword="schema",
    expected="arguments that go together",
    got_type="object",
    got_preview="",
)
"""Where what was sent fits only without what the domain adds to it."""


def checked_in(call: Call, call_next: Next, *, snapshot: Snapshot) -> Awaitable[Result]:
    """Pass on arguments that fit, repaired of nulls where the policy allows it.

    An engine is told of its nulls instead: it can learn, a client's program cannot.

    Raises:
        InvalidArguments: They do not fit; `problems` say where and what to do.
    """
    tool = call.target
    if not isinstance(tool, Tool):
        return call_next(call)  # only tools have a schema
    check = compiled(tool.digest + "#in", tool.input_schema)
    if check.is_valid(call.arguments):
        return call_next(call)
    policy = tool.nulls
    if policy is NullPolicy.DROP and call.source is Source.ENGINE:
        policy = NullPolicy.REJECT
    if policy is not NullPolicy.REJECT:
        repaired, dropped = drop_nulls(call.arguments, tool.input_schema, check)
        if dropped and check.is_valid(repaired):
            return _mended(call, call_next, repaired, dropped)
    raise _invalid(call, check, snapshot)


async def _mended(
    call: Call, call_next: Next, repaired: JsonObject, dropped: Sequence[str]
) -> Result:
    """Send the call without its nulls, or with them where the server is said to bear them."""
    if call.tool.nulls is NullPolicy.PASS:
        verb = "passed"
    else:
        verb, call = "repaired", altered(call, arguments=repaired)
    result = await call_next(call)
    notes = tuple(f"{verb}:{pointer}" for pointer in dropped)
    return replace(result, notes=(*result.notes, *notes))


def _invalid(call: Call, check: Check, snapshot: Snapshot) -> InvalidArguments:
    """Return what to tell the caller, who must not learn of arguments that its domain hides."""
    entry = snapshot.entry(call)
    report = check.report(call.arguments)
    if entry is not None and entry.fixed:
        report = _without_hidden(call, entry) or Report(problems=(_UNEXPLAINED,))
    text, data = arguments_report(
        call.advertised, report.problems, digest=call.tool.digest, truncated=report.truncated
    )
    return InvalidArguments(message=text, problems=report.problems, data=data)


def _without_hidden(call: Call, entry: Entry) -> Report | None:
    """Hold what the client sent against what it was shown; None when that fits."""
    check = compiled(entry.digest + "#in", entry.visible)
    given = {name: value for name, value in call.arguments.items() if name not in entry.fixed}
    return None if check.is_valid(given) else check.report(given)
