"""The tools of a native server as MCP lists them: all pages, at one revision.

Never puts tools of two revisions into one list, and never changes a schema.
"""

import logging
from dataclasses import dataclass

import msgspec
from google.protobuf.message import DecodeError

from thoughtgate.core.errors import Malformed, UpstreamGarbled
from thoughtgate.core.json import JsonValue
from thoughtgate.upstream.grpc.channel import Connection
from thoughtgate.upstream.listing import MAX_BYTES, MAX_PAGES, MAX_TOOLS
from thoughtgate.wire.strict import dumps, parse
from thoughtgate_proto.tools.v1 import tool_server_pb2

_log = logging.getLogger(__name__)

LIST_TOOLS = "/thoughtgate.tools.v1.ToolServer/ListTools"

ATTEMPTS = 5
"""How often a list is begun anew that changes while it is read."""

_PAGE = 500
_HINTS = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
_NOT_JSON = "not JSON"
"""What stands for a schema that cannot be read: it is no schema, so that the tool is held back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A list of tools: the JSON of an MCP page, its revision, how long it holds in seconds."""

    page: bytes
    revision: str
    ttl: float | None


class _Changed(Exception):
    """The list changed while it was read."""


async def read_tools(connection: Connection, cursor: str) -> Listed:
    """Return all tools from a cursor on, within bounds; beyond them the page names the next one.

    Raises:
        UpstreamGarbled: A page cannot be read, or the list changes faster than that.
        UpstreamError: They could not be asked for.
    """
    for _ in range(1 if cursor else ATTEMPTS):
        try:
            return await _read_all(connection, cursor)
        except _Changed:
            continue
    raise UpstreamGarbled(message="its list of tools changes faster than it can be read")


async def _read_all(connection: Connection, token: str) -> Listed:
    tools: list[JsonValue] = []
    seen, size, pages = {token}, 0, 0
    first: tool_server_pb2.ListToolsResponse | None = None
    while True:
        request = tool_server_pb2.ListToolsRequest(page_size=_PAGE, page_token=token)
        raw = await connection.answer(LIST_TOOLS, request.SerializeToString())
        page = _page(raw)
        first = first or page
        if page.revision != first.revision:
            raise _Changed
        tools += [tool_object(tool) for tool in page.tools]
        token, size, pages = page.next_page_token, size + len(raw), pages + 1
        full = size > MAX_BYTES or len(tools) > MAX_TOOLS or pages >= MAX_PAGES
        if not token or token in seen or full:
            break
        seen.add(token)
    made: dict[str, JsonValue] = {"tools": tools}
    if token:
        made["nextCursor"] = token
    ttl = first.ttl.seconds + first.ttl.nanos / 1e9 if first.HasField("ttl") else None
    return Listed(page=dumps(made), revision=first.revision, ttl=ttl)


def tool_object(tool: tool_server_pb2.Tool) -> dict[str, JsonValue]:
    """Return a tool as MCP lists it; a schema that is not strict JSON becomes no schema at all."""
    made: dict[str, JsonValue] = {"name": tool.name}
    if tool.title:
        made["title"] = tool.title
    if tool.description:
        made["description"] = tool.description
    made["inputSchema"] = _json(tool.input_schema_json, tool.name)
    if tool.HasField("output_schema_json"):
        made["outputSchema"] = _json(tool.output_schema_json, tool.name)
    hints = _hints(tool.hints)
    if hints:
        made["annotations"] = hints
    if tool.meta_json:
        made["_meta"] = _json(tool.meta_json, tool.name)
    return made


def _hints(hints: tool_server_pb2.ToolHints) -> dict[str, JsonValue]:
    """Return what a server says of a tool; what it does not say is left out."""
    return {_HINTS[field.name]: value for field, value in hints.ListFields()}


def _json(data: bytes, tool: str) -> JsonValue:
    try:
        parse(data)
    except Malformed as error:
        _log.warning("a definition of tool %s cannot be read: %s", tool[:120], error.message)
        return _NOT_JSON
    return msgspec.Raw(data)


def _page(raw: bytes) -> tool_server_pb2.ListToolsResponse:
    try:
        return tool_server_pb2.ListToolsResponse.FromString(raw)
    except DecodeError:
        raise UpstreamGarbled(message="its list of tools cannot be read") from None
