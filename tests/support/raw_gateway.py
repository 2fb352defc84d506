"""The whole gateway in this process, on real sockets, between raw peers."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from tests.support.raw_clients import RawClient, RawPipe, RawPost
from tests.support.waiting import until, within
from thoughtgate.app.compose import App, opened
from thoughtgate.config.files import Loaded, parse
from thoughtgate.core.domains import DEFAULT_DOMAIN
from thoughtgate.core.servers import BUILT_IN
from thoughtgate.sessions import Sessions
from thoughtgate.surface.http_protocol import TimedHttpProtocol
from thoughtgate.surface.mcp_http import McpFront
from thoughtgate.surface.mcp_stdio import serve_stdio
from thoughtgate.surface.settings import FaceSettings

OPENING = 30.0
"""Seconds for a gateway to stand on a busy machine."""


@dataclass(slots=True, repr=False)
class RawGateway:
    """A running gateway; `said` is what discovery told."""

    app: App
    sessions: Sessions
    settings: FaceSettings
    ending: AsyncExitStack
    port: int = 0
    said: list[str] = field(default_factory=list)

    def discover(self) -> None:
        """Begin to ask every server for its tools."""
        names = [server.name for server in self.app.keeper.servers]
        self.app.keeper.begin_discovery(names, self.said.append)

    def tools(self) -> list[str]:
        """Return the servers' own names of the tools that were admitted."""
        return [t.name for t in self.app.gateway.catalog.tools if t.server != BUILT_IN]

    async def listed(self, *servers: str) -> None:
        """Return when the catalogue holds tools of each of these servers."""

        def there() -> bool:
            return {*servers} <= {tool.server for tool in self.app.gateway.catalog.tools}

        await until(there, OPENING)

    async def client(self, transport: str, era: str, domain: str = DEFAULT_DOMAIN) -> RawClient:
        """Return a connected client; the gateway's end hangs it up."""
        client: RawClient
        if transport == "http":
            client = RawPost(era, self.port, f"/mcp/{domain}")
        else:
            client = RawPipe(era, *await self.ending.enter_async_context(self._piped(domain)))
        self.ending.callback(client.close)
        await client.hello()
        return client

    @asynccontextmanager
    async def _piped(
        self, domain: str
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        ours, theirs = socket.socketpair()
        pipe = await asyncio.open_connection(sock=ours)
        client = await asyncio.open_connection(sock=theirs, limit=2**26)

        async def serve() -> None:
            try:
                await serve_stdio(self.app.gateway, self.sessions, domain, pipe, self.settings)
            finally:
                pipe[1].close()

        served = asyncio.create_task(serve())
        try:
            yield client
        finally:
            client[1].close()
            await within(served, OPENING)


@asynccontextmanager
async def raw_gateway(
    home: Path, config: str = "", *, keepalive: float = 15.0
) -> AsyncIterator[RawGateway]:
    """Compose a gateway with its state in `home`; nothing is discovered yet."""
    loaded = Loaded(settings=parse(config, "test", {}), file=None, home=home)
    environ = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    settings = FaceSettings(
        info={"name": "thoughtgate", "version": "0"},
        page_size=loaded.settings.limits.page_size,
        keepalive=keepalive,
    )
    async with opened(loaded, environ) as app, AsyncExitStack() as ending:
        sessions = Sessions(clock=asyncio.get_running_loop().time)
        made = RawGateway(app, sessions, settings, ending)
        made.port = await ending.enter_async_context(_served(made))
        yield made


@asynccontextmanager
async def _served(gateway: RawGateway) -> AsyncIterator[int]:
    front = McpFront(gateway.app.gateway, gateway.sessions, gateway.settings)
    # named TCP, or asyncio leaves Nagle's delay on and each reply takes 40 ms
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            front,
            interface="asgi3",
            loop="none",
            http=TimedHttpProtocol,
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=75,
        )
        server = uvicorn.Server(config)
        serve = asyncio.create_task(server.serve(sockets=[listener]))
        await until(lambda: server.started)
        try:
            yield listener.getsockname()[1]
        finally:
            front.close()
            server.should_exit = True
            await within(serve, OPENING)
