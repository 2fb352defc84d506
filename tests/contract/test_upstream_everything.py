"""The everything server of npm on a connection of a client's own, over its three transports."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.callers import Client
from tests.support.peer_process import everything_over
from tests.support.peers import environment, everything
from tests.support.upstreams import Rig, http_server, rig
from tests.support.waiting import until, within
from thoughtgate.core.servers import Server, Sharing, StdioTransport
from thoughtgate.core.tools import Kind

ANSWERS: dict[str, Any] = {
    "elicitation/create": {"action": "decline"},
    "sampling/createMessage": {
        "role": "assistant",
        "model": "m",
        "content": {"type": "text", "text": "a poem"},
    },
    "roots/list": {"roots": [{"uri": "file:///mine", "name": "mine"}]},
}


@pytest.fixture(params=["stdio", "streamableHttp", "sse"])
async def peer(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    if request.param == "stdio":
        transport = StdioTransport(argv=tuple(everything()), env={"PATH": environment()["PATH"]})
        async with rig(Server(name="peer", transport=transport, sharing=Sharing.SESSION)) as made:
            yield made
    else:
        with everything_over(request.param) as url:
            async with rig(http_server(url)) as made:
                yield made


async def said(client: Client, peer: Rig, name: str, arguments: dict[str, Any]) -> str:
    result = await within(peer.upstreams.send(client.make(name, arguments, timeout=20.0)), 20.0)
    return result.raw.decode()


async def test_all_that_it_offers_is_listed_and_what_it_asks_is_answered(peer: Rig) -> None:
    listing = await within(peer.upstreams.discover("peer"), 20.0)
    names = {tool["name"] for tool in listing.tools}
    assert {"echo", "get-sum"} <= names
    assert {"trigger-elicitation-request", "trigger-sampling-request", "get-roots-list"} <= names
    assert listing.prompts
    assert listing.resources
    assert listing.templates
    assert listing.warnings == ()

    client = Client(answers=ANSWERS)
    assert "declined" in await said(client, peer, "trigger-elicitation-request", {})
    assert "a poem" in await said(client, peer, "trigger-sampling-request", {"prompt": "x"})
    assert "file:///mine" in await said(client, peer, "get-roots-list", {})
    assert {question.method for question in client.questions} == set(ANSWERS)

    uri = listing.resources[0]["uri"]
    read = await client.ask_for(peer, Kind.RESOURCE, uri)
    assert read["contents"][0]["uri"] == uri
    prompt = await client.ask_for(peer, Kind.PROMPT, listing.prompts[0]["name"])
    assert prompt["messages"]

    other = Client("s2")
    await said(other, peer, "echo", {"message": "x"})
    await client.ask_for(peer, Kind.SUBSCRIBE, uri)
    await said(client, peer, "toggle-subscriber-updates", {})
    await until(lambda: any(params == {"uri": uri} for _, params in client.told))
    assert (other.questions, other.told) == ([], [])
