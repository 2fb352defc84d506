"""The journal of runs: what a run did, event by event, and who may go on writing it.

Never says what an event means: a run's state is a fold over its events, which is the runner's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple, Protocol

from thoughtgate.core.json import JsonObject


class Level(IntEnum):
    """How safe something shall be: soon, from a crash of the process, from one of the machine."""

    LAZY = 0
    COMMITTED = 1
    SYNCED = 2


class RunStatus(StrEnum):
    """How a run stands; only `OPEN` is driven by somebody, and `FINISHED` stays."""

    OPEN = "open"
    PAUSED = "paused"
    AWAITING = "awaiting_input"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """What never changes in a run.

    `parent` is the run that this one is a branch of, from the event `forked_from` on; with
    `forked_from` 0 it is the run that started this one.
    """

    uid: str
    engine: str
    principal: str
    domain: str
    parent: str = ""
    forked_from: int = 0


class RunKey(NamedTuple):
    """The right to write to a run; of no use once another has taken the run over."""

    uid: str
    epoch: int


class Event(NamedTuple):
    """What happened. `effect` is the id of the effect that it belongs to, empty for none."""

    kind: str
    body: JsonObject
    effect: str = ""


class Entry(NamedTuple):
    """An event at its place: 1, 2, … without gaps. `at_ns` (`time.time_ns()`) is information."""

    seq: int
    at_ns: int
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A run that was taken over, and all that happened in it so far."""

    key: RunKey
    run: NewRun
    status: RunStatus
    entries: tuple[Entry, ...]


class Journal(Protocol):
    """Keeps the events of runs, each run with one writer. Used from one event loop."""

    def create(self, run: NewRun) -> RunKey:
        """Begin a run of a new `uid` and return the right to write to it; it is kept soon."""
        ...

    def append(
        self,
        key: RunKey,
        events: Sequence[Event],
        level: Level = Level.LAZY,
        status: RunStatus | None = None,
    ) -> int:
        """Queue events, all or none of which are kept, and return the last one's `seq`.

        A `status` other than `OPEN` ends the right to write: whoever goes on takes the run anew.

        Raises:
            RunTaken: The run is another's now; nothing may be done for it any more.
            StoreError: The queue is full, or the journal closed; nothing was queued.
            Overloaded: An event is too large; nothing was queued.
        """
        ...

    async def settled(self, key: RunKey, level: Level = Level.COMMITTED) -> None:
        """Wait until all that was appended to a run is as safe as `level` and its own say.

        Raises:
            RunTaken: The run is another's now, and what was appended may be lost.
            StoreError: It could not be kept yet; it stays queued and is tried again.
        """
        ...

    async def take(self, uid: str) -> Taken:
        """Take over an unfinished run that nobody drives; who drove it can write no more.

        Raises:
            Missing: There is no such run.
            Conflict: It is finished, or somebody drives it.
            StoreError: It cannot be read.
        """
        ...
