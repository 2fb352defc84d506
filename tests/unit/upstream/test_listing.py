"""Listing tools from a server that never comes to an end in one way or another."""

from collections.abc import Callable, Sequence

import pytest

from thoughtgate.core.calls import Call
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.upstream.listing import MAX_BYTES, MAX_TOOLS, list_all
from thoughtgate.upstream.ports import Counts, Peer
from thoughtgate.wire.messages import Reply
from thoughtgate.wire.strict import dumps


class Endless:
    """A link to a server whose every page names a next one."""

    def __init__(self, **tool: object) -> None:
        self.peer = Peer(era=Era.HANDSHAKE, version="", server_info={}, capabilities={})
        self.counts = Counts()
        self.lost = False
        self.asked = 0
        self._tools = [{"name": f"t{number}", **tool} for number in range(300)]

    async def request(self, method: str, params: JsonObject) -> bytes:
        self.asked += 1
        return dumps({"tools": self._tools, "nextCursor": str(self.asked)})

    @property
    def questions(self) -> int:
        raise NotImplementedError

    async def subscribe(self, uri: str) -> None:
        raise NotImplementedError

    async def unsubscribe(self, uris: Sequence[str]) -> None:
        raise NotImplementedError

    def tell(self, method: str, params: JsonObject) -> None:
        raise NotImplementedError

    async def call(self, call: Call) -> Reply:
        raise NotImplementedError

    async def watch(self, changed: Callable[[str], None]) -> str:
        raise NotImplementedError

    async def aclose(self) -> None:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("server", "word"),
    [(Endless(), str(MAX_TOOLS)), (Endless(description="x" * 50_000), str(MAX_BYTES))],
    ids=["many", "large"],
)
async def test_a_list_ends_at_its_limits_with_a_warning(server: Endless, word: str) -> None:
    listing = await list_all("far", server, 5.0)
    assert word in listing.warnings[0]
    assert server.asked < 10
    assert len(listing.tools) == min(MAX_TOOLS, server.asked * 300)
