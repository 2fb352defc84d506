"""The tool server of the benchmarks, on the SDK's own server: `echo`, and as many more as asked.

    python echo_server.py default|fast|stdio [--port PORT] [--tools N]

`default` is what the SDK does by itself, `fast` has uvloop, httptools and JSON replies. Every path
`/NAME/mcp` is a server of its own to its clients, so one process can stand for many.
"""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
SCHEMA = {**TEXT, "required": ["text"], "additionalProperties": False}
SLOW = 1.0
"""Seconds that `slow` takes."""
MIB = 2**20


def schemas(name: str) -> dict[str, Any]:
    """Return the schema of a tool; each numbered one has its own, so that nothing is shared."""
    if not name.startswith("tool"):
        return SCHEMA
    number = int(name.removeprefix("tool"))
    text = {"type": "string", "description": f"The text of {name}", "maxLength": 100_000 + number}
    count = {"type": "integer", "minimum": 0, "maximum": number}
    return {**SCHEMA, "properties": {"text": text, "count": count}}


def tools(count: int) -> list[types.Tool]:
    """Return the tools: `echo`, `slow`, `big`, `wide`, and numbered ones up to `count`."""
    names = ["echo", "slow", "big", "wide", *(f"tool{number}" for number in range(count - 4))]
    return [
        types.Tool(
            name=name,
            description=f"Echo a text, as {name} does it",
            input_schema=schemas(name),
            output_schema=SCHEMA,
        )
        for name in names
    ]


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Return the text; `slow` waits before, `big` and `wide` make a MiB of it."""
    del context
    text = str((params.arguments or {})["text"])
    if params.name == "slow":
        await asyncio.sleep(SLOW)
    shown = text * (MIB // len(text)) if params.name == "big" else text
    structured = text * (MIB // len(text)) if params.name == "wide" else text
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=shown)],
        structured_content={"text": structured},
    )


def server(count: int) -> Server[Any]:
    """Return the server with its tools."""
    offered = tools(count)

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(tools=offered, ttl_ms=60_000, cache_scope="private")

    return Server(
        "echo",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=schemas,  # spares the SDK a listing for every call
    )


def any_path(app: App) -> App:
    """Serve `/NAME/mcp` as `/mcp`."""

    async def served(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": "/mcp", "raw_path": b"/mcp"}
        await app(scope, receive, send)

    return served


async def serve_stdio(count: int) -> None:
    """Serve one client on standard input and output."""
    echo = server(count)
    async with stdio_server() as (read, write):
        await echo.run(read, write, echo.create_initialization_options())


def serve_http(port: int, count: int, *, fast: bool) -> None:
    """Serve until killed."""
    uvicorn.run(
        any_path(server(count).streamable_http_app(json_response=fast)),
        host="127.0.0.1",
        port=port,
        log_level="error",
        loop="uvloop" if fast else "asyncio",
        http="httptools" if fast else "h11",
    )


def main() -> None:
    """Serve as the command line says."""
    parser = argparse.ArgumentParser(description="A tool server to measure with.")
    parser.add_argument("kind", choices=["default", "fast", "stdio"])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tools", type=int, default=4)
    given = parser.parse_args()
    if given.kind == "stdio":
        asyncio.run(serve_stdio(given.tools))
    else:
        serve_http(given.port, given.tools, fast=given.kind == "fast")


if __name__ == "__main__":
    main()
