"""`/healthz` and `/readyz` over a probe that tests hold in their hands."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.support.fake_gateway import FakeGateway
from tests.support.http_peer import HttpPeer
from tests.support.mcp_faces import SETTINGS, serving
from tests.support.waiting import until, within
from thoughtgate.surface.health import ALIVE, READY, Health, Readiness, Unready
from thoughtgate.surface.http_io import Refusal

WELL = Readiness(servers=3, answered=1, idle=1, failed=1)


class Probe:
    """A probe that waits until it is let go."""

    def __init__(self, found: Readiness = WELL) -> None:
        self.found = found
        self.asked = 0
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self) -> Readiness:
        self.asked += 1
        await self.go.wait()
        return self.found


async def told(health: Health, path: str = READY, method: str = "GET") -> tuple[int, Any]:
    sent: list[Any] = []

    async def send(event: Any) -> None:
        sent.append(event)

    await within(health.answer(path, method, send))
    return sent[0]["status"], json.loads(sent[1]["body"])


async def test_a_ready_gateway_says_how_many_servers_answered_and_names_none() -> None:
    status, body = await told(Health(Probe()))
    counts = {"servers": 3, "answered": 1, "idle": 1, "starting": 0, "failed": 1}
    assert (status, body) == (200, {"status": "ready", **counts})


@pytest.mark.parametrize("reason", ["starting", "registry", "servers"])
async def test_a_gateway_that_is_not_ready_says_why(reason: str) -> None:
    status, body = await told(Health(Probe(Readiness(servers=1, unready=Unready(reason)))))
    assert (status, body["status"], body["reason"]) == (503, "not ready", reason)
    assert body["message"]


async def test_a_gateway_that_stops_is_not_ready_and_asks_nobody() -> None:
    probe = Probe()
    health = Health(probe)
    health.stop()
    status, body = await told(health)
    assert (status, body["reason"], probe.asked) == (503, "stopping", 0)
    assert await told(health, ALIVE) == (200, {"status": "ok"})


async def test_a_gateway_that_is_told_to_stop_while_it_asks_is_not_ready() -> None:
    probe = Probe()
    probe.go.clear()
    health = Health(probe)
    asking = asyncio.create_task(told(health))
    await until(lambda: probe.asked)
    health.stop()
    probe.go.set()
    status, body = await within(asking)
    assert (status, body["reason"]) == (503, "stopping")


async def test_many_who_ask_at_once_share_one_probe_and_so_do_those_who_come_soon_after() -> None:
    probe = Probe()
    probe.go.clear()
    health = Health(probe, memory=3600)
    asking = [asyncio.create_task(told(health)) for _ in range(20)]
    await until(lambda: probe.asked)
    probe.go.set()
    assert {status for status, _ in await within(asyncio.gather(*asking))} == {200}
    await told(health)
    assert probe.asked == 1


async def test_an_answer_that_is_too_old_is_asked_for_again() -> None:
    probe = Probe()
    health = Health(probe, memory=0)
    await told(health)
    probe.found = Readiness(servers=1, failed=1, unready=Unready.SERVERS)
    assert (await told(health))[0] == 503


async def test_one_who_gives_up_takes_the_answer_from_nobody_else() -> None:
    probe = Probe()
    probe.go.clear()
    health = Health(probe)
    leaving, staying = (asyncio.create_task(told(health)) for _ in range(2))
    await until(lambda: probe.asked)
    leaving.cancel()
    await asyncio.wait([leaving])
    probe.go.set()
    assert (await within(staying))[0] == 200


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
async def test_other_methods_are_refused(method: str) -> None:
    with pytest.raises(Refusal) as refused:
        await told(Health(None), READY, method)
    assert refused.value.status == 405


async def test_both_paths_are_served_to_get_and_head_but_to_no_foreign_page() -> None:
    settings = replace(SETTINGS, probe=Probe(Readiness(unready=Unready.STARTING)))
    async with serving(FakeGateway(), settings) as url:
        peer = HttpPeer(url)
        for path, status in ((ALIVE, 200), (READY, 503)):
            assert (await peer.send("GET", path)).status == status
            head = await peer.open()
            head[1].write(peer.head("HEAD", path, None, {}))
            whole = await within(head[0].read())
            head[1].close()
            assert whole.startswith(b"HTTP/1.1 %d" % status)
            assert whole.endswith(b"\r\n\r\n")
            for foreign in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
                assert (await peer.send("GET", path, headers=foreign)).status in {403, 421}


async def test_a_worker_that_says_nothing_is_told_of_by_the_others() -> None:
    """All who ask meanwhile or soon after share one look."""
    asked: list[tuple[int, ...]] = []

    async def silent() -> tuple[int, ...]:
        asked.append((1, 3))
        return asked[-1]

    health = Health(None, silent)
    answers = await asyncio.gather(*(told(health, ALIVE) for _ in range(3)))
    assert answers == [(503, {"status": "hung", "workers": [1, 3]})] * 3
    assert len(asked) == 1
