"""Two workers of one gateway in this process, with real sockets between them and real children."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.support.upstreams import Rig, rig
from tests.support.waiting import within
from thoughtgate.core.servers import Server
from thoughtgate.core.workers import Crew
from thoughtgate.upstream.door import Door, House
from thoughtgate.upstream.neighbour import Neighbours


@contextmanager
def crew_folder() -> Iterator[Path]:
    """Give a folder for sockets, whose paths may have a hundred letters only."""
    folder = Path(tempfile.mkdtemp(prefix="tg"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@dataclass
class Crewed:
    """A server that worker `own` runs, and worker `far` reaches through it.

    `known` is what the owner reads when it looks at the registry again.
    """

    own: Rig
    far: Rig
    crew: Crew
    known: tuple[Server, ...]
    neighbours: Neighbours
    settled: int = 0
    door: Door = field(init=False)

    async def open(self) -> None:
        """Let the other worker in."""
        house = House(upstreams=self.own.upstreams, look=self._look, settle=self._settle)
        self.door = Door(self.crew.door(self.crew.index), house)
        await self.door.open()

    async def _look(self) -> None:
        await self.own.upstreams.apply(self.known)

    async def _settle(self) -> None:
        self.settled += 1


@asynccontextmanager
async def crewed(*servers: Server, **options: Any) -> AsyncIterator[Crewed]:
    """Run two workers over `servers`, the first of which belongs to the first worker."""
    with crew_folder() as folder:
        owner = Crew(count=2).owner(servers[0].name)
        crew = Crew(index=owner, count=2, sockets=folder)
        neighbours = Neighbours(replace(crew, index=1 - owner))
        async with (
            rig(*servers, **options) as own,
            aclosing(neighbours),
            rig(*servers, **options, neighbours=neighbours) as far,
        ):
            pair = Crewed(own=own, far=far, crew=crew, known=servers, neighbours=neighbours)
            await pair.open()
            own.guests = pair.door
            try:
                yield pair
            finally:
                await within(pair.door.aclose())
