"""The desk of the admin API: what its operations share over registry, keeper and upstreams.

Never starts, changes or registers a command: those are for who sits at the machine.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict, TypeVar

from thoughtgate.app.colleagues import NOBODY, Colleagues
from thoughtgate.app.compose import App
from thoughtgate.config.files import Loaded
from thoughtgate.registry.store import Registry
from thoughtgate.sessions import Sessions
from thoughtgate.surface.admin_route import Ask, Match
from thoughtgate.surface.admin_values import WorkerState

T = TypeVar("T")


class Part(TypedDict):
    """Which part of a list was asked for."""

    cursor: str
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Serves the admin API; belongs to the gateway's event loop. `started` is a Unix time."""

    app: App
    sessions: Sessions
    environ: Mapping[str, str]
    others: Colleagues = NOBODY
    started: float = field(default_factory=time.time)
    verifying: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def flush(self) -> None:
        """Have all audit rows written that were made so far, by any worker."""
        await self.app.audit.flush()
        await self.others.flush()

    def worker(self) -> WorkerState:
        """Return how this worker fares."""
        return WorkerState(
            index=self.app.crew.index,
            pid=os.getpid(),
            calls=self.app.slots.ever,
            running=self.app.slots.running,
            sessions=len(self.sessions),
            tasks=len(asyncio.all_tasks()),
        )

    @property
    def loaded(self) -> Loaded:
        """Return the settings in force."""
        return self.app.keeper.loaded

    async def revision(self) -> int:
        """Return where the registry stands."""
        return await asyncio.to_thread(self.app.registry.revision)

    async def read(self, reading: Callable[[Loaded, Registry], T]) -> T:
        """Return what `reading` finds, once the gateway has taken what others changed."""
        await self.app.keeper.refresh()
        return await asyncio.to_thread(reading, self.loaded, self.app.registry)

    async def change(self, match: Match, changing: Callable[[Registry], T]) -> T:
        """Let `changing` read, decide and write as if nobody else did, and apply it at once.

        Raises:
            Conflict: The registry is not as the writer saw it.
            GateError: As `changing` says; nothing was changed.
        """
        done = await asyncio.to_thread(self._changed, match, changing)
        await self.app.keeper.refresh()
        await self.others.refresh()
        return done

    def _changed(self, match: Match, changing: Callable[[Registry], T]) -> T:
        registry = self.app.registry
        if match.revision is not None:
            return changing(registry.at(match.revision))
        return registry.decide(changing)


def part_of(ask: Ask) -> Part:
    """Return which part of a list was asked for."""
    return Part(cursor=ask.query.cursor, limit=ask.query.limit)
