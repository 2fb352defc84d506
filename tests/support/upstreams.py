"""Upstreams under test: servers of both kinds, calls, and what was heard of them."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.support.waiting import within
from thoughtgate.core.calls import LOCAL, Call, Notice, Question, Result, Session
from thoughtgate.core.errors import NotAsked
from thoughtgate.core.servers import (
    Era,
    HttpTransport,
    Listing,
    Server,
    StdioTransport,
    UpstreamStatus,
)
from thoughtgate.core.tools import Effect, Tool
from thoughtgate.upstream.breaker import Backoff
from thoughtgate.upstream.child import Patience
from thoughtgate.upstream.door import Door
from thoughtgate.upstream.http_client import PooledClient
from thoughtgate.upstream.opening import Means
from thoughtgate.upstream.served import MAX_PRIVATE
from thoughtgate.upstream.upstreams import Upstreams

ROOT = Path(__file__).parents[2]
PYTHON_PATH = os.pathsep.join(str(ROOT / part) for part in ("gateway", "."))
QUICK = Backoff(first=0.01, longest=0.02, give_up=5)


@dataclass
class Heard:
    """A listener that keeps what it is told."""

    notices: list[Notice] = field(default_factory=list)

    async def notify(self, notice: Notice) -> None:
        self.notices.append(notice)

    async def ask(self, question: Question) -> bytes:
        raise NotAsked(message=f"nobody answers {question.method} here")

    @property
    def params(self) -> list[dict[str, Any]]:
        return [dict(notice.params) for notice in self.notices]


@dataclass
class Rig:
    """Upstreams, and everything that they said."""

    upstreams: Upstreams
    listings: list[Listing] = field(default_factory=list)
    statuses: list[UpstreamStatus] = field(default_factory=list)
    clumsy: bool = False
    guests: Door | None = None

    def listed(self, listing: Listing) -> None:
        if self.clumsy:
            raise ZeroDivisionError
        self.listings.append(listing)
        if self.guests is not None:
            self.guests.heard(listing)

    def stood(self, status: UpstreamStatus) -> None:
        self.statuses.append(status)
        if self.guests is not None:
            self.guests.stands(status)

    async def call(self, name: str, arguments: dict[str, Any] | None = None, **fields: Any) -> Any:
        """Call a tool of server `peer` and return the structured content of its result."""
        result = await within(self.send(name, arguments, **fields))
        return json.loads(result.raw).get("structuredContent")

    async def send(
        self, name: str, arguments: dict[str, Any] | None = None, **fields: Any
    ) -> Result:
        return await self.upstreams.send(make_call(name, arguments, **fields))

    def names(self) -> set[str]:
        """Return the names of the tools in the newest listing."""
        return {tool["name"] for tool in self.listings[-1].tools}


def make_call(
    name: str,
    arguments: dict[str, Any] | None = None,
    *,
    server: str = "peer",
    effect: Effect = Effect.WRITE,
    timeout: float = 5.0,
    schema: dict[str, Any] | None = None,
    **fields: Any,
) -> Call:
    tool = Tool(
        server=server,
        name=name,
        definition={"name": name},
        digest="sha256:" + name,
        input_schema=schema or {"type": "object"},
        effect=effect,
        call_timeout=timeout,
    )
    call = Call(
        id="1",
        target=tool,
        arguments=arguments or {},
        principal=LOCAL,
        session=Session(id="", era=Era.STATELESS, version="", client={}),
        domain="default",
        deadline=asyncio.get_running_loop().time() + 60,
        listener=Heard(),
        meta={},
    )
    return replace(call, **fields)


@asynccontextmanager
async def rig(*servers: Server, **options: Any) -> AsyncIterator[Rig]:
    """Run upstreams over `servers`; nothing of them is left afterwards."""
    client = PooledClient()
    local = options.pop("local", {})
    backoff = options.pop("backoff", QUICK)
    room = options.pop("room", MAX_PRIVATE)
    means = Means(
        client=client,
        environ=os.environ,
        patience=options.pop("patience", Patience(eof=2.0, term=1.0, kill=1.0)),
        **options,
    )
    made: list[Rig] = []
    upstreams = Upstreams(
        means,
        on_listing=lambda listing: made[0].listed(listing),
        on_status=lambda status: made[0].stood(status),
        local=local,
        backoff=backoff,
        room=room,
    )
    made.append(Rig(upstreams))
    try:
        await within(upstreams.apply(servers))
        yield made[0]
    finally:
        await within(upstreams.aclose(), 10.0)
        await within(client.aclose())


def stdio_server(*argv: str, **fields: Any) -> Server:
    """Return a server `peer` that runs a Python module with arguments."""
    env = fields.pop("env", {})
    transport = StdioTransport(
        argv=(sys.executable, "-m", *argv), env={"PYTHONPATH": PYTHON_PATH, **env}
    )
    return Server(name="peer", transport=transport, **fields)


def fake_stdio(*options: str, **fields: Any) -> Server:
    return stdio_server("thoughtgate.testing.fake_server", *options, **fields)


def http_server(url: str, **fields: Any) -> Server:
    headers = fields.pop("headers", {})
    return Server(name="peer", transport=HttpTransport(url=url, headers=headers), **fields)
