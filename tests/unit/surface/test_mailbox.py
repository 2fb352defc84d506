"""Bells: who is told of a change, once, and who is not."""

import asyncio

from tests.support.fake_gateway import FakeGateway
from tests.support.waiting import within
from thoughtgate.core.calls import LOCAL, Principal
from thoughtgate.sessions import Sessions
from thoughtgate.surface.changes import Changes, Wake
from thoughtgate.surface.clients import Clients, Running
from thoughtgate.wire.handshake import Hello

HELLO = Hello(version="2025-11-25", client={}, capabilities={})


async def test_a_bell_rings_once_for_many_changes() -> None:
    gateway = FakeGateway(("a",))
    bell = Changes(gateway).join("a")
    gateway.add("x").add("y")
    assert await within(bell.wait(5)) is Wake.CHANGED
    assert await bell.wait(0.001) is Wake.SILENCE


async def test_a_bell_hears_its_own_domain_only() -> None:
    gateway = FakeGateway(("a",))
    bell = Changes(gateway).join("b")
    gateway.add("x")
    assert await bell.wait(0.001) is Wake.SILENCE


async def test_a_bell_that_was_left_keeps_its_change_for_the_next_one() -> None:
    gateway = FakeGateway(("a",))
    bell = Changes(gateway).join("a")
    bell.leave()
    gateway.add("x")
    assert await within(bell.wait(5)) is Wake.LEFT
    fresh = Changes(gateway).join("a")
    bell.pass_on(fresh)
    assert await within(fresh.wait(5)) is Wake.CHANGED


async def test_closing_ends_every_wait_and_stops_the_watch() -> None:
    gateway = FakeGateway(("a",))
    changes = Changes(gateway)
    waits = [asyncio.create_task(changes.join("a").wait(None)) for _ in range(2)]
    await asyncio.sleep(0)
    changes.close()
    changes.close()
    assert await within(asyncio.gather(*waits)) == [Wake.CLOSED, Wake.CLOSED]
    assert gateway.watchers == 0
    assert await within(changes.join("a").wait(None)) is Wake.CLOSED


async def test_a_session_that_ends_takes_its_stream_and_its_calls_along() -> None:
    now = [0.0]
    sessions = Sessions(clock=lambda: now[0])
    clients = Clients(sessions, Changes(FakeGateway()))
    connected = clients.open(HELLO, LOCAL, "default")
    found = clients.find(connected.id, LOCAL, "default")
    assert found is not None
    bell, running = found[1].bell, Running(asyncio.create_task(_forever()))
    found[1].running.add(1, running)
    now[0] = 10_000.0
    sessions.expire()
    assert await within(bell.wait(None)) is Wake.CLOSED
    assert running.given_up
    assert clients.find(connected.id, LOCAL, "default") is None


async def _forever() -> None:
    await asyncio.Event().wait()


async def test_a_session_is_nobody_else_s() -> None:
    clients = Clients(Sessions(clock=lambda: 0.0), Changes(FakeGateway()))
    connected = clients.open(HELLO, LOCAL, "default")
    assert clients.find(connected.id, Principal(id="other"), "default") is None
    assert clients.find(connected.id, LOCAL, "other") is None
    assert clients.find("", LOCAL, "default") is None
