"""Connections whose other end is gone without a word: who notices, and when."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.upstreams import http_server, rig
from tests.support.waiting import until, within
from thoughtgate.core.errors import UpstreamLost
from thoughtgate.core.servers import Era, Sharing
from thoughtgate.testing.fake_host import FakeServer
from thoughtgate.testing.fake_http import Manners, fake_http
from thoughtgate.testing.faults import Faults
from thoughtgate.upstream.http_watch import heard
from thoughtgate.wire.sse import Event

ASKING = 2
"""The kernel's name of the timer that asks a silent peer whether it still lives."""


def timers(port: int) -> list[tuple[int, float]]:
    """Return the kind and the seconds left of each timer of connections to a port of loopback."""
    rows = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    fields = [row.split() for row in rows if row.split()[2] == f"0100007F:{port:04X}"]
    pairs = [field[5].split(":") for field in fields if field[3] == "01"]
    return [(int(kind, 16), int(left, 16) / 100) for kind, left in pairs]


async def test_the_kernel_asks_every_silent_peer_whether_it_still_lives() -> None:
    async with fake_http() as endpoint, rig(http_server(endpoint.url)) as made:
        await made.call("echo")
        found = timers(int(endpoint.url.split(":")[2].partition("/")[0]))
    assert found
    assert {kind for kind, _ in found} == {ASKING}
    assert max(left for _, left in found) <= 20.0


@pytest.mark.parametrize(
    ("era", "on"), [(Era.HANDSHAKE, "GET"), (Era.STATELESS, "subscriptions/listen")]
)
async def test_a_stream_whose_signs_of_life_stop_is_opened_anew(
    era: Era, on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thoughtgate.upstream.http_watch.SHORTEST_SILENCE", 0.05)
    monkeypatch.setattr("thoughtgate.upstream.http_watch.FIRST_PAUSE", 0.05)
    half = {"name": "half_open", "on": on, "times": 1, "count": 3, "seconds": 0.02}
    server = FakeServer(faults=Faults(json.dumps([half])))
    async with (
        fake_http(server) as endpoint,
        rig(http_server(endpoint.url, era=era, sharing=Sharing.SHARED)) as made,
    ):
        await made.call("echo")
        await until(lambda: server.listeners)  # that of the second stream: the first made none
        await server.change()
        await until(lambda: made.listings and "extra0" in made.names())


async def test_a_silent_stream_of_the_older_transport_is_lost_and_the_next_call_opens_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("thoughtgate.upstream.http_watch.SHORTEST_SILENCE", 0.05)
    half = {"name": "half_open", "on": "GET", "times": 1, "count": 3, "seconds": 0.02}
    server = FakeServer(faults=Faults(json.dumps([half])))
    async with (
        fake_http(server, Manners(legacy=True)) as endpoint,
        rig(http_server(endpoint.url, sharing=Sharing.SHARED)) as made,
    ):
        with pytest.raises(UpstreamLost) as caught:
            await within(made.send("hang"))
        assert "fell silent" in caught.value.message
        assert await made.call("echo", {"n": 1}) == {"n": 1}


async def test_a_stream_that_never_showed_a_sign_of_life_may_be_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("thoughtgate.upstream.http_watch.SHORTEST_SILENCE", 0.0)
    async with heard() as pulse:
        pulse.beat([])
        for _ in range(5):
            pulse.beat([Event(data=b"{}")])
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.01)


async def test_a_stream_that_was_silent_for_too_long_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("thoughtgate.upstream.http_watch.SHORTEST_SILENCE", 0.01)

    async def hold() -> None:
        async with heard() as pulse:
            pulse.beat([])
            pulse.beat([])
            await within(asyncio.Event().wait())

    with pytest.raises(UpstreamLost):
        await hold()


async def test_another_timeout_is_not_taken_for_silence() -> None:
    with pytest.raises(TimeoutError):
        async with heard(), asyncio.timeout(0):
            await asyncio.Event().wait()
