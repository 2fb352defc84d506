"""The SDK's own server over the older HTTP+SSE transport, served in this process."""

import asyncio
import socket
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp.server import Server

from tests.support.sdk_server import SdkPeer
from tests.support.waiting import until, within

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the transport is deprecated, and people still have it
    from mcp.server.sse import SseServerTransport


class SseApp:
    """An ASGI application: streams at `/sse`, messages at `/messages/`."""

    def __init__(self, server: Server[Any]) -> None:
        self.server = server
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.transport = SseServerTransport("/messages/")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/messages/":
            await self.transport.handle_post_message(scope, receive, send)
        elif scope["method"] == "POST":
            await send({"type": "http.response.start", "status": 405, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            async with self.transport.connect_sse(scope, receive, send) as (read, write):
                options = self.server.create_initialization_options()
                await self.server.run(read, write, options)


@asynccontextmanager
async def sdk_over_sse(server: Server[Any] | None = None) -> AsyncIterator[str]:
    """Serve a peer on loopback; yields the URL of its stream."""
    async with serving(SseApp(server or SdkPeer().server), lifespan="off") as origin:
        yield f"{origin}/sse"


@asynccontextmanager
async def serving(app: Any, **options: Any) -> AsyncIterator[str]:
    """Serve an application on loopback; yields its origin."""
    # named as TCP, or asyncio leaves Nagle's algorithm on and every reply waits 40 ms
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app, log_config=None, access_log=False, timeout_graceful_shutdown=0, **options
        )
        server = uvicorn.Server(config)
        serve = asyncio.create_task(server.serve(sockets=[listener]))
        await until(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await within(serve)
