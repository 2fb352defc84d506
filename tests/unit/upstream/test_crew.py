"""A worker's own servers stay for as long as the other workers have calls to end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.callers import Client
from tests.support.crews import crew_folder
from tests.support.upstreams import fake_stdio, rig
from tests.support.waiting import until, within
from thoughtgate.core.errors import UpstreamLost
from thoughtgate.core.servers import Era, Sharing
from thoughtgate.core.workers import ALONE, Crew
from thoughtgate.upstream.crew import CrewServers
from thoughtgate.upstream.door import House
from thoughtgate.upstream.hurry import Hurry

SERVER = fake_stdio(era=Era.HANDSHAKE, sharing=Sharing.SESSION)
ASK: dict[str, Any] = {"method": "elicitation/create", "params": {"message": "?"}}
YES = {"action": "accept", "content": {}}


@dataclass
class Two:
    """Two workers, a call of the second at a server of the first, and a client that thinks."""

    own: CrewServers
    far: CrewServers
    call: "asyncio.Future[Any]"
    client: Client


async def nothing() -> None:
    """Read nothing, and have nothing to settle."""


@asynccontextmanager
async def asking() -> AsyncIterator[Two]:
    owner = Crew(count=2).owner(SERVER.name)
    with crew_folder() as folder:
        own, far = (
            CrewServers(Crew(index=index, count=2, sockets=folder)) for index in (owner, 1 - owner)
        )
        async with rig(SERVER) as here, rig(SERVER, neighbours=far.neighbours) as there:
            for servers, one in ((own, here), (far, there)):
                await servers.open(House(upstreams=one.upstreams, look=nothing, settle=nothing))
            client = Client(answers={"elicitation/create": YES})
            client.gate = asyncio.Event()
            call = asyncio.ensure_future(client.call(there, "ask", ASK))
            await until(lambda: client.questions)
            try:
                yield Two(own=own, far=far, call=call, client=client)
            finally:
                for servers in (far, own):
                    await within(servers.aclose(_over()))


def _over() -> Hurry:
    hurry = Hurry()
    hurry.within(0)
    return hurry


async def test_a_call_of_another_worker_ends_before_its_server_does() -> None:
    async with asking() as two:
        closing = asyncio.ensure_future(two.own.aclose(Hurry()))
        await asyncio.wait([closing], timeout=0.1)
        assert not two.call.done()
        assert two.client.gate is not None
        two.client.gate.set()
        assert (await within(two.call))["result"] == YES
        assert not closing.done()
        await two.far.aclose(Hurry())
        await within(closing)


async def test_a_worker_that_is_in_a_hurry_waits_for_no_call() -> None:
    async with asking() as two:
        await within(two.own.aclose(_over()))
        with pytest.raises(UpstreamLost):
            await within(two.call)


async def test_a_gateway_of_one_process_has_no_door() -> None:
    async with rig(SERVER) as made:
        alone = CrewServers(ALONE)
        await alone.open(House(upstreams=made.upstreams, look=nothing, settle=nothing))
        assert alone.neighbours is None
        await alone.aclose(Hurry())
