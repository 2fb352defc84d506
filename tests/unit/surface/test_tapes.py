"""Tapes: what can be told again, for how long, and within which bounds."""

import asyncio

from tests.support.waiting import within
from thoughtgate.surface.tapes import (
    KEEP,
    MOST_BYTES,
    MOST_EACH,
    MOST_EVENTS,
    MOST_TAPES,
    Shelf,
    Tape,
)
from thoughtgate.wire.sse import EventParser

MIB = 1024 * 1024


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def begun(shelf: Shelf, session: str = "s") -> Tape:
    tape = shelf.begin(session)
    assert tape is not None
    return tape


def ids(data: bytes) -> list[str | None]:
    return [event.id for event in EventParser(cap=2**26).feed(data)]


def test_an_event_is_found_by_its_id_and_what_came_later_follows() -> None:
    shelf = Shelf(Clock())
    tape = begun(shelf)
    (primed,) = ids(tape.prime())
    (first,) = ids(tape.record(b"1"))
    second = tape.record(b"2")
    assert primed is not None
    assert first is not None
    found = shelf.find("s", first)
    assert found == (tape, 1)
    assert tape.since(1) == [(2, second)]
    start = shelf.find("s", primed)
    assert start is not None
    assert [number for number, _ in tape.since(start[1])] == [1, 2]


def test_a_tape_belongs_to_its_session() -> None:
    shelf = Shelf(Clock())
    (id_,) = ids(begun(shelf).record(b"1"))
    assert id_ is not None
    assert shelf.find("other", id_) is None
    for wrong in ("", ".", id_ + "x", id_.replace(".", ""), "x.1", id_ + "²"):
        assert shelf.find("s", wrong) is None, wrong


def test_a_tape_is_kept_for_a_minute_after_its_end() -> None:
    clock = Clock()
    shelf = Shelf(clock)
    tape = begun(shelf)
    (id_,) = ids(tape.record(b"1"))
    assert id_ is not None
    clock.now = 1000.0
    assert shelf.find("s", id_)
    shelf.end("s", tape)
    clock.now += KEEP - 1
    assert shelf.find("s", id_)
    clock.now += 1
    assert shelf.find("s", id_) is None
    assert shelf.size == 0


def test_a_long_stream_loses_its_oldest_events() -> None:
    shelf = Shelf(Clock())
    tape = begun(shelf)
    for number in range(MOST_EVENTS + 5):
        tape.record(b"%d" % number)
    kept = [number for number, _ in tape.since(0)]
    assert kept == list(range(6, MOST_EVENTS + 6))
    assert shelf.size == tape.size == sum(len(event) for _, event in tape.since(0))


def test_a_session_never_keeps_more_than_its_bytes() -> None:
    shelf = Shelf(Clock())
    ended, tape = begun(shelf), begun(shelf)
    ended.record(b"x" * MIB)
    shelf.end("s", ended)
    for _ in range(9):
        tape.record(b"x" * MIB)
        assert shelf.size <= MOST_EACH
    assert ended.since(0) == [] or shelf.size <= MOST_EACH
    assert [number for number, _ in tape.since(0)] == [7, 8, 9]
    tape.record(b"x" * (MOST_EACH + 1))
    assert tape.since(0) == []
    assert shelf.size == 0


def test_all_sessions_together_keep_no_more_than_their_bytes() -> None:
    shelf = Shelf(Clock())
    first = begun(shelf, "first")
    (id_,) = ids(first.record(b"x" * 3 * MIB))
    assert id_ is not None
    shelf.end("first", first)
    for number in range(30):
        begun(shelf, str(number)).record(b"x" * 3 * MIB)
        assert shelf.size <= MOST_BYTES
    assert shelf.find("first", id_) is None


def test_a_session_has_only_so_many_tapes_and_those_that_ended_make_room() -> None:
    shelf = Shelf(Clock())
    tapes = [begun(shelf) for _ in range(MOST_TAPES)]
    assert shelf.begin("s") is None
    shelf.end("s", tapes[3])
    assert shelf.begin("s") is not None
    assert shelf.begin("s") is None


def test_a_session_that_is_gone_keeps_nothing() -> None:
    shelf = Shelf(Clock())
    live, ended = begun(shelf), begun(shelf)
    live.record(b"1")
    ended.record(b"2")
    shelf.end("s", ended)
    shelf.forget("s")
    assert live.ended
    assert shelf.size == 0
    live.record(b"3")
    shelf.end("s", live)
    assert shelf.size == 0
    assert [number for number, _ in live.since(0)] == [1]


async def test_the_newest_follower_gets_the_rest() -> None:
    tape = begun(Shelf(Clock()))
    older = tape.follow()
    waiting = asyncio.create_task(tape.after(0, older, 5))
    await asyncio.sleep(0)
    newer = tape.follow()
    assert await within(waiting) is None
    event = tape.record(b"1")
    assert await within(tape.after(0, newer, 5)) == [(1, event)]
    assert await tape.after(1, newer, 0.001) == []
    tape.end()
    assert await within(tape.after(1, newer, 5)) is None


async def test_a_made_up_number_of_an_event_waits_as_long_as_any_other() -> None:
    """Each event that is not for it once cost a level of the stack."""
    tape = begun(Shelf(Clock()))
    waiting = asyncio.create_task(tape.after(10**9, tape.follow(), 5))
    for _ in range(2_000):
        tape.record(b"1")
        await asyncio.sleep(0)
    tape.end()
    assert await within(waiting) is None


def test_a_stream_that_begins_after_its_session_has_ended_leaves_nothing() -> None:
    """A call that is given up because its session ends begins its stream only to end it."""
    clock = Clock()
    shelf = Shelf(clock)
    for number in range(3):
        session = f"s{number}"
        shelf.forget(session)
        shelf.end(session, begun(shelf, session))
    clock.now = KEEP
    begun(shelf, "other")
    assert (len(shelf), shelf.size) == (1, 0)
