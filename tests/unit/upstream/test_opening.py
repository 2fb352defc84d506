"""Opening a link: what a server's refusal of a version leads to."""

import json

import pytest

from tests.support.raw_http import Wire, raw_http
from tests.support.upstreams import http_server, rig
from tests.support.waiting import within
from thoughtgate.core.errors import UpstreamUnreachable
from thoughtgate.core.servers import Era

NEW = "2026-07-28"
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [NEW],
    "capabilities": {},
    "ttlMs": 0,
    "cacheScope": "private",
}


class Picky:
    """A server that refuses the first greetings, naming the versions that it says it speaks."""

    def __init__(self, refusals: int, supported: list[str]) -> None:
        self.refusals = refusals
        self.supported = supported
        self.methods: list[str] = []

    async def serve(self, wire: Wire) -> None:
        while (seen := await wire.request()) is not None:
            message = json.loads(seen.body)
            self.methods.append(message["method"])
            answer: dict[str, object] = {"result": DISCOVERED}
            if message["method"] == "tools/list":
                answer = {"result": {**DISCOVERED, "tools": []}}
            if self.refusals:
                self.refusals -= 1
                data = {"supported": self.supported, "requested": NEW}
                answer = {"error": {"code": -32022, "message": "no", "data": data}}
            body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **answer}).encode()
            status = 400 if "error" in answer else 200
            await wire.reply(body, status=status, extra="content-type: application/json\r\n")


@pytest.mark.parametrize("era", [None, Era.STATELESS])
async def test_a_version_that_is_refused_and_supported_is_tried_once_more(era: Era | None) -> None:
    picky = Picky(1, [NEW])
    async with raw_http(picky.serve) as server, rig(http_server(server.url, era=era)) as made:
        listing = await within(made.upstreams.discover("peer"))
    assert listing.era is Era.STATELESS
    assert picky.methods[:3] == ["server/discover", "server/discover", "tools/list"]


@pytest.mark.parametrize(("supported", "greetings"), [([NEW], 2), (["2099-01-01"], 1)])
async def test_a_server_that_stays_with_its_refusal_is_not_asked_on(
    supported: list[str], greetings: int
) -> None:
    picky = Picky(10, supported)
    async with raw_http(picky.serve) as server, rig(http_server(server.url)) as made:
        with pytest.raises(UpstreamUnreachable):
            await within(made.upstreams.discover("peer"))
        assert picky.methods == ["server/discover"] * greetings
