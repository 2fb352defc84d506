"""When a server's lists are read again: when it says so, and now and then when it would not say."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from tests.support.waiting import until
from thoughtgate.core.calls import Call
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era, Listing
from thoughtgate.testing.values import make_server
from thoughtgate.upstream.lister import LONGEST_GAP, RELIST_GAP, Lister, gap
from thoughtgate.upstream.ports import Counts, Peer
from thoughtgate.wire.messages import Reply


@dataclass
class Shelf:
    """A link to a server that lists what it is given."""

    capabilities: JsonObject
    asked: int = 0
    counts: Counts = field(default_factory=Counts)
    lost: bool = False
    questions: int = 0

    def __post_init__(self) -> None:
        self.peer = Peer(
            era=Era.HANDSHAKE,
            version="2025-11-25",
            server_info={},
            capabilities=self.capabilities,
        )

    async def request(self, method: str, params: JsonObject) -> bytes:
        self.asked += method == "tools/list"
        key = method.split("/")[-2].replace("templates", "resourceTemplates")
        return json.dumps({key: []}).encode()

    async def call(self, call: Call) -> Reply:
        raise NotImplementedError

    async def subscribe(self, uri: str) -> None:
        raise NotImplementedError

    async def unsubscribe(self, uris: Sequence[str]) -> None:
        raise NotImplementedError

    def tell(self, method: str, params: JsonObject) -> None:
        raise NotImplementedError

    async def watch(self, changed: object) -> str:
        raise NotImplementedError

    async def aclose(self) -> None:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("capabilities", "asks_again"),
    [
        ({}, True),
        ({"tools": {}}, True),
        ({"tools": {"listChanged": False}}, True),
        ({"tools": {"listChanged": True}}, False),
        ({"tools": {"listChanged": True}, "prompts": {}}, True),
        ({"tools": {"listChanged": True}, "resources": {"listChanged": True}}, False),
    ],
)
async def test_lists_whose_changes_are_not_announced_are_read_again_now_and_then(
    capabilities: JsonObject, asks_again: bool
) -> None:
    link = Shelf(capabilities)
    heard: list[Listing] = []
    lister = Lister(make_server("s"), heard.append, recheck=0.001)
    await lister.read(link)
    keeping = asyncio.ensure_future(lister.keep(link))
    try:
        if asks_again:
            await until(lambda: link.asked > 1)
        else:
            lister.changed("tools")
            await until(lambda: link.asked == 2)
            assert len(heard) == 2
    finally:
        keeping.cancel()


def test_a_long_list_that_changes_all_the_time_leaves_most_of_the_time_to_others() -> None:
    assert gap(0.001) == RELIST_GAP
    assert gap(1.0) == 5.0
    assert gap(60.0) == LONGEST_GAP
