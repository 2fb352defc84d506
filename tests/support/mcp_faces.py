"""The MCP faces on real sockets, and the SDK's client connected to them."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import uvicorn
from mcp import Client
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from tests.support.waiting import until, within
from thoughtgate.core.domains import DEFAULT_DOMAIN
from thoughtgate.sessions import Sessions
from thoughtgate.surface.http_protocol import TimedHttpProtocol
from thoughtgate.surface.mcp_http import McpFront
from thoughtgate.surface.mcp_stdio import serve_stdio
from thoughtgate.surface.ports import Gateway
from thoughtgate.surface.settings import FaceSettings

SETTINGS = FaceSettings(info={"name": "thoughtgate", "version": "1"})


@asynccontextmanager
async def serving(gateway: Gateway, settings: FaceSettings = SETTINGS) -> AsyncIterator[str]:
    """Serve the HTTP face on a port of its own; yields `http://127.0.0.1:PORT`."""
    front = McpFront(gateway, Sessions(clock=time.monotonic), settings)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            front,
            interface="asgi3",
            http=TimedHttpProtocol,
            lifespan="off",
            log_config=None,
            access_log=False,
        )
        server = uvicorn.Server(config)
        serve = asyncio.create_task(server.serve(sockets=[listener]))
        await until(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            front.close()
            server.should_exit = True
            await within(serve)


@asynccontextmanager
async def piped(
    gateway: Gateway, settings: FaceSettings = SETTINGS, domain: str = DEFAULT_DOMAIN
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Serve the stdio face over a pair of sockets; yields the client's end."""
    ours, theirs = socket.socketpair()
    pipe = await asyncio.open_connection(sock=ours)
    reader, writer = await asyncio.open_connection(sock=theirs, limit=2**26)
    sessions = Sessions(clock=time.monotonic)

    async def serve() -> None:
        try:
            await serve_stdio(gateway, sessions, domain, pipe, settings)
        finally:
            pipe[1].close()

    served = asyncio.create_task(serve())
    try:
        yield reader, writer
    finally:
        writer.close()
        await within(served)
        assert len(sessions) == 0


@asynccontextmanager
async def stdio_transport(gateway: Gateway) -> AsyncIterator[tuple[Any, Any]]:
    """Connect the SDK's streams of messages to the stdio face."""
    to_client, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbox, from_client = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive(reader: asyncio.StreamReader) -> None:
        async with to_client:
            async for line in reader:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                await to_client.send(SessionMessage(message))

    async def send(writer: asyncio.StreamWriter) -> None:
        async with from_client:
            async for item in from_client:
                data = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(data.encode() + b"\n")

    async with piped(gateway) as (reader, writer), anyio.create_task_group() as tasks:
        tasks.start_soon(receive, reader)
        tasks.start_soon(send, writer)
        async with inbox, outbox:
            yield inbox, outbox
        tasks.cancel_scope.cancel()


Connect = Callable[..., AbstractAsyncContextManager[Client]]


@asynccontextmanager
async def connecting(
    gateway: Gateway, transport: str, mode: str, settings: FaceSettings = SETTINGS
) -> AsyncIterator[Connect]:
    """Yield a function that connects the SDK's client over a transport in an era."""
    if transport == "http":
        async with serving(gateway, settings) as url:
            yield lambda **options: Client(f"{url}/mcp", mode=mode, **options)
    else:
        yield lambda **options: Client(stdio_transport(gateway), mode=mode, **options)
