"""A tool server as a table: name, schemas, effect and one async function per tool.

Never opens a file or a socket; `serving` carries the table over stdio or HTTP.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import mcp_types as types
from jsonschema import Draft202012Validator
from mcp import MCPError
from mcp.server import CacheHint, Server, ServerRequestContext

from thoughtgate_servers.schemas import Schema, problems, whole

LIST_TTL_MS = 60_000
"""How long a client may keep the tool list: it never changes while the process lives."""


class ToolFailed(Exception):
    """A failure that the caller can mend; its text reaches the caller.

    `structured`, when given, obeys the tool's output schema and is sent along.
    """

    def __init__(self, *, message: str, structured: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.structured = structured


Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Tell the caller how far a call is: done, total, message."""


class Effect(Enum):
    """What a call does to the world, in the words of the protocol's annotations."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call, arguments already valid. `progress(done, total, message)` may be called often."""

    arguments: Mapping[str, Any]
    meta: Mapping[str, Any]
    progress: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a tool says: `text` for people and models, `structured` for machines."""

    text: str
    structured: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One row of the table. `destructive` says that a call may replace what was there."""

    name: str
    title: str
    description: str
    input_schema: Schema
    output_schema: Schema
    run: Callable[[Request], Awaitable[Reply]]
    effect: Effect = Effect.READ
    destructive: bool = False
    open_world: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)

    def advertised(self) -> types.Tool:
        """Return the tool as the protocol lists it."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.input_schema,
            output_schema=self.output_schema,
            annotations=types.ToolAnnotations(
                read_only_hint=self.effect is Effect.READ,
                idempotent_hint=self.effect is not Effect.WRITE,
                destructive_hint=self.destructive,
                open_world_hint=self.open_world,
            ),
            _meta=dict(self.meta) or None,
        )


def build_server(
    *, name: str, version: str, instructions: str, tools: Sequence[Tool]
) -> Server[dict[str, Any]]:
    """Return an SDK server that lists and runs `tools`, checking arguments first."""
    rows = {tool.name: tool for tool in tools}
    checks = {tool.name: Draft202012Validator(tool.input_schema) for tool in tools}
    listing = types.ListToolsResult(tools=[tool.advertised() for tool in tools])

    async def list_tools(
        _context: ServerRequestContext[dict[str, Any]], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listing

    async def call_tool(
        context: ServerRequestContext[dict[str, Any]], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = rows.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"unknown tool: {params.name[:120]}")
        arguments = params.arguments or {}
        if wrong := problems(checks[tool.name], arguments):
            return _failed(f"invalid arguments for {tool.name}:\n- " + "\n- ".join(wrong))
        request = Request(
            arguments=whole(tool.input_schema, arguments),
            meta=dict(context.meta or {}),
            progress=_rising(context.session.report_progress),
        )
        return await _run(tool, request)

    return Server(
        name,
        version=version,
        instructions=instructions,
        cache_hints={"tools/list": CacheHint(ttl_ms=LIST_TTL_MS, scope="public")},
        get_tool_input_schema=lambda asked: rows[asked].input_schema if asked in rows else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _rising(report: Report) -> Report:
    """Return `report` without calls that do not advance: the protocol wants rising numbers."""
    highest = -1.0

    async def progress(done: float, total: float | None, message: str | None) -> None:
        nonlocal highest
        if done > highest:
            highest = done
            await report(done, total, message)

    return progress


async def _run(tool: Tool, request: Request) -> types.CallToolResult:
    try:
        reply = await tool.run(request)
    except ToolFailed as failure:
        return _failed(failure.message, failure.structured)
    except OSError as failure:
        # the message of an OSError names paths of this machine; its reason is enough
        return _failed(f"{tool.name} could not work: {failure.strerror or 'input/output error'}")
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=reply.text)],
        structured_content=reply.structured,
    )


def _failed(message: str, structured: Mapping[str, Any] | None = None) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=message)],
        structured_content=dict(structured) if structured is not None else None,
        is_error=True,
    )
