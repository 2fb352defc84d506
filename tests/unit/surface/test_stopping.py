"""A server that stops gives up the requests that still run: their clients hear of it."""

import asyncio
import json
import time
from typing import Any

from tests.support.fake_gateway import FakeGateway, done
from tests.support.http_peer import ENVELOPE, NEW, request
from tests.support.waiting import within
from thoughtgate.core.calls import Call, Result
from thoughtgate.sessions import Sessions
from thoughtgate.surface.mcp_http import McpFront
from thoughtgate.surface.settings import FaceSettings
from thoughtgate.wire.strict import dumps


async def test_a_request_that_the_server_gives_up_is_answered() -> None:
    called = asyncio.Event()

    async def hang(call: Call) -> Result:
        called.set()
        await asyncio.Event().wait()
        return done()

    settings = FaceSettings(info={"name": "thoughtgate", "version": "1"})
    front = McpFront(FakeGateway().add("hang", hang), Sessions(clock=time.monotonic), settings)
    events = [{"type": "http.request", "body": dumps(CALL), "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        return events.pop() if events else await asyncio.Event().wait()

    async def send(event: Any) -> None:
        sent.append(event)

    serving = asyncio.ensure_future(front(SCOPE, receive, send))
    await within(called.wait())
    serving.cancel()
    await within(serving)
    answer = json.loads(sent[1]["body"])
    assert (answer["id"], answer["error"]["data"]) == (
        1,
        {"error": "upstream_lost", "outcome": "unknown"},
    )
    assert not sent[1]["more_body"]


CALL = request("tools/call", {"name": "hang", "arguments": {}, "_meta": ENVELOPE})
SCOPE = {
    "type": "http",
    "method": "POST",
    "path": "/mcp",
    "headers": [
        (b"host", b"127.0.0.1"),
        (b"content-type", b"application/json"),
        (b"mcp-protocol-version", NEW.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", b"hang"),
    ],
}
