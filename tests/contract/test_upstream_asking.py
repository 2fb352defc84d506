"""The SDK's own server on every kind of link: what it offers beside tools, asks and tells."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.support.bridge_server import NOTE, BridgePeer
from tests.support.callers import Client
from tests.support.sdk_sse import sdk_over_sse, serving
from tests.support.upstreams import Rig, http_server, rig, stdio_server
from tests.support.waiting import until, within
from thoughtgate.core.calls import Retry
from thoughtgate.core.servers import Era, Sharing
from thoughtgate.core.tools import Kind
from thoughtgate.wire.input_required import read_input_required

pytestmark = pytest.mark.asyncio(loop_scope="module")
"""The peers start once for all tests of this module: importing the SDK takes a second."""

ALL = [
    *((transport, era) for transport in ("stdio", "http") for era in Era),
    ("sse", Era.HANDSHAKE),
]
RED = {"action": "accept", "content": {"colour": "red"}}


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=ALL, ids=lambda case: f"{case[0]}-{case[1]}"
)
async def peer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Rig]:
    transport, era = request.param
    if transport == "stdio":
        diary = tmp_path_factory.mktemp("diary") / "of"
        argv = ("tests.support.bridge_server", "stdio", str(diary))
        async with rig(stdio_server(*argv, era=era, sharing=Sharing.SESSION)) as made:
            yield made
    elif transport == "sse":
        async with sdk_over_sse(BridgePeer().server) as url, rig(http_server(url)) as made:
            yield made
    else:
        async with (
            serving(BridgePeer().server.streamable_http_app()) as origin,
            rig(http_server(f"{origin}/mcp", era=era)) as made,
        ):
            yield made


async def test_what_it_offers_beside_tools_is_listed(peer: Rig) -> None:
    listing = await within(peer.upstreams.discover("peer"), 10.0)
    assert [prompt["name"] for prompt in listing.prompts] == ["greet"]
    assert NOTE in {resource["uri"] for resource in listing.resources}
    assert {"prompts", "resources", "completions"} <= set(listing.capabilities)


async def answered(client: Client, peer: Rig, **fields: Any) -> Any:
    """Send a call that asks, and in the stateless era once more with the answers."""
    call = client.make("survey", **fields)
    result = await within(peer.upstreams.send(call))
    if result.final:
        return json.loads(result.raw)
    asked = read_input_required(result.raw, "peer")
    answers = dict.fromkeys(asked.questions, RED)
    retry = Retry(answers=answers, state=asked.state)
    again = client.make("survey", **fields, retry=retry)
    result = await within(peer.upstreams.send(again))
    assert result.final
    return json.loads(result.raw)


async def test_its_questions_are_answered_in_the_way_of_its_era(peer: Rig) -> None:
    era = (await within(peer.upstreams.discover("peer"), 10.0)).era
    client = Client("a1", answers={"elicitation/create": RED})
    survey = await answered(client, peer)
    assert survey["structuredContent"]["colour"]["content"] == {"colour": "red"}
    assert len(client.questions) == (1 if era is Era.HANDSHAKE else 0)


async def test_a_resource_is_read_followed_and_told_of(peer: Rig) -> None:
    client = Client("a2")
    other = Client("a3")
    read = await client.ask_for(peer, Kind.RESOURCE, NOTE)
    assert read["contents"][0]["uri"] == NOTE
    await other.call(peer, "state")
    await client.ask_for(peer, Kind.SUBSCRIBE, NOTE)
    for _ in range(20):
        await client.call(peer, "write", {"text": "new"})
        if client.told:
            break
    await until(lambda: client.told)
    assert client.told[0] == ("notifications/resources/updated", {"uri": NOTE})
    assert other.told == []
    await client.ask_for(peer, Kind.UNSUBSCRIBE, NOTE)


async def test_what_is_being_typed_is_completed(peer: Rig) -> None:
    argument = {"argument": {"name": "who", "value": "a"}}
    done = await Client("a4").ask_for(peer, Kind.PROMPT_COMPLETION, "greet", argument)
    assert "values" in done["completion"]


@pytest.mark.parametrize(
    "peer",
    [("stdio", Era.HANDSHAKE), ("stdio", Era.STATELESS), ("http", Era.HANDSHAKE)],
    indirect=True,
    ids=str,
    scope="module",
)
async def test_what_it_remembers_of_a_session_stays_in_it(peer: Rig) -> None:
    one, two = Client("a5"), Client("a6")
    await one.call(peer, "remember", {"text": "mine"})
    await two.call(peer, "remember", {"text": "other"})
    assert await one.call(peer, "remember") == {"before": "mine"}
