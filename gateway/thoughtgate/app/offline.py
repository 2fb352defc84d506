"""What a domain shows by what the registry remembers, without starting a server.

Never opens a connection.
"""

from thoughtgate.app.admission import part_of, remembered
from thoughtgate.app.entries import shown_servers
from thoughtgate.app.reasoning import BUILT_IN_SERVER, built_in_listing, with_engine
from thoughtgate.catalog import Catalog, merge
from thoughtgate.config.files import Loaded
from thoughtgate.core.domains import Domain
from thoughtgate.registry.store import Registry
from thoughtgate.views import View, build


def offline_catalog(loaded: Loaded, registry: Registry) -> Catalog:
    """Return the catalogue of the enabled servers as they were last seen, with our own tools."""
    own = built_in_listing(loaded.settings)
    parts = [part_of(own, BUILT_IN_SERVER, loaded, registry)]
    for server in shown_servers(loaded, registry):
        listing = remembered(server, registry) if server.enabled else None
        if listing is not None:
            parts.append(part_of(listing, server, loaded, registry))
    return merge(parts)


def offline_view(catalog: Catalog, domain: Domain) -> View:
    """Return what clients of a domain would be shown."""
    return build(with_engine(domain), catalog)
