"""What a domain shows by what the registry remembers, without starting a server.

Never opens a connection.
"""

from thoughtgate.app.admission import part_of, remembered
from thoughtgate.app.entries import all_servers
from thoughtgate.catalog import Catalog, merge
from thoughtgate.config.files import Loaded
from thoughtgate.registry.store import Registry


def offline_catalog(loaded: Loaded, registry: Registry) -> Catalog:
    """Return the catalogue of the enabled servers as they were last seen."""
    parts = []
    for server in all_servers(loaded, registry):
        listing = remembered(server, registry) if server.enabled else None
        if listing is not None:
            parts.append(part_of(listing, server, loaded, registry))
    return merge(parts)
