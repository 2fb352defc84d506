"""Carries a tool table over stdio, HTTP or gRPC.

Never loads gRPC for a server that does not speak it.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server

from thoughtgate_servers.carriers import GRACE, Carrier, address, transport_options
from thoughtgate_servers.sandbox import Sandbox
from thoughtgate_servers.table import Table, Tool, table_server

__all__ = ["Carrier", "sandbox", "serve", "serve_table", "transport_options"]


def serve(tools: Sequence[Tool], *, name: str, instructions: str, carrier: Carrier) -> None:
    """Serve `tools` until the client leaves (stdio) or the process is told to stop."""
    name = f"thoughtgate-{name}"
    serve_table(Table(tools), name=name, instructions=instructions, carrier=carrier)


def serve_table(
    table: Table, *, name: str, instructions: str, carrier: Carrier, release: str = ""
) -> None:
    """Serve a table under the given name and version; without one, that of this package."""
    known_as = {"name": name, "version": release or _version(), "instructions": instructions}
    if carrier.grpc is not None:
        _grpc(table, known_as, carrier)
        return
    server = table_server(table, **known_as)
    if carrier.http is None:
        # the SDK reads stdin in a thread that nothing can wake: let Ctrl-C end the process
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        asyncio.run(_stdio(server))
    else:
        host, port = address(carrier.http, "--http")
        _http(server, name, host, port, carrier.json_replies)


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


def _grpc(table: Table, known_as: dict[str, str], carrier: Carrier) -> None:
    host, port = address(carrier.grpc or "", "--grpc")
    # gRPC's core reads this when it is loaded, and else writes to stderr as it likes
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    carrying = import_module("thoughtgate_servers.grpc.carrying")
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    identity = carrying.Identity(**known_as)
    carrying.run_until_stopped(table, identity, where, carrier.tls)


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
