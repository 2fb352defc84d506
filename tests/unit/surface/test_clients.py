"""The live side of sessions: whose they are, how they end, and how they outlive a restart."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.fake_gateway import FakeGateway
from tests.support.waiting import within
from thoughtgate.core.calls import LOCAL, Principal
from thoughtgate.core.errors import Overloaded
from thoughtgate.sessions import SessionLimits, Sessions
from thoughtgate.surface.clients import Clients, Running
from thoughtgate.surface.comebacks import LIFETIME, Comebacks
from thoughtgate.surface.mailbox import Changes
from thoughtgate.wire.handshake import Hello
from thoughtgate.wire.messages import Reply

HELLO = Hello(version="2025-11-25", client={"name": "c"}, capabilities={"roots": {}})
KEY = b"k" * 32


class Process:
    """One process of a gateway; `now` is its time of day, and its clock."""

    def __init__(
        self, now: float = 0.0, key: bytes = KEY, cap: int = 10, ended: Path | None = None
    ) -> None:
        self.now = now
        self.gateway = FakeGateway()
        self.sessions = Sessions(clock=lambda: self.now, limits=SessionLimits(cap=cap))
        comebacks = Comebacks(key, clock=lambda: self.now, ended=ended)
        self.clients = Clients(self.gateway, self.sessions, Changes(self.gateway), comebacks)

    def open(self, hello: Hello = HELLO) -> str:
        return self.clients.open(hello, LOCAL, "default").id

    def knows(self, id_: str, principal: Principal = LOCAL, domain: str = "default") -> bool:
        return self.clients.find(id_, principal, domain) is not None


async def test_a_session_that_ends_takes_its_stream_and_its_calls_along() -> None:
    process = Process()
    id_ = process.open()
    found = process.clients.find(id_, LOCAL, "default")
    assert found is not None
    live = found[1]
    reader, running = live.mailbox.attach(), Running(asyncio.create_task(_forever()))
    live.running.add(1, running)
    process.now = 10_000.0
    process.sessions.expire()
    assert await within(reader.take(None)) is None
    assert running.given_up
    assert not process.knows(id_)
    assert process.gateway.left == [live.peer]
    assert process.gateway.left_sessions == [id_]


def test_what_a_client_says_at_length_is_gone_with_its_session() -> None:
    process = Process()

    def said(size: int) -> list[object]:
        hello = [replace(HELLO, client={"name": "c" * size}) for _ in range(2)]
        found = [process.clients.find(process.open(one), LOCAL, "default") for one in hello]
        return [None if one is None else one[0].client for one in found]

    first, second = said(100)
    assert first is second
    first, second = said(10_000)
    assert first is not second


async def _forever() -> None:
    await asyncio.Event().wait()


def test_what_found_nobody_is_said_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    process = Process()
    quiet, loud = process.open(), process.open()
    found = process.clients.find(loud, LOCAL, "default")
    assert found is not None
    found[1].asks.answered(Reply(id="nobody", result=b"{}", value={}))
    for id_ in (quiet, loud):
        process.sessions.close(id_, LOCAL)
    assert len(caplog.records) == 1


def test_a_session_is_nobody_else_s() -> None:
    process = Process()
    id_ = process.open()
    assert process.knows(id_)
    assert not process.knows(id_, Principal(id="other"))
    assert not process.knows(id_, domain="other")
    assert not process.knows("")


def test_a_session_outlives_a_restart() -> None:
    id_ = Process().open()
    after = Process(now=60.0)
    found = after.clients.find(id_, LOCAL, "default")
    assert found is not None
    connected, live = found
    assert (connected.version, connected.client) == (HELLO.version, HELLO.client)
    assert live.session.capabilities == HELLO.capabilities
    assert after.knows(id_)
    assert len(after.sessions) == 1


def test_a_restart_gives_a_session_to_nobody_else() -> None:
    id_ = Process().open()
    after = Process(now=60.0)
    assert not after.knows(id_, Principal(id="other"))
    assert not after.knows(id_, domain="other")
    assert not after.knows(id_[:-1] + ("A" if id_[-1] != "A" else "B"))
    assert not after.knows(id_ + "A")
    assert len(after.sessions) == 0


def test_another_key_or_a_day_ends_a_session() -> None:
    id_ = Process().open()
    assert not Process(key=b"x" * 32).knows(id_)
    assert Process(now=LIFETIME - 1).knows(id_)
    assert not Process(now=LIFETIME).knows(id_)
    assert not Process(now=-1.0).knows(id_)


def test_what_ended_in_this_process_stays_ended() -> None:
    before, after = Process(), Process(now=60.0)
    taken_up, fresh = before.open(), after.open()
    assert after.knows(taken_up)
    for id_ in (taken_up, fresh):
        assert after.sessions.close(id_, LOCAL)
        assert not after.knows(id_)


def test_a_client_that_says_much_gets_a_short_id_and_starts_anew_after_a_restart() -> None:
    id_ = Process().open(replace(HELLO, client={"name": "x" * 5_000}))
    assert len(id_) < 40
    assert not Process().knows(id_)


def test_ids_are_visible_ascii_and_never_the_same() -> None:
    process = Process()
    first, second = process.open(), process.open()
    assert first != second
    assert all(0x21 <= ord(letter) <= 0x7E for letter in first)


def test_a_session_that_comes_back_needs_room_too() -> None:
    id_ = Process().open()
    after = Process(cap=1)
    after.open()
    with pytest.raises(Overloaded):
        after.knows(id_)


def test_a_session_that_its_client_ended_comes_back_in_no_later_process(tmp_path: Path) -> None:
    file = tmp_path / "ended"
    first = Process(ended=file)
    going, staying = first.open(), first.open()
    found = first.clients.find(going, LOCAL, "default")
    assert found is not None
    first.clients.end(found[0])
    assert not first.knows(going)
    later = Process(now=100.0, ended=file)
    assert not later.knows(going)
    assert later.knows(staying)
    assert going not in file.read_text(encoding="ascii")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_of_ended_sessions_that_is_torn_or_cannot_be_used_harms_nobody(
    tmp_path: Path,
) -> None:
    file = tmp_path / "ended"
    file.write_bytes(b"12 \xff\n\n7\n" + b"9 " + b"a" * 32)
    assert Process(ended=file).open()
    nowhere = Process(ended=tmp_path / "none" / "ended")
    found = nowhere.clients.find(nowhere.open(), LOCAL, "default")
    assert found is not None
    nowhere.clients.end(found[0])


def test_only_so_many_ended_sessions_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thoughtgate.surface.ended._MOST", 3)
    file = tmp_path / "ended"
    file.write_text("".join(f"{n} {n:032}\n" for n in range(9)), encoding="ascii")
    Process(now=10.0, ended=file)
    assert file.read_text(encoding="ascii") == "".join(f"{n} {n:032}\n" for n in (6, 7, 8))
