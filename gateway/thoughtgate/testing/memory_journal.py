"""A journal in memory, for tests of whoever writes runs. Never keeps anything after its process.

Several journals over one `MemoryRuns` are several gateways on one registry. What is not settled is
seen by nobody, and `crash` loses it.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from thoughtgate.core.errors import Conflict, Missing, RunTaken
from thoughtgate.core.journal import Entry, Event, Level, NewRun, RunKey, RunStatus, Taken


class MemoryRuns:
    """What is kept of all runs."""

    def __init__(self) -> None:
        self.kept: dict[str, _Kept] = {}


@dataclass(slots=True, kw_only=True)
class _Kept:
    run: NewRun
    status: RunStatus = RunStatus.OPEN
    epoch: int = 1
    driver: "MemoryJournal | None" = None
    entries: list[Entry] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Driven:
    """A run as its driver sees it, with what is not settled yet."""

    epoch: int
    head: int
    new: NewRun | None = None
    pending: list[Entry] = field(default_factory=list)
    status: RunStatus | None = None
    ended: bool = False


class MemoryJournal:
    """The `Journal` of one process."""

    def __init__(self, runs: MemoryRuns | None = None) -> None:
        self._runs = runs or MemoryRuns()
        self._driven: dict[str, _Driven] = {}

    def create(self, run: NewRun) -> RunKey:
        """Begin a run of a new `uid`."""
        if run.uid in self._driven:
            raise Conflict(message=f"the run {run.uid} is there already")
        self._driven[run.uid] = _Driven(epoch=1, head=0, new=run)
        return RunKey(run.uid, 1)

    def append(
        self,
        key: RunKey,
        events: Sequence[Event],
        level: Level = Level.LAZY,
        status: RunStatus | None = None,
    ) -> int:
        """Keep events back until they are settled, or at once where `level` says so.

        Raises:
            RunTaken: The run is another's now, or has been paused or finished.
        """
        driven = self._mine(key)
        if driven.ended:
            raise _taken(key.uid)
        now = time.time_ns()
        driven.pending += [Entry(driven.head + n, now, one) for n, one in enumerate(events, 1)]
        driven.head += len(events)
        driven.status = status or driven.status
        driven.ended = status not in {None, RunStatus.OPEN}
        if level is not Level.LAZY:
            self._keep(key, driven)
        return driven.head

    async def settled(self, key: RunKey, level: Level = Level.COMMITTED) -> None:
        """Keep what was appended; here all levels are as good.

        Raises:
            RunTaken: The run is another's now, and what was appended is lost.
        """
        self._keep(key, self._mine(key))
        kept = self._runs.kept[key.uid]
        if kept.epoch != key.epoch:
            raise _taken(key.uid)

    async def take(self, uid: str) -> Taken:
        """Take over a run whose driver crashed or left it.

        Raises:
            Missing: There is no such run.
            Conflict: It is finished, or somebody drives it.
        """
        kept = self._runs.kept.get(uid)
        if kept is None:
            raise Missing(message=f"there is no run {uid[:80]}")
        if kept.status is RunStatus.FINISHED or kept.driver is not None:
            raise Conflict(message=f"the run {uid} is finished or driven by another gateway")
        kept.epoch, kept.driver = kept.epoch + 1, self
        self._driven[uid] = _Driven(epoch=kept.epoch, head=len(kept.entries))
        return Taken(
            key=RunKey(uid, kept.epoch),
            run=kept.run,
            status=kept.status,
            entries=tuple(kept.entries),
        )

    def crash(self) -> None:
        """Lose what is not settled, and let go of all runs; this journal may still try to write."""
        for driven in self._driven.values():
            driven.pending.clear()
        for kept in self._runs.kept.values():
            if kept.driver is self:
                kept.driver = None

    def _mine(self, key: RunKey) -> _Driven:
        driven = self._driven.get(key.uid)
        if driven is None or driven.epoch != key.epoch:
            raise _taken(key.uid)
        return driven

    def _keep(self, key: RunKey, driven: _Driven) -> None:
        """Keep what is pending, unless somebody else has the run; `settled` tells."""
        if driven.new is not None:
            made = _Kept(run=driven.new, driver=self)
            if self._runs.kept.setdefault(key.uid, made) is not made:
                raise _taken(key.uid)
            driven.new = None
        kept = self._runs.kept[key.uid]
        pending, driven.pending = driven.pending, []
        if kept.epoch != key.epoch:
            return
        kept.entries += pending
        kept.status, driven.status = driven.status or kept.status, None
        if driven.ended:
            kept.driver = None


def _taken(uid: str) -> RunTaken:
    return RunTaken(message=f"the run {uid} was taken over by another gateway")
