"""The catalogue: what all tool servers offer, merged at one revision.

Never connects, never stores, and never lets one bad tool cost another its place.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonObject, JsonValue, canonical, digest, digest_of
from thoughtgate.core.servers import Listing, Server
from thoughtgate.core.tools import Effect, Quarantined, Tool
from thoughtgate.offers import NO_OFFERS, Offers, admit_offers
from thoughtgate.schema.registration import normalise_input
from thoughtgate.wire.headers import ANNOTATION, mirrored

MAX_ADVERTISED = 60
"""Characters of the longest advertised name; providers stop at 64, and clients add to it."""

MAX_DEFINITION = 1_048_576
"""Bytes of the largest tool object, which every client of its domains reads whole."""

_HASH_DIGITS = 10
_MAX_TOOL_NAME = 128
_TOOL_NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{_MAX_TOOL_NAME}}}")
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_HASHED = re.compile(rf"-[0-9a-f]{{{_HASH_DIGITS}}}\Z")
_MIRRORS = ANNOTATION.encode()

_FIELD_TYPES: Mapping[str, type] = {
    "title": str,
    "description": str,
    "annotations": dict,
    "icons": list,
    "execution": dict,
    "_meta": dict,
}
"""Optional fields of a tool object. Strict clients refuse a whole list for one of another type."""

_PHRASES: Mapping[type, str] = {str: "a string", dict: "an object", list: "an array"}

Reject = Callable[[JsonObject], SchemaRejected | None]
"""Says why a schema may not be registered, None when it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one server adds to the catalogue; `warnings` are sentences for an operator."""

    server: str
    tools: tuple[Tool, ...]
    quarantined: tuple[Quarantined, ...] = ()
    warnings: tuple[str, ...] = ()
    offers: Offers = NO_OFFERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What stands of one part in a catalogue: its tools by key, in order of their names.

    `names` are those that clients may see; `digest` tells what all of it lists, checks and allows.
    """

    part: Part
    index: Mapping[tuple[str, str], Tool]
    names: frozenset[str]
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All admitted tools, sorted by server and name; `offers` are what else there is, by server.

    `revision` is `sha256:…` over every definition and everything that an operator said about it,
    so equal revisions list, check and allow the same; it does not depend on who arrived first.
    `index` is keyed by `Tool.key`; `shares` are the same tools by server.
    """

    revision: str
    tools: tuple[Tool, ...]
    quarantined: tuple[Quarantined, ...]
    warnings: tuple[str, ...]
    index: Mapping[tuple[str, str], Tool]
    offers: tuple[Offers, ...] = ()
    shares: tuple[Share, ...] = ()


def safe_name(name: str, *, prefix: str = "") -> str:
    """Return `prefix + name` in `[A-Za-z0-9_-]`, at most 60 characters.

    A name that would lose something gets a hash of the whole as its end, and so does one that
    looks as if it had such an end: so two names are never written alike.
    """
    plain = prefix + name
    exact = len(plain) <= MAX_ADVERTISED and not _FOREIGN.search(plain)
    return plain if exact and not _HASHED.search(plain) else _hashed(plain, (prefix, name))


def advertised_name(server: str, tool: str) -> str:
    """Return the name that clients see, `server__tool`: a pure function of the two.

    The first `__` ends the server's name; a server's name that would blur that is hashed, so `a`
    with `b__c` and `a__b` with `c` differ. Nobody takes the name apart again: calls are routed
    by an exact table.
    """
    if "__" in server or server.endswith("_"):
        return _hashed(f"{server}__{tool}", (server, tool))
    return safe_name(tool, prefix=f"{server}__")


def admit(
    listing: Listing, *, server: Server, effects: Mapping[str, Effect], reject: Reject
) -> Part:
    """Take each tool of a listing on its own: admitted, or quarantined with a reason.

    `effects` holds what the operator said of this server's tools, by their own names.
    """
    tools: list[Tool] = []
    quarantined: list[Quarantined] = []
    names: set[str] = set()
    for position, definition in enumerate(listing.tools):
        name = _name(definition)
        fault = _fault(definition, name, names)
        written = b"" if fault else canonical(definition)
        fault = fault or _size_fault(name, written) or _schema_fault(definition, written, reject)
        names.add(name)
        if fault is None:
            tools.append(_tool(definition, digest_of(written), server, effects.get(name)))
        else:
            held = Quarantined(
                server=server.name, name=name or f"#{position}", rule=fault[0], reason=fault[1]
            )
            quarantined.append(held)
    offers, held_offers = admit_offers(listing, server)
    return Part(
        server=server.name,
        tools=tuple(tools),
        quarantined=(*quarantined, *held_offers),
        warnings=(*listing.warnings, *_differ_only_in_case(tools)),
        offers=offers,
    )


def settled(part: Part, earlier: Part | None) -> Part:
    """Return a part with the very objects of an earlier one where they are equal.

    So what was made of those holds on: nothing is dressed or encoded anew for the same tools.
    """
    if earlier is None or part == earlier:
        return earlier or part
    known = {tool.name: tool for tool in earlier.tools}
    tools = (tool if tool != known.get(tool.name) else known[tool.name] for tool in part.tools)
    offers = earlier.offers if part.offers == earlier.offers else part.offers
    return replace(part, tools=tuple(tools), offers=offers)


def merge(parts: Iterable[Part], *, earlier: Catalog | None = None) -> Catalog:
    """Return the catalogue of all parts. The order of the parts does not matter.

    `earlier` is any older catalogue: what it made of a part that is still the same is taken over.
    """
    known = {share.part.server: share for share in earlier.shares} if earlier else {}
    ordered = sorted(parts, key=lambda part: part.server)
    shares, taken = _apart([_share(part, known.get(part.server)) for part in ordered])
    index: dict[tuple[str, str], Tool] = {}
    for share in shares:
        index.update(share.index)
    return Catalog(
        revision=digest([share.digest for share in shares if share.digest]),
        offers=tuple(part.offers for part in ordered if part.offers.server),
        tools=tuple(index.values()),
        quarantined=(*(held for part in ordered for held in part.quarantined), *taken),
        warnings=tuple(warning for part in ordered for warning in part.warnings),
        index=index,
        shares=tuple(shares),
    )


def _share(part: Part, known: Share | None) -> Share:
    if known is not None and known.part is part:
        return known
    return _shared(part, sorted(part.tools, key=_key))


def _shared(part: Part, tools: Iterable[Tool]) -> Share:
    index = {tool.key: tool for tool in tools}
    listed = [_fingerprint(tool) for tool in index.values()]
    offers = part.offers.fingerprint() if part.offers.server else None
    return Share(
        part=part,
        index=index,
        names=frozenset(advertised_name(*key) for key in index),
        digest=digest([listed, offers]) if listed or offers else "",
    )


def _apart(shares: list[Share]) -> tuple[list[Share], list[Quarantined]]:
    """Hold back tools whose name another one has: a hash met twice, never a silent replacement."""
    names = frozenset[str]().union(*(share.names for share in shares))
    if len(names) == sum(len(share.part.tools) for share in shares):
        return shares, []
    taken: set[str] = set()
    held: list[Quarantined] = []
    left: list[Share] = []
    for share in shares:
        tools: list[Tool] = []
        for tool in sorted(share.part.tools, key=_key):
            name = advertised_name(*tool.key)
            if name in taken:
                held.append(_taken(tool, name))
            else:
                taken.add(name)
                tools.append(tool)
        left.append(_shared(share.part, tools))
    return left, held


def _hashed(plain: str, identity: tuple[str, str]) -> str:
    end = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:_HASH_DIGITS]
    room = MAX_ADVERTISED - _HASH_DIGITS - 1
    return f"{_FOREIGN.sub('_', plain)[:room]}-{end}"


def _name(definition: JsonValue) -> str:
    """Return the name for reports, cut; empty when there is none."""
    name = definition.get("name") if isinstance(definition, Mapping) else None
    return name[: _MAX_TOOL_NAME + 1] if isinstance(name, str) else ""


def _fault(definition: JsonValue, name: str, names: set[str]) -> tuple[str, str] | None:
    """Return the rule that a tool object breaks and the reason; schemas are looked at later."""
    if not isinstance(definition, Mapping):
        return "not_an_object", "a tool must be a JSON object"
    if not _TOOL_NAME.fullmatch(name):
        return "bad_name", "a tool's name must be 1 to 128 characters of A-Z a-z 0-9 _ . -"
    if name in names:
        return "duplicate_name", f"the server lists {name} more than once; the first one counts"
    for field, kind in _FIELD_TYPES.items():
        if definition.get(field) is not None and not isinstance(definition[field], kind):
            return "bad_field", f"{field} of {name} must be {_PHRASES[kind]}"
    return None


def _size_fault(name: str, written: bytes) -> tuple[str, str] | None:
    if len(written) > MAX_DEFINITION:
        return "too_large", f"the definition of {name} is larger than {MAX_DEFINITION} bytes"
    return None


def _schema_fault(definition: JsonObject, written: bytes, reject: Reject) -> tuple[str, str] | None:
    given, produced = definition.get("inputSchema"), definition.get("outputSchema")
    try:
        normalise_input(given)
    except SchemaRejected as verdict:
        return verdict.rule, f"inputSchema{verdict.pointer}: {verdict.message}"
    if produced is not None and not isinstance(produced, Mapping | bool):
        return "bad_output_schema", "outputSchema must be a JSON object"
    for field, schema in (("inputSchema", given), ("outputSchema", produced)):
        rejected = reject(schema) if isinstance(schema, Mapping) else None
        if rejected is not None:
            return rejected.rule, f"{field}{rejected.pointer}: {rejected.message}"
    return _header_fault(given) if _MIRRORS in written else None


def _header_fault(schema: JsonValue) -> tuple[str, str] | None:
    """Return what is wrong with the arguments that are to be mirrored in headers.

    Clients must leave such a tool alone (MCP 2026-07-28, streamable HTTP, custom headers).
    """
    try:
        mirrored(schema)
    except SchemaRejected as rejected:
        return rejected.rule, f"inputSchema{rejected.pointer}: {rejected.message}"
    return None


def _tool(definition: JsonObject, fingerprint: str, server: Server, said: Effect | None) -> Tool:
    return Tool(
        server=server.name,
        name=definition["name"],
        definition=definition,
        digest=fingerprint,
        input_schema=normalise_input(definition.get("inputSchema")),
        output_schema=definition.get("outputSchema"),
        effect=said or _declared_effect(definition, server),
        tags=server.tags,
        results=server.results,
        nulls=server.nulls,
        call_timeout=server.call_timeout,
    )


def _declared_effect(definition: JsonObject, server: Server) -> Effect:
    """Return what the annotations say, if this server is to be believed; anything else writes."""
    annotations = definition.get("annotations")
    if not server.trusted or annotations is None:
        return Effect.WRITE
    if annotations.get("readOnlyHint") is True:
        return Effect.READ
    return Effect.IDEMPOTENT if annotations.get("idempotentHint") is True else Effect.WRITE


def _differ_only_in_case(tools: Iterable[Tool]) -> Iterable[str]:
    first: dict[str, str] = {}
    for tool in tools:
        twin = first.setdefault(tool.name.casefold(), tool.name)
        if twin != tool.name:
            yield f"tools {twin} and {tool.name} of {tool.server} differ only in case"


def _key(tool: Tool) -> tuple[str, str]:
    return tool.key


def _taken(tool: Tool, name: str) -> Quarantined:
    return Quarantined(
        server=tool.server,
        name=tool.name,
        rule="name_taken",
        reason=f"another tool is already advertised as {name}",
    )


def _fingerprint(tool: Tool) -> JsonValue:
    return [
        *tool.key,
        tool.digest,
        tool.effect,
        sorted(tool.tags),
        tool.results,
        tool.nulls,
        tool.call_timeout,
    ]
