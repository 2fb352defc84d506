"""What a call leaves behind: nothing that only the garbage collector would find.

A cycle for each call made the collector run through the whole heap again and again.
"""

import gc
import weakref

from tests.support.raw_http import Wire, raw_http
from tests.support.waiting import within
from thoughtgate.upstream.http_client import PooledClient
from thoughtgate.upstream.ports import HttpRequest


async def answer(wire: Wire) -> None:
    while await wire.request():
        await wire.reply(b"{}")


async def test_a_reply_that_was_read_is_freed_without_the_collector() -> None:
    client = PooledClient()
    gc.disable()
    try:
        async with raw_http(answer) as server:
            reply = await within(
                client.send(HttpRequest(method="POST", url=server.url, headers={}, body=b"{}"))
            )
            await within(reply.read())
            body = weakref.ref(reply.body)
            del reply
            assert body() is None
    finally:
        gc.enable()
        await within(client.aclose())
