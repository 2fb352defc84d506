"""The tool servers of a gateway with several workers: each child runs in one of them, for all.

Never opens a socket for a gateway of one process.
"""

import math

from thoughtgate.core.servers import Listing, UpstreamStatus
from thoughtgate.core.workers import Crew
from thoughtgate.upstream.door import Door, House
from thoughtgate.upstream.hurry import Hurry
from thoughtgate.upstream.neighbour import Neighbours

GRACE = 5.0
"""Seconds that the other workers may still need our servers when this one ends by itself."""


class CrewServers:
    """One worker's part: the door to its own servers, and its way to those of the others."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.neighbours = Neighbours(crew) if crew.count > 1 else None
        self._door: Door | None = None

    async def open(self, house: House) -> None:
        """Let the other workers in."""
        if self.neighbours is not None:
            self._door = Door(self.crew.door(self.crew.index), house)
            await self._door.open()

    def heard(self, listing: Listing) -> None:
        """Tell the other workers what a discovery found."""
        if self._door is not None:
            self._door.heard(listing)

    def stands(self, status: UpstreamStatus) -> None:
        """Tell the other workers how a server fares."""
        if self._door is not None:
            self._door.stands(status)

    async def aclose(self, hurry: Hurry) -> None:
        """Want nothing of the others any more, wait until they want nothing either, and close.

        All of them are told to stop at once, and some still have calls to end.
        """
        if self.neighbours is not None:
            await self.neighbours.aclose()
        if self._door is not None:
            alone = math.isinf(hurry.until)  # nobody has said by when all must be over
            await hurry.wait(self._door.left(), GRACE if alone else math.inf)
            await self._door.aclose()
