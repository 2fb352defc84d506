"""One server's lists: read when its shared connection opens, and again whenever they changed.

Never reads them for one client: what is listed is what everybody may see.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from thoughtgate.core.errors import UpstreamError
from thoughtgate.core.servers import Listing, Server
from thoughtgate.upstream.listing import ALL, list_all
from thoughtgate.upstream.ports import Link

_log = logging.getLogger(__name__)

RELIST_GAP = 0.5
"""Seconds between two listings of a server that keeps announcing changes."""

LONGEST_GAP = 30.0
"""The same where a listing takes long: a long list costs its time again and again."""

RECHECK = 300.0
"""Seconds after which lists are read again whose changes the server does not announce."""

_REST = 5
_ANNOUNCED = ("tools", "prompts", "resources")
_SHARE = 6
"""The part of a server's time for starting that one of its lists beside the tools may take."""


class Lister:
    """Keeps a server's newest listing; `on_listing` takes each."""

    def __init__(
        self,
        server: Server,
        on_listing: Callable[[Listing], None],
        *,
        recheck: float = RECHECK,
    ) -> None:
        self.newest: Listing | None = None
        self._recheck = recheck
        self._server = server
        self._on_listing = on_listing
        self._stale = asyncio.Event()
        self._which: set[str] = set()

    def changed(self, which: str) -> None:
        """Learn that a list has changed, or any where it is not said; it is read again soon."""
        self._which.add(which)
        self._stale.set()

    async def read(self, link: Link, which: frozenset[str] = ALL) -> Listing:
        """Read lists now; the others are what they were, unless something was wrong with them.

        Raises:
            UpstreamError: The tools cannot be listed.
        """
        if self.newest is not None and self.newest.warnings:
            which = ALL
        patience = self._server.start_timeout / _SHARE
        listing = await list_all(self._server.name, link, patience, self.newest, which)
        self.newest = listing
        self._on_listing(listing)
        return listing

    async def keep(self, link: Link) -> None:
        """Read the lists again whenever they changed, until cancelled."""
        while True:
            await self._until_stale()
            self._stale.clear()
            which, self._which = self._which, set()
            begun = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(self._server.start_timeout):
                    await self.read(link, ALL if "" in which else frozenset(which) or ALL)
            except (UpstreamError, TimeoutError) as error:
                _log.warning(
                    "server %s: its changed lists cannot be read: %s", self._server.name, error
                )
            took = asyncio.get_running_loop().time() - begun
            await asyncio.sleep(gap(took))

    async def _until_stale(self) -> None:
        """Return when a list has changed, or may have by now, unheard."""
        announces = self.newest is not None and _announces(self.newest)
        try:
            async with asyncio.timeout(None if announces else self._recheck):
                await self._stale.wait()
        except TimeoutError:
            return


def gap(took: float) -> float:
    """Return the seconds to wait after a listing that took so many: most of the time is rest."""
    return min(max(RELIST_GAP, took * _REST), LONGEST_GAP)


def _announces(listing: Listing) -> bool:
    """Tell whether a server says when any of the lists that it declares changes."""
    declared = [listing.capabilities.get(name) for name in _ANNOUNCED]
    kinds = [one for one in declared if isinstance(one, Mapping)]
    return bool(kinds) and all(one.get("listChanged") is True for one in kinds)
