"""The shipped tool servers for tests: in this process, over stdio, or over HTTP as real processes.

Never leaves a process behind, and ends only what it started.
"""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import CallToolResult, TextContent

from tests.support.waiting import until, within
from thoughtgate_servers.table import Tool, build_server

ROOT = Path(__file__).resolve().parents[2]
START = 20.0
"""Seconds that a Python process may take to start on a busy machine."""

ROUTES = [(carrier, mode) for carrier in ("stdio", "http") for mode in ("legacy", "auto")]
"""Every way to a shipped server: carrier and era."""


def environment() -> dict[str, str]:
    """Return the environment in which a shipped server runs from the sources."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "servers")}


def command(name: str, *arguments: str) -> list[str]:
    """Return the command of a shipped server."""
    return [sys.executable, "-m", f"thoughtgate_servers.{name}", *arguments]


@asynccontextmanager
async def http_server(name: str, *arguments: str, port: int = 0) -> AsyncIterator[str]:
    """Run a shipped server over HTTP and yield the address that it announces."""
    process = await asyncio.create_subprocess_exec(
        *command(name, "--http", f"127.0.0.1:{port}", *arguments),
        env=environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        said = await within(process.stderr.readline(), START)
        assert b"listening on " in said, said + await process.stderr.read()
        yield said.decode().split()[-1]
    finally:
        if process.returncode is None:
            process.terminate()
        await within(process.communicate(), START)


@asynccontextmanager
async def table_over_http(tools: Sequence[Tool]) -> AsyncIterator[str]:
    """Serve a table over HTTP in this process and yield its address."""
    server = build_server(name="table", version="1", instructions="be kind", tools=tools)
    # named as TCP, or asyncio leaves Nagle's algorithm on and every reply waits 40 ms
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        app = server.streamable_http_app()
        config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=0)
        host = uvicorn.Server(config)
        serving = asyncio.create_task(host.serve(sockets=[listener]))
        await until(lambda: host.started)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            host.should_exit = True
            await within(serving)


@asynccontextmanager
async def reached(carrier: str, mode: str, name: str, *arguments: str) -> AsyncIterator[Client]:
    """Start a shipped server and yield the SDK's client to it."""
    if carrier == "stdio":
        program, *rest = command(name, *arguments)
        parameters = StdioServerParameters(command=program, args=rest, env=environment())
        async with Client(parameters, mode=mode) as client:
            yield client
    else:
        async with http_server(name, *arguments) as url, Client(url, mode=mode) as client:
            yield client


async def ask(
    tools: Sequence[Tool], tool: str, /, meta: dict[str, Any] | None = None, **arguments: Any
) -> CallToolResult:
    """Call a tool of a table in this process; the SDK's client checks the result's schema."""
    server = build_server(name="test", version="0", instructions="", tools=tools)
    async with Client(server) as client:
        await client.list_tools()
        try:
            return await client.call_tool(tool, arguments, meta=meta)  # type: ignore[arg-type] # _meta is an open map
        except MCPError as error:
            refusal = error
    # raised out here, since the client's task group would wrap it
    raise refusal


def text(result: CallToolResult) -> str:
    """Return the text of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def data(result: CallToolResult) -> Any:
    """Return the structured content of a result that succeeded."""
    assert not result.is_error, text(result)
    return result.structured_content
