"""Listings become catalogue parts: each schema judged once, its verdict remembered.

Blocking, and milliseconds a new schema: call it from a thread.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib import metadata

from thoughtgate.app.entries import all_effects
from thoughtgate.catalog import Part, admit
from thoughtgate.config.files import Loaded
from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonObject, digest
from thoughtgate.core.servers import Era, Listing, Server
from thoughtgate.core.tools import Effect
from thoughtgate.registry.store import Registry
from thoughtgate.registry.verdicts import Verdict
from thoughtgate.schema import registration
from thoughtgate.wire.strict import dumps

CHECKER = "/".join(map(metadata.version, ("thoughtgate", "jsonschema", "jsonschema-rs")))
"""What gave a verdict: with other rules or another engine it is asked for again."""


_Basis = tuple[bytes, Server, Mapping[str, Effect]]
"""What a part depends on, beside the rules of the checker."""


def part_of(listing: Listing, server: Server, loaded: Loaded, registry: Registry) -> Part:
    """Return the tools of a listing, admitted or quarantined.

    Raises:
        StoreError: The registry cannot be used.
    """
    return _admitted(listing, server, all_effects(loaded, registry, server.name), registry)


class Parts:
    """The parts of a running gateway: one is made anew only when what it is made of has changed.

    Not for two threads at once.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._made: dict[str, tuple[_Basis, Part]] = {}

    def of(self, listing: Listing, server: Server, loaded: Loaded) -> Part:
        """Return what `part_of` does.

        Raises:
            StoreError: The registry cannot be used.
        """
        effects = all_effects(loaded, self._registry, server.name)
        basis = (_said(listing), server, effects)
        made = self._made.get(server.name)
        if made is None or made[0] != basis:
            made = basis, _admitted(listing, server, effects, self._registry)
            self._made[server.name] = made
        return made[1]

    def drop(self, server: str) -> None:
        """Forget the part of a server."""
        self._made.pop(server, None)


def remembered(server: Server, registry: Registry) -> Listing | None:
    """Return the listing that the registry recorded last, None when there is none."""
    tools = registry.known_tools(server.name)
    listing = registry.with_known_offers(
        Listing(server=server.name, tools=tools, era=Era.HANDSHAKE, version="", server_info={})
    )
    return listing if tools or listing.capabilities else None


def _admitted(
    listing: Listing, server: Server, effects: Mapping[str, Effect], registry: Registry
) -> Part:
    digests = {id(schema): digest(schema) for schema in _schemas(listing)}
    schemas = {digests[id(schema)]: schema for schema in _schemas(listing)}
    known = dict(registry.verdicts(schemas, checker=CHECKER))
    new = {key: _judged(schema) for key, schema in schemas.items() if key not in known}
    registry.put_verdicts(new, checker=CHECKER)
    known.update(new)

    def reject(schema: JsonObject) -> SchemaRejected | None:
        verdict = known[digests[id(schema)]]
        if verdict.ok:
            return None
        return SchemaRejected(rule=verdict.rule, message=verdict.reason)

    return admit(listing, server=server, effects=effects, reject=reject)


def _said(listing: Listing) -> bytes:
    """Return what tells the lists of a listing from others, byte for byte."""
    lists = [listing.tools, listing.prompts, listing.resources, listing.templates]
    return sha256(dumps([*lists, listing.capabilities, listing.warnings])).digest()


def _schemas(listing: Listing) -> Iterator[JsonObject]:
    for tool in listing.tools:
        if isinstance(tool, dict):
            for field in ("inputSchema", "outputSchema"):
                if isinstance(tool.get(field), dict):
                    yield tool[field]


def _judged(schema: JsonObject) -> Verdict:
    try:
        registration.admit(schema)
    except SchemaRejected as rejected:
        return Verdict(rule=rejected.rule, reason=rejected.message)
    return Verdict()
