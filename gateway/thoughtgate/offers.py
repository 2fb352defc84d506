"""What a server lists beside its tools: prompts, resources and resource templates.

Never fetches anything, and never lets one bad object cost another its place.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from thoughtgate.core.json import JsonObject, JsonValue, canonical, digest
from thoughtgate.core.servers import Listing, Server
from thoughtgate.core.tools import Offer, Quarantined

MAX_OFFER = 262_144
"""Bytes of the largest prompt, resource or template object."""

_MAX_SHOWN = 128
_MAX_NAME = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """What one server offers beside tools, in its own order.

    `serves_resources` says that it declared resources, so it may have some that it does not list;
    `extensions` are those that it declared, by their names.
    """

    server: str = ""
    prompts: tuple[Offer, ...] = ()
    resources: tuple[Offer, ...] = ()
    templates: tuple[Offer, ...] = ()
    serves_resources: bool = False
    extensions: JsonObject = field(default_factory=dict)
    tags: frozenset[str] = frozenset()
    call_timeout: float = 120.0

    def fingerprint(self) -> JsonValue:
        """Return what tells these offers from others, as JSON."""
        return [
            self.server,
            [one.digest for one in self.prompts],
            [one.digest for one in self.resources],
            [one.digest for one in self.templates],
            self.serves_resources,
            self.extensions,
            sorted(self.tags),
            self.call_timeout,
        ]


NO_OFFERS = Offers()


def admit_offers(listing: Listing, server: Server) -> tuple[Offers, tuple[Quarantined, ...]]:
    """Take each object of a listing on its own: admitted, or quarantined with a reason."""
    held: list[Quarantined] = []
    declared = listing.capabilities
    extensions = declared.get("extensions")
    offers = Offers(
        server=server.name,
        prompts=_admitted(listing.prompts, "prompt", ("name",), server, held),
        resources=_admitted(listing.resources, "resource", ("uri", "name"), server, held),
        templates=_admitted(listing.templates, "template", ("uriTemplate", "name"), server, held),
        serves_resources=isinstance(declared.get("resources"), Mapping),
        extensions=extensions if isinstance(extensions, Mapping) else {},
        tags=server.tags,
        call_timeout=server.call_timeout,
    )
    return offers, tuple(held)


def _admitted(
    listed: Iterable[JsonObject],
    what: str,
    wanted: tuple[str, ...],
    server: Server,
    held: list[Quarantined],
) -> tuple[Offer, ...]:
    found: dict[str, Offer] = {}
    for position, definition in enumerate(listed):
        name: JsonValue = definition.get(wanted[0])
        fault = _fault(definition, what, wanted)
        if fault is None and name in found:
            fault = "duplicate_name", f"the server lists this {what} twice; the first one counts"
        if fault is None:
            found[name] = Offer(
                server=server.name,
                name=name,
                definition=definition,
                digest=digest(definition),
                tags=server.tags,
                call_timeout=server.call_timeout,
            )
        else:
            shown = name[:_MAX_SHOWN] if isinstance(name, str) and name else f"#{position}"
            held.append(
                Quarantined(
                    server=server.name, name=f"{what} {shown}", rule=fault[0], reason=fault[1]
                )
            )
    return tuple(found.values())


def _fault(definition: JsonObject, what: str, wanted: tuple[str, ...]) -> tuple[str, str] | None:
    for member in wanted:
        value = definition.get(member)
        if not isinstance(value, str) or not value or len(value) > _MAX_NAME:
            return "bad_name", f"{member} of a {what} must be a string of 1 to {_MAX_NAME}"
    if len(canonical(definition)) > MAX_OFFER:
        return "too_large", f"the object is larger than {MAX_OFFER} bytes"
    return None
