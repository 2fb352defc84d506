"""Sessions: whose they are, how long they live, and how many there may be."""

from dataclasses import replace

import pytest

from thoughtgate.core.calls import LOCAL, Principal
from thoughtgate.core.errors import Overloaded
from thoughtgate.core.servers import Era
from thoughtgate.sessions import Connected, SessionLimits, Sessions

ANN = Principal(id="ann")
BOB = Principal(id="bob")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions(clock=clock, limits=SessionLimits(cap=3, idle_timeout=100.0, grace=10.0))


def connect(sessions: Sessions, principal: Principal = LOCAL, domain: str = "default") -> Connected:
    newcomer = Connected(
        principal=principal,
        domain=domain,
        version="2025-11-25",
        client={"name": "editor"},
        capabilities={"roots": {}},
    )
    return sessions.open(newcomer)


def test_a_session_is_found_as_it_was_opened(sessions: Sessions) -> None:
    opened = connect(sessions)
    assert sessions.find(opened.id, LOCAL) == opened
    assert opened.capabilities == {"roots": {}}
    session = opened.session(None)
    assert session.era is Era.HANDSHAKE
    assert session.client == {"name": "editor"}
    assert session.capabilities == {"roots": {}}


def test_a_session_may_bring_its_id(sessions: Sessions) -> None:
    opened = sessions.open(replace(connect(sessions), id="mine"))
    assert sessions.find("mine", LOCAL) == opened


def test_ids_are_long_visible_and_never_the_same(sessions: Sessions) -> None:
    ids = {connect(sessions).id for _ in range(3)}
    assert len(ids) == 3
    assert all(len(one) >= 32 and one.isascii() and one.isprintable() for one in ids)


def test_anothers_session_looks_like_none_and_is_left_alone(
    sessions: Sessions, clock: Clock
) -> None:
    anns = connect(sessions, ANN)
    clock.now += 60
    assert sessions.find(anns.id, BOB) is None
    assert sessions.find("no-such-id", BOB) is None
    assert not sessions.close(anns.id, BOB)
    sessions.set_log_level(anns.id, BOB, "debug")
    clock.now += 39
    with sessions.holding(anns.id, BOB):
        clock.now += 2
        assert sessions.find(anns.id, ANN) is None


def test_a_closed_session_is_gone_and_told_of_once(sessions: Sessions) -> None:
    ended: list[str] = []
    stop = sessions.watch(lambda connected: ended.append(connected.id))
    first, second = connect(sessions), connect(sessions)
    assert sessions.close(first.id, LOCAL)
    assert not sessions.close(first.id, LOCAL)
    stop()
    assert sessions.close(second.id, LOCAL)
    assert ended == [first.id]
    assert len(sessions) == 0


def test_a_session_that_rested_too_long_ends(sessions: Sessions, clock: Clock) -> None:
    idle, busy = connect(sessions), connect(sessions)
    clock.now += 60
    assert sessions.find(busy.id, LOCAL)
    clock.now += 40
    assert sessions.find(idle.id, LOCAL) is None
    sessions.expire()
    assert sessions.find(busy.id, LOCAL)
    assert len(sessions) == 1


def test_a_session_with_an_open_stream_does_not_rest(sessions: Sessions, clock: Clock) -> None:
    opened = connect(sessions)
    with sessions.holding(opened.id, LOCAL):
        clock.now += 1000
        sessions.expire()
        assert sessions.find(opened.id, LOCAL)
    clock.now += 99
    assert sessions.find(opened.id, LOCAL)
    clock.now += 100
    assert sessions.find(opened.id, LOCAL) is None


def test_a_session_that_ends_while_it_is_held_stays_ended(sessions: Sessions) -> None:
    opened = connect(sessions)
    with sessions.holding(opened.id, LOCAL):
        sessions.close(opened.id, LOCAL)
    assert sessions.find(opened.id, LOCAL) is None


def test_when_all_seats_are_taken_the_longest_rest_makes_room(
    sessions: Sessions, clock: Clock
) -> None:
    oldest, *others = [connect(sessions) for _ in range(3)]
    clock.now += 11
    for other in others:
        sessions.find(other.id, LOCAL)
    newcomer = connect(sessions)
    assert sessions.find(oldest.id, LOCAL) is None
    assert all(sessions.find(one.id, LOCAL) for one in (*others, newcomer))


def test_nobody_who_is_active_is_put_out_for_a_newcomer(sessions: Sessions, clock: Clock) -> None:
    held, *others = [connect(sessions) for _ in range(3)]
    with sessions.holding(held.id, LOCAL):
        clock.now += 11
        for other in others:
            sessions.find(other.id, LOCAL)
        with pytest.raises(Overloaded):
            connect(sessions)
    assert len(sessions) == 3


def test_a_log_level_is_remembered(sessions: Sessions) -> None:
    opened = connect(sessions)
    assert opened.log_level is None
    sessions.set_log_level(opened.id, LOCAL, "warning")
    found = sessions.find(opened.id, LOCAL)
    assert found is not None
    assert found.log_level == "warning"
