"""Carries a tool table over stdio or HTTP; the command line that every server shares.

Never binds to an address that other machines reach: these servers ask nobody who they are.
"""

import asyncio
import functools
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server

from thoughtgate_servers.sandbox import Sandbox
from thoughtgate_servers.table import Tool, build_server

LOOPBACK = ("127.0.0.1", "localhost", "::1")
GRACE = 3
"""Seconds that open requests get when the process is told to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """How a server is reached: over stdio, or over HTTP at `http` when given."""

    http: str | None
    json_replies: bool


def transport_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--http` and `--json-replies` to a command, which gets them as one `carrier`."""

    @functools.wraps(command)
    def carried(*, http: str | None, json_replies: bool, **given: Any) -> None:
        command(carrier=Carrier(http=http, json_replies=json_replies), **given)

    with_replies = click.option(
        "--json-replies",
        is_flag=True,
        help="With --http: answer every request with one JSON body. Faster for old clients, but "
        "progress is not sent and a caller that hangs up does not cancel.",
    )(carried)
    return click.option(
        "--http",
        metavar="HOST:PORT",
        help="Serve streamable HTTP at http://HOST:PORT/mcp instead of stdio (loopback only; "
        "port 0 picks a free one and says which).",
    )(with_replies)


def serve(tools: Sequence[Tool], *, name: str, instructions: str, carrier: Carrier) -> None:
    """Serve `tools` until the client leaves (stdio) or the process is told to stop (HTTP)."""
    server = build_server(
        name=f"thoughtgate-{name}",
        version=_version(),
        instructions=instructions,
        tools=tools,
    )
    if carrier.http is None:
        # the SDK reads stdin in a thread that nothing can wake: let Ctrl-C end the process
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        asyncio.run(_stdio(server))
    else:
        host, port = _address(carrier.http)
        _http(server, f"thoughtgate-{name}", host, port, carrier.json_replies)


def sandbox(roots: Sequence[str]) -> Sandbox:
    """Return the sandbox over `roots`, or end the command with a usage error."""
    try:
        return Sandbox([Path(root).expanduser() for root in roots])
    except OSError as failure:
        raise click.UsageError(message=f"--root {failure.filename}: no such directory") from None


def _version() -> str:
    try:
        return version("thoughtgate")
    except PackageNotFoundError:
        return "0+source"


async def _stdio(server: Server[dict[str, Any]]) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _address(http: str) -> tuple[str, int]:
    host, colon, port = http.rpartition(":")
    host = host.strip("[]")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise click.UsageError(message="--http wants HOST:PORT, for instance 127.0.0.1:8101")
    if host not in LOOPBACK:
        raise click.UsageError(
            message=f"--http {host}: only loopback ({', '.join(LOOPBACK)}), since this server asks "
            "nobody who they are; put the gateway in front to reach it from elsewhere"
        )
    return host, int(port)


class _Announced(uvicorn.Server):
    """A server that says on stderr where it listens once it does."""

    def __init__(self, config: uvicorn.Config, name: str) -> None:
        super().__init__(config)
        self._name = name

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in self.servers:
            host, port = listener.sockets[0].getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            click.echo(f"{self._name}: listening on http://{shown}:{port}/mcp", err=True)


def _http(
    server: Server[dict[str, Any]], name: str, host: str, port: int, json_replies: bool
) -> None:
    # without json_replies the SDK still answers new clients with plain JSON unless a notification
    # comes first; old clients get an event stream, which carries progress and cancel
    app = server.streamable_http_app(json_response=json_replies, host=host)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        lifespan="on",
        log_level="warning",
        timeout_graceful_shutdown=GRACE,
    )
    _Announced(config, name).run()
