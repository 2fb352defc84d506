"""Runs and events for tests of the journal."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

from thoughtgate.core.errors import StoreError
from thoughtgate.core.journal import Entry, Event, NewRun
from thoughtgate.registry.journal import JournalLimits, RunJournal
from thoughtgate.registry.journal_read import find_run
from thoughtgate.registry.store import Registry

QUICK = JournalLimits(linger=0.001, retry=0.01, lease=30.0)


def make_run(uid: str = "run-1", principal: str = "local", parent: str = "") -> NewRun:
    """Return a run of nobody in particular."""
    return NewRun(uid=uid, engine="react", principal=principal, domain="default", parent=parent)


def head_of(registry: Registry, uid: str = "run-1") -> int:
    """Return how many events of a run are committed, 0 when it is not there."""
    found = find_run(registry.database, uid)
    return 0 if found is None else found.head


def make_events(count: int, start: int = 1) -> list[Event]:
    """Return events that can be told apart."""
    return [Event("noted", {"n": n}, f"e{n}") for n in range(start, start + count)]


def numbers(entries: Iterable[Entry]) -> list[int]:
    """Return what `make_events` counted."""
    return [entry.event.body["n"] for entry in entries]


@asynccontextmanager
async def open_journal(
    registry: Registry, limits: JournalLimits = QUICK, owner: str = ""
) -> AsyncIterator[RunJournal]:
    """Give a journal that is closed at the end."""
    journal = RunJournal(registry, owner=owner, limits=limits)
    try:
        yield journal
    finally:
        with suppress(StoreError):
            await journal.aclose()
