"""Listings become catalogue parts: each schema judged once, its verdict remembered.

Blocking, and milliseconds a new schema: call it from a thread.
"""

from collections.abc import Iterator
from importlib import metadata

from thoughtgate.app.entries import all_effects
from thoughtgate.catalog import Part, admit
from thoughtgate.config.files import Loaded
from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonObject, digest
from thoughtgate.core.servers import Era, Listing, Server
from thoughtgate.registry.store import Registry
from thoughtgate.registry.verdicts import Verdict
from thoughtgate.schema import registration

CHECKER = "/".join(map(metadata.version, ("thoughtgate", "jsonschema", "jsonschema-rs")))
"""What gave a verdict: with other rules or another engine it is asked for again."""


def part_of(listing: Listing, server: Server, loaded: Loaded, registry: Registry) -> Part:
    """Return the tools of a listing, admitted or quarantined.

    Raises:
        StoreError: The registry cannot be used.
    """
    schemas = {digest(schema): schema for schema in _schemas(listing)}
    known = dict(registry.verdicts(schemas, checker=CHECKER))
    new = {key: _judged(schema) for key, schema in schemas.items() if key not in known}
    registry.put_verdicts(new, checker=CHECKER)
    known.update(new)

    def reject(schema: JsonObject) -> SchemaRejected | None:
        verdict = known[digest(schema)]
        if verdict.ok:
            return None
        return SchemaRejected(rule=verdict.rule, message=verdict.reason)

    effects = all_effects(loaded, registry, server.name)
    return admit(listing, server=server, effects=effects, reject=reject)


def remembered(server: Server, registry: Registry) -> Listing | None:
    """Return the listing that the registry recorded last, None when there is none."""
    tools = registry.known_tools(server.name)
    listing = registry.with_known_offers(
        Listing(server=server.name, tools=tools, era=Era.HANDSHAKE, version="", server_info={})
    )
    return listing if tools or listing.capabilities else None


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
