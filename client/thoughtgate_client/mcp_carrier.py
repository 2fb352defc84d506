"""Tools and calls over MCP: what the SDK's client returns becomes this library's values.

Never owns the connection; see `connection`.
"""

from typing import cast

import mcp_types as types
from mcp import Client
from mcp.shared.dispatcher import ProgressFnT

from thoughtgate_client.carrier import Page, Report, Wanted
from thoughtgate_client.connection import translated
from thoughtgate_client.values import Progress, Tool, ToolResult


class McpCarrier:
    """A carrier over the SDK's client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def protocol_version(self) -> str:
        """The protocol revision that both sides agreed on."""
        return self._client.protocol_version

    @property
    def instructions(self) -> str:
        """What the server says about its use, empty when nothing."""
        return self._client.instructions or ""

    async def page(self, cursor: str | None) -> Page:
        """Return one page of tools, the first without a cursor.

        Raises:
            GateError: It could not be had.
        """
        with translated():
            page = await self._client.list_tools(cursor=cursor)
        return Page(tools=tuple(map(_tool, page.tools)), cursor=page.next_cursor)

    async def call(self, wanted: Wanted) -> ToolResult:
        """Call a tool and return its result, failed or not.

        Raises:
            GateError: There is no usable result.
        """
        # an open map: the SDK's type names only its own key
        meta = cast("types.RequestParamsMeta", dict(wanted.meta)) if wanted.meta else None
        with translated():
            answer = await self._client.call_tool(
                wanted.name, wanted.arguments, progress_callback=_reported(wanted.report), meta=meta
            )
        return _result(answer)


def _reported(report: Report | None) -> ProgressFnT | None:
    if report is None:
        return None

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        await report(Progress(done=progress, total=total, message=message or ""))

    return tell


def _tool(tool: types.Tool) -> Tool:
    hints = tool.annotations
    return Tool(
        name=tool.name,
        title=tool.title or tool.name,
        description=tool.description or "",
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        read_only=bool(hints and hints.read_only_hint),
        idempotent=bool(hints and hints.idempotent_hint),
    )


def _result(answer: types.CallToolResult) -> ToolResult:
    texts = [block.text for block in answer.content if isinstance(block, types.TextContent)]
    return ToolResult(
        text="\n".join(texts),
        structured=answer.structured_content,
        is_error=bool(answer.is_error),
        content=tuple(
            block.model_dump(by_alias=True, exclude_none=True, mode="json")
            for block in answer.content
        ),
        meta=dict(answer.meta or {}),
    )
