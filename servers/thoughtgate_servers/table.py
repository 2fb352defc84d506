"""A tool server as a table: name, schemas, effect and one async function per tool.

Never opens a file or a socket; `serving` carries the table over stdio or HTTP.
"""

import asyncio
import base64
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import mcp_types as types
from jsonschema import Draft202012Validator
from mcp import MCPError
from mcp.server import CacheHint, Server, ServerRequestContext

from thoughtgate_servers.schemas import Schema, Violation, violations, whole

LIST_TTL_MS = 60_000
"""How long a client may keep the tool list."""
CALL_ID = "thoughtgate/idempotencyKey"
"""Where in `_meta` a caller names a call that it may send again."""
HONOURS = "thoughtgate/idempotency"
"""Where a tool says `key`: it keeps in mind by itself what it did under such a name."""


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
    call_id: str = ""
    """The same when the same call is sent again; empty when the caller names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture in a reply."""

    data: bytes
    mime_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a tool says: `text` for people and models, `structured` for machines."""

    text: str
    structured: dict[str, Any] | None
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One row of the table. `destructive` says that a call may replace what was there."""

    name: str
    title: str
    description: str
    input_schema: Schema
    output_schema: Schema | None
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


class Table:
    """The tools of a server by name, checked before they run; `revision` changes with the list."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._moved = asyncio.Event()
        self.change(tools)

    def change(self, tools: Sequence[Tool]) -> None:
        """Put `tools` in the place of all that were there, and tell whoever waits."""
        self._rows = {tool.name: tool for tool in tools}
        self._checks = {tool.name: Draft202012Validator(tool.input_schema) for tool in tools}
        self.listed = tuple(tool.advertised() for tool in self._rows.values())
        dumped = [tool.model_dump(mode="json", by_alias=True) for tool in self.listed]
        text = json.dumps(dumped, sort_keys=True)
        self.revision = hashlib.sha256(text.encode()).hexdigest()[:16]
        self._moved.set()
        self._moved = asyncio.Event()

    def __getitem__(self, name: str) -> Tool:
        """Return the tool of this name."""
        return self._rows[name]

    def __contains__(self, name: object) -> bool:
        """Say whether there is a tool of this name."""
        return name in self._rows

    async def changed(self) -> None:
        """Return at the next change."""
        await self._moved.wait()

    def violations(self, name: str, arguments: Mapping[str, Any]) -> list[Violation]:
        """Return what is wrong with the arguments of a tool."""
        return violations(self._checks[name], arguments)


def build_server(
    *, name: str, version: str, instructions: str, tools: Sequence[Tool]
) -> Server[dict[str, Any]]:
    """Return an SDK server that lists and runs `tools`, checking arguments first."""
    return table_server(Table(tools), name=name, version=version, instructions=instructions)


def table_server(
    table: Table, *, name: str, version: str, instructions: str
) -> Server[dict[str, Any]]:
    """Return an SDK server over a table, which may change while it is served."""

    async def list_tools(
        _context: ServerRequestContext[dict[str, Any]], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(table.listed))

    async def call_tool(
        context: ServerRequestContext[dict[str, Any]], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in table:
            raise MCPError(types.INVALID_PARAMS, f"unknown tool: {params.name[:120]}")
        tool = table[params.name]
        arguments = params.arguments or {}
        if wrong := table.violations(tool.name, arguments):
            said = "\n- ".join(one.sentence for one in wrong)
            return _failed(f"invalid arguments for {tool.name}:\n- {said}")
        meta = dict(context.meta or {})
        request = Request(
            arguments=whole(tool.input_schema, arguments),
            meta=meta,
            progress=rising(context.session.report_progress),
            call_id=str(meta.get(CALL_ID, "")),
        )
        return await run(tool, request)

    return Server(
        name,
        version=version,
        instructions=instructions,
        cache_hints={"tools/list": CacheHint(ttl_ms=LIST_TTL_MS, scope="public")},
        get_tool_input_schema=lambda asked: table[asked].input_schema if asked in table else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def rising(report: Report) -> Report:
    """Return `report` without calls that do not advance: the protocol wants rising numbers."""
    highest = -1.0

    async def progress(done: float, total: float | None, message: str | None) -> None:
        nonlocal highest
        if done > highest:
            highest = done
            await report(done, total, message)

    return progress


async def run(tool: Tool, request: Request) -> types.CallToolResult:
    """Run a tool; a failure that the caller can mend becomes a result that says so."""
    try:
        reply = await tool.run(request)
    except ToolFailed as failure:
        return _failed(failure.message, failure.structured)
    except OSError as failure:
        # the message of an OSError names paths of this machine; its reason is enough
        return _failed(f"{tool.name} could not work: {failure.strerror or 'input/output error'}")
    silent = reply.images and not reply.text
    said = [] if silent else [types.TextContent(type="text", text=reply.text)]
    return types.CallToolResult(
        content=[*said, *(_image(image) for image in reply.images)],
        structured_content=reply.structured,
    )


def _image(image: Image) -> types.ImageContent:
    data = base64.b64encode(image.data).decode()
    return types.ImageContent(type="image", data=data, mime_type=image.mime_type)


def _failed(message: str, structured: Mapping[str, Any] | None = None) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=message)],
        structured_content=dict(structured) if structured is not None else None,
        is_error=True,
    )
