"""Servers whose resources have the same URIs: no client ever gets one for the other.

Through a real gateway; a server may also claim the very URIs by which the gateway tells them apart.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.gate import ROOT, START, Gate, gated, home, server_table
from tests.support.http_peer import HttpPeer
from tests.support.old_client import OldClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

TALKER = ROOT / "tests" / "support" / "hostile_talker.py"
NAMES = ("one", "two")


def talker(name: str, scheme: str = "many", era: str = "handshake") -> str:
    told = ("--resources", 2, "--scheme", scheme, "--label", f"from {name}", "--era", era)
    own = {"era": era, "sharing": "session"}
    return server_table(name, sys.executable, "-S", "-E", TALKER, *told, **own)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gate]:
    settings = (
        talker("one")
        + talker("two", era="stateless")
        + talker("sly", "thoughtgate+one:many")
        + talker("alone", "only")
        + '[domains.narrow]\ninclude = ["one/*", "alone/*"]\n'
    )
    async with gated(home(tmp_path_factory.mktemp("home"), settings)) as gateway:
        yield gateway


async def read(client: OldClient, uri: str) -> Any:
    answer = await client.ask("resources/read", uri=uri)
    if "error" in answer:
        return answer["error"]["code"]
    [contents] = answer["result"]["contents"]
    assert contents["uri"] == uri
    return contents["text"]


async def uris(client: OldClient) -> list[str]:
    return [one["uri"] for one in (await client.ask("resources/list"))["result"]["resources"]]


async def test_each_uri_is_shown_once_and_leads_to_its_own_server(running: Gate) -> None:
    client = await OldClient.open(running.url())
    shown = await uris(client)
    assert len(shown) == len(set(shown)) == 8
    for uri in shown:
        said = await read(client, uri)
        owner = "alone" if uri.startswith("only:") else uri.partition("+")[2].partition(":")[0]
        assert said == f"from {owner}", uri
    # what two could mean is nobody's, and so is what names a server that is not there
    for uri in (
        "many:0",
        "thoughtgate+none:many:0",
        "thoughtgate+sly:many:0:0",
        "thoughtgate+one:",
    ):
        assert await read(client, uri) not in {"from one", "from two"}, uri
    newer = await HttpPeer(running.url()).ask(
        "resources/read", {"uri": "many:0"}, headers={"mcp-name": "many:0"}
    )
    assert newer.error["code"] in {-32602, -32002}
    await client.leave()


async def test_a_domain_without_the_other_servers_shows_and_reads_plain_uris(
    running: Gate,
) -> None:
    client = await OldClient.open(running.url("narrow"))
    assert set(await uris(client)) == {"many:0", "many:1", "only:0", "only:1"}
    assert await read(client, "many:0") == "from one"
    assert await read(client, "thoughtgate+two:many:0") in {-32602, -32002}
    await client.leave()


@pytest.mark.parametrize("server", NAMES)
async def test_uris_in_results_are_those_that_the_client_can_read(
    running: Gate, server: str
) -> None:
    client = await OldClient.open(running.url())
    result = (await client.call(f"{server}__embed"))["result"]
    embedded, link, text = result["content"]
    own = f"thoughtgate+{server}:many:0"
    assert embedded["resource"] == {"uri": own, "text": "many:0"}
    assert link["uri"] == own
    assert text["text"] == result["structuredContent"]["uri"] == "many:0"
    assert await read(client, embedded["resource"]["uri"]) == f"from {server}"
    await client.leave()


async def test_a_change_is_told_under_the_uri_that_was_subscribed_to(running: Gate) -> None:
    client = await OldClient.open(running.url())
    standing = await client.listen()
    own = "thoughtgate+one:many:0"
    assert (await client.ask("resources/subscribe", uri=own))["result"] == {}
    await client.call("sly__update")
    await client.call("one__update")
    told: list[str] = []
    while not told or told[-1] != own:
        message = await standing.message()
        if message["method"] == "notifications/resources/updated":
            told.append(message["params"]["uri"])
    assert told in ([own], [f"thoughtgate+sly:{own}", own])
    await client.leave()
    client.drop()


async def test_a_server_that_comes_later_takes_no_uri_over(tmp_path: Path) -> None:
    place = home(tmp_path, talker("one"))
    async with gated(place) as gateway:
        client = await OldClient.open(gateway.url())
        assert await read(client, "many:0") == "from one"
        text = place.config.read_text(encoding="utf-8")
        place.config.write_text(text + talker("two"), encoding="utf-8")
        gateway.process.send_signal(1)
        async with asyncio.timeout(START):
            while len(await uris(client)) != 4:
                pass
        assert await read(client, "many:0") in {-32602, -32002}
        for name in NAMES:
            assert await read(client, f"thoughtgate+{name}:many:0") == f"from {name}"
        await client.leave()
