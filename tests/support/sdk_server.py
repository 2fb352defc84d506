"""The SDK's own server as a peer: run for stdio, or served over HTTP in this process."""

import asyncio
import socket
import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from tests.support.waiting import until, within

TOOLS = ("echo", "progress", "log", "wait", "cancelled", "change", "meta", "sum")
OPEN: dict[str, Any] = {"type": "object"}
STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
Context = Any


class SdkPeer:
    """A server whose tools show what reached it."""

    def __init__(self) -> None:
        self.cancelled = 0
        self.waiting = 0
        self.extra: list[str] = []
        self.bus = InMemorySubscriptionBus()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # logging is deprecated, and served nevertheless
            self.server: Server[Any] = Server(
                "peer",
                version="7",
                instructions="be kind",
                get_tool_input_schema=lambda _: None,
                on_list_tools=self.list_tools,
                on_call_tool=self.call_tool,
                on_set_logging_level=self.set_level,
                on_subscriptions_listen=ListenHandler(self.bus),
            )

    async def list_tools(self, ctx: Context, params: Any) -> types.ListToolsResult:
        names = [*TOOLS, *self.extra]
        start = int(params.cursor or 0) if params is not None else 0
        return types.ListToolsResult(
            tools=[
                types.Tool(name=name, input_schema=STRICT if name == "sum" else OPEN)
                for name in names[start : start + 3]
            ],
            next_cursor=str(start + 3) if start + 3 < len(names) else None,
        )

    async def set_level(self, ctx: Context, params: Any) -> types.EmptyResult:
        return types.EmptyResult()

    async def call_tool(self, ctx: Context, params: Any) -> types.CallToolResult:
        behave = getattr(self, f"tool_{params.name}")
        return types.CallToolResult(
            content=[], structured_content=await behave(ctx, params.arguments or {})
        )

    async def tool_echo(self, ctx: Context, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    async def tool_sum(self, ctx: Context, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"sum": arguments["a"] + arguments["b"]}

    async def tool_meta(self, ctx: Context, arguments: dict[str, Any]) -> dict[str, Any]:
        headers = {} if ctx.request is None else dict(ctx.request.headers)
        return {"meta": dict(ctx.meta or {}), "headers": headers}

    async def tool_progress(self, ctx: Context, arguments: dict[str, Any]) -> dict[str, Any]:
        for step in range(3):
            await ctx.session.report_progress(step, 3, f"step {step}")
        return {"done": True}

    async def tool_log(self, ctx: Context, arguments: dict[str, Any]) -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for level in ("debug", "warning", "error"):
                await ctx.session.send_log_message(
                    level, f"a {level}", related_request_id=ctx.request_id
                )
        return {"done": True}

    async def tool_wait(self, ctx: Context, arguments: dict[str, Any]) -> dict[str, Any]:
        self.waiting += 1
        try:
            await anyio.sleep_forever()
            return {}
        finally:
            self.waiting -= 1
            self.cancelled += 1

    async def tool_cancelled(self, ctx: Context, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"cancelled": self.cancelled, "waiting": self.waiting}

    async def tool_change(self, ctx: Context, arguments: dict[str, Any]) -> dict[str, Any]:
        self.extra.append(f"extra{len(self.extra)}")
        await self.bus.publish(ToolsListChanged())
        if ctx.protocol_version < "2026":
            await ctx.session.send_tool_list_changed()
        return {"extra": self.extra}


@asynccontextmanager
async def sdk_over_http(*, json_response: bool = False) -> AsyncIterator[str]:
    """Serve a peer on loopback; yields its URL."""
    app = SdkPeer().server.streamable_http_app(json_response=json_response)
    # named as TCP, or asyncio leaves Nagle's algorithm on and every reply waits 40 ms
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=0)
        server = uvicorn.Server(config)
        serve = asyncio.create_task(server.serve(sockets=[listener]))
        await until(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await within(serve)


async def serve_app(app: Any) -> None:
    """Serve an application on a free port of loopback, and write its URL, until ended."""
    # named as TCP, or asyncio leaves Nagle's algorithm on and every reply waits 40 ms
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        sys.stdout.write(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp\n")
        sys.stdout.flush()
        config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=0)
        await uvicorn.Server(config).serve(sockets=[listener])


async def main() -> None:
    server = SdkPeer().server
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


if __name__ == "__main__":
    anyio.run(main)
