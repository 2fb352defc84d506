"""Tools as messages: of one view, page by page, and those that fit a task.

Never makes a message larger than most clients take, and never cuts a list silently.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from thoughtgate.core.json import JsonObject
from thoughtgate.select import Index, choose, index
from thoughtgate.surface.grpc.errors import BadField
from thoughtgate.views import Entry, View
from thoughtgate.wire.strict import dumps
from thoughtgate_proto.gateway.v1.gateway_pb2 import (
    FindToolsRequest,
    FindToolsResponse,
    ListToolsRequest,
    ListToolsResponse,
)
from thoughtgate_proto.tools.v1.tool_server_pb2 import Tool, ToolHints

MOST_BYTES: Final = 2 * 1024 * 1024
"""Bytes of tools in one reply, unless a single one is larger: clients take 4 MiB by default."""

MOST_TASK: Final = 16_384
"""Letters of a task that tools are found for."""

_HINTS: Final = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}


class _Made(NamedTuple):
    revision: str
    tools: dict[str, Tool]


class Lists:
    """Answers lists and searches; a page has `size` tools at most."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._made: dict[str, _Made] = {}
        self._indexed: dict[str, tuple[str, Index]] = {}

    def page(self, view: View, request: ListToolsRequest) -> ListToolsResponse:
        """Return one page of what a view shows.

        Raises:
            BadField: A token that we did not give, or gave before the list changed.
        """
        start = _start(request.page_token, view.revision)
        if start >= max(len(view.entries), 1):
            raise _stale()
        size = min(request.page_size or self._size, self._size)
        fitting = list(_fitting(self._tools(view, view.entries[start : start + size])))
        end = start + len(fitting)
        following = _token(view.revision, end) if end < len(view.entries) else ""
        return ListToolsResponse(tools=fitting, next_page_token=following, revision=view.revision)

    async def found(self, view: View, request: FindToolsRequest) -> FindToolsResponse:
        """Return the tools of a view that fit a task, best first.

        Raises:
            BadField: There is no task, or it is too long.
        """
        if not request.task.strip():
            raise BadField(field="/task", message="say what is to be done")
        if len(request.task) > MOST_TASK:
            raise BadField(field="/task", message=f"at most {MOST_TASK} letters are read")
        ranker = await self._index(view)
        most = min(request.limit or view.domain.max_tools or self._size, self._size)
        chosen = choose(ranker, request.task, max_tools=most, max_tokens=view.domain.max_tokens)
        tools = list(_fitting(self._tools(view, chosen)))
        return FindToolsResponse(tools=tools, revision=view.revision)

    async def _index(self, view: View) -> Index:
        known = self._indexed.get(view.domain.name)
        if known is None or known[0] != view.revision:
            made = await asyncio.to_thread(index, view.entries)
            known = self._indexed[view.domain.name] = (view.revision, made)
        return known[1]

    def _tools(self, view: View, entries: Sequence[Entry]) -> Iterator[Tool]:
        """Yield tools as messages, each made once for a revision."""
        made = self._made.get(view.domain.name)
        if made is None or made.revision != view.revision:
            made = self._made[view.domain.name] = _Made(view.revision, {})
        for entry in entries:
            tool = made.tools.get(entry.name)
            if tool is None:
                tool = made.tools[entry.name] = tool_of(entry.shown)
            yield tool


def tool_of(shown: JsonObject) -> Tool:
    """Return the message of a tool object; what has no field of its own is in `meta_json`."""
    annotations = shown.get("annotations")
    given = annotations if isinstance(annotations, dict) else {}
    hints = {
        field: given[name] for name, field in _HINTS.items() if isinstance(given.get(name), bool)
    }
    tool = Tool(
        name=shown["name"],
        title=_text(shown.get("title")) or _text(given.get("title")),
        description=_text(shown.get("description")),
        input_schema_json=dumps(shown["inputSchema"]),
        hints=ToolHints(**hints) if hints else None,
    )
    if shown.get("outputSchema") is not None:
        tool.output_schema_json = dumps(shown["outputSchema"])
    if isinstance(shown.get("_meta"), dict) and shown["_meta"]:
        tool.meta_json = dumps(shown["_meta"])
    return tool


def _fitting(tools: Iterator[Tool]) -> Iterator[Tool]:
    """Yield the first of some tools, as many as one message shall have."""
    size = 0
    for tool in tools:
        own = tool.ByteSize()
        if size and size + own > MOST_BYTES:
            return
        size += own
        yield tool


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _token(revision: str, start: int) -> str:
    return f"{revision.rpartition(':')[2][:16]}-{start}"


def _start(token: str, revision: str) -> int:
    """Return where the page of a token begins; only what we wrote is understood."""
    if not token:
        return 0
    digits = token.rpartition("-")[2][:12]
    start = int(digits) if digits.isascii() and digits.isdigit() else 0
    if not start or token != _token(revision, start):
        raise _stale()
    return start


def _stale() -> BadField:
    return BadField(field="/page_token", message="unknown or stale; list from the start")
