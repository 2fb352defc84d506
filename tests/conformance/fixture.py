"""The server that the official suite is run against: every primitive, both eras, HTTP and stdio.

Never part of the product. `python -m tests.conformance.fixture stdio` serves one client on
standard input and output, and writes into a file named after the word what it was asked for;
without the word it serves HTTP and writes its URL on standard output.
"""

import asyncio
import json
import socket
import sys
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server import NotificationOptions, Server
from mcp.server.context import CallNext, HandlerResult
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.conformance import fixture_texts as texts
from tests.conformance.asking import Context
from tests.conformance.events import Events
from tests.conformance.fixture_tools import APPEARS, Act, Lists, extra_tool, table
from tests.conformance.samples import text
from tests.conformance.task_tools import Reply
from tests.conformance.tasks import Tasks

NAME = "fixture"
RETRY_MS = 200
"""How long a client is told to wait before it comes back to a closed stream."""

SEEN = "/seen"
"""Where the HTTP fixture tells what it was asked, as `{"method name": count}`."""

AUDITED = {
    "tools/call": "tool.call",
    "prompts/get": "prompt.get",
    "resources/read": "resource.read",
    "resources/subscribe": "resource.subscribe",
    "resources/unsubscribe": "resource.unsubscribe",
    "completion/complete": "prompt.complete",
}
"""The requests that are for something by name, and what a gateway's audit log calls them."""

LONG = ("tasks/get", "tasks/update", "tasks/cancel")
"""The methods of an extension, which are rows under their own names."""


@dataclass(slots=True)
class Seen:
    """How often each target was asked for; a middleware of the server."""

    counts: Counter[str] = field(default_factory=Counter)

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Count a request and pass it on."""
        if ctx.request_id is not None:
            target = _target(ctx.params or {}) if ctx.method in AUDITED else ""
            self.counts[f"{ctx.method} {target}".strip()] += 1
        return await call_next(ctx)

    async def tell(self, request: Request) -> JSONResponse:
        """Answer what was counted."""
        return JSONResponse(dict(self.counts))


def _target(params: Mapping[str, Any]) -> str:
    asked = params.get("ref") or params
    return str(asked.get("name") or asked.get("uri") or "")


class Tools:
    """The tools, one of which comes and goes."""

    def __init__(self, lists: Lists, tasks: Tasks) -> None:
        self._lists = lists
        self._acts = table(lists, tasks)

    async def list(self, context: Context, params: Any) -> types.ListToolsResult:
        """Return all tools."""
        tools = [act.definition for act in self._acts.values()]
        return types.ListToolsResult(
            tools=[*tools, extra_tool()] if self._lists.extra_tool else tools
        )

    async def call(self, context: Context, params: types.CallToolRequestParams) -> Reply:
        """Do what the tool does.

        Raises:
            MCPError: There is no such tool.
        """
        if params.name == APPEARS and self._lists.extra_tool:
            return types.CallToolResult(content=[text("here")])
        if params.name not in self._acts:
            raise MCPError(types.INVALID_PARAMS, f"no tool {params.name}")
        return await self._acts[params.name].behave(context, params)

    def schema(self, name: str) -> dict[str, Any] | None:
        """Return the input schema of a tool."""
        act: Act | None = self._acts.get(name)
        return None if act is None else act.definition.input_schema


def build() -> tuple[Server[Any], Seen]:
    """Return a server of the SDK with everything on it, and what counts its requests."""
    lists, seen, tasks = Lists(), Seen(), Tasks()
    tools, prompts = Tools(lists, tasks), texts.Prompts(lists)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # logging is deprecated, and served nevertheless
        server: Server[Any] = Server(
            NAME,
            version="1.0.0",
            instructions="A server to test with.",
            get_tool_input_schema=tools.schema,
            on_list_tools=tools.list,
            on_list_prompts=prompts.list,
            on_get_prompt=prompts.get,
            on_list_resources=texts.list_resources,
            on_list_resource_templates=texts.list_templates,
            on_read_resource=texts.read,
            on_subscribe_resource=texts.subscribe,
            on_unsubscribe_resource=texts.unsubscribe,
            on_completion=texts.complete,
            on_set_logging_level=texts.set_level,
            on_subscriptions_listen=ListenHandler(lists.bus),
        )
    server.add_request_handler("tools/call", types.CallToolRequestParams, tools.call)
    tasks.serve(server)
    boundary = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME)
    server.middleware.extend((seen, boundary))
    return server, seen


def application() -> Starlette:
    """Return the fixture as an ASGI application: the endpoint `/mcp`, and `/seen`."""
    server, seen = build()
    return server.streamable_http_app(
        event_store=Events(),
        retry_interval=RETRY_MS,
        custom_starlette_routes=[Route(SEEN, seen.tell)],
    )


async def serve_http() -> None:
    """Serve on a free port of loopback until ended."""
    # named as TCP, or asyncio leaves Nagle's algorithm on and every reply waits 40 ms
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        sys.stdout.write(f"http://localhost:{listener.getsockname()[1]}/mcp\n")
        sys.stdout.flush()
        # h11 strips the space around a header's value, as the suite wants it; httptools does not
        config = uvicorn.Config(
            application(),
            http="h11",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=0,
        )
        await uvicorn.Server(config).serve(sockets=[listener])


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client on standard input and output."""
    changes = NotificationOptions(tools_changed=True, prompts_changed=True)
    options = server.create_initialization_options(changes)
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


def main(words: list[str]) -> None:
    """Serve as the words say."""
    if words[:1] != ["stdio"]:
        asyncio.run(serve_http())
        return
    server, seen = build()
    try:
        anyio.run(serve_stdio, server)
    finally:
        for counted in words[1:]:
            Path(counted).write_text(json.dumps(seen.counts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
