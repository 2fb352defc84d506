"""Answers the RPCs of `thoughtgate.tools.v1.ToolServer` from a tool table.

Never lets a tool outlive its RPC, and never sends what an exception said.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode

from thoughtgate_proto.tools.v1 import tool_server_pb2 as pb
from thoughtgate_proto.tools.v1.tool_server_pb2_grpc import ToolServerServicer
from thoughtgate_servers.grpc import messages, refusals
from thoughtgate_servers.grpc.recorded import KEPT_SECONDS, MAX_CALL_ID, Recorded
from thoughtgate_servers.grpc.refusals import Refusal, Refused, refuse
from thoughtgate_servers.schemas import whole
from thoughtgate_servers.table import (
    CALL_ID,
    HONOURS,
    LIST_TTL_MS,
    Effect,
    Request,
    Table,
    Tool,
    rising,
    run,
)

MAX_ARGUMENTS = 4 * 1024 * 1024
MAX_RUNNING = 256
_PAGE, _MAX_PAGE = 100, 500
_UNSENT = 64
"""Progress events that may wait for a slow reader; after that the tool waits, too."""

_GIVEN_UP = (
    "an earlier attempt of this call was given up on its way: whether it did anything is not "
    "known. Look before you call again"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a server says it is."""

    name: str
    version: str
    instructions: str


class Servicer(ToolServerServicer):
    """The RPCs over one table; `stopping` ends the streams that would never end by themselves."""

    def __init__(self, table: Table, identity: Identity) -> None:
        self._table = table
        self._identity = identity
        self._recorded = Recorded()
        self._running = 0
        self.stopping = asyncio.Event()

    async def GetServerInfo(
        self, request: pb.GetServerInfoRequest, context: Any
    ) -> pb.GetServerInfoResponse:
        """Say who answers."""
        del request, context
        return pb.GetServerInfoResponse(
            name=self._identity.name,
            version=self._identity.version,
            instructions=self._identity.instructions,
            max_arguments_bytes=MAX_ARGUMENTS,
            deduplicates_calls=True,
            deduplicates_for=Duration(seconds=KEPT_SECONDS),
        )

    async def ListTools(self, request: pb.ListToolsRequest, context: Any) -> pb.ListToolsResponse:
        """List one page."""
        token, listed = request.page_token, self._table.listed
        if token and not (token.isascii() and token.isdigit() and len(token) < 10):
            await refuse(context, refusals.invalid_request("page_token", "not one of this server"))
        start = int(token or 0)
        end = start + min(request.page_size or _PAGE, _MAX_PAGE)
        return pb.ListToolsResponse(
            tools=[messages.tool_message(tool) for tool in listed[start:end]],
            next_page_token=str(end) if end < len(listed) else "",
            revision=self._table.revision,
            ttl=Duration(seconds=LIST_TTL_MS // 1000),
        )

    async def WatchTools(
        self, request: pb.WatchToolsRequest, context: Any
    ) -> AsyncIterator[pb.WatchToolsResponse]:
        """Tell the revision whenever it is another one than the caller has."""
        del context
        known = request.known_revision
        stop = asyncio.ensure_future(self.stopping.wait())
        try:
            while not stop.done():
                change = asyncio.ensure_future(self._table.changed())
                try:
                    if self._table.revision != known:
                        known = self._table.revision
                        yield pb.WatchToolsResponse(revision=known)
                    await asyncio.wait([change, stop], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    change.cancel()
        finally:
            stop.cancel()

    async def CallTool(
        self, request: pb.CallToolRequest, context: Any
    ) -> AsyncIterator[pb.CallToolResponse]:
        """Call one tool."""
        try:
            tool, asked = self._admitted(request)
            replayed = self._begun(tool, request, asked)
        except Refused as refused:
            await refuse(context, refused.refusal)
        if replayed is not None:
            yield pb.CallToolResponse(result=pb.CallResult.FromString(replayed))
            return
        call = _Call(tool, asked, wants_progress=request.want_progress)
        self._running += 1
        try:
            async for event in call.events():
                yield event
        finally:
            await call.give_up()
            self._running -= 1
            self._ended(call)
        if call.result is None:
            await refuse(context, _failure(call))

    def _admitted(self, request: pb.CallToolRequest) -> tuple[Tool, Request]:
        if self._running >= MAX_RUNNING:
            raise Refused(refusals.overloaded("too many calls run: try again later", seconds=1))
        if request.tools_revision not in {"", self._table.revision}:
            raise Refused(refusals.REVISION_STALE)
        if request.name not in self._table:
            raise Refused(refusals.unknown_tool(request.name))
        if len(request.call_id) > MAX_CALL_ID:
            said = f"longer than {MAX_CALL_ID} characters"
            raise Refused(refusals.invalid_request("call_id", said))
        tool = self._table[request.name]
        arguments = messages.arguments_of(request)
        if wrong := self._table.violations(tool.name, arguments):
            raise Refused(refusals.invalid_arguments(tool.name, wrong))
        return tool, Request(
            arguments=whole(tool.input_schema, arguments),
            meta=messages.meta_of(request),
            progress=_nobody,
            call_id=request.call_id,
        )

    def _begun(self, tool: Tool, request: pb.CallToolRequest, asked: Request) -> bytes | None:
        """Return the recorded result of this call; a tool that only reads simply reads again."""
        if not _recordable(tool, asked):
            return None
        digest = messages.digest_of(tool.name, asked.arguments)
        return self._recorded.begin(request.call_id, digest)

    def _ended(self, call: "_Call") -> None:
        if not _recordable(call.tool, call.asked):
            return
        if call.result is not None:
            self._recorded.end(call.asked.call_id, call.result.SerializeToString())
        elif call.tool.effect is Effect.IDEMPOTENT:
            self._recorded.forget(call.asked.call_id)
        else:
            said = types.CallToolResult(
                content=[types.TextContent(type="text", text=_GIVEN_UP)], is_error=True
            )
            told = messages.result_message(said).SerializeToString()
            self._recorded.end(call.asked.call_id, told)


class _Call:
    """One running call: a task for the tool, and the events that it has for the caller."""

    def __init__(self, tool: Tool, asked: Request, *, wants_progress: bool) -> None:
        self.tool = tool
        self.result: pb.CallResult | None = None
        self._unsent: asyncio.Queue[pb.Progress | None] = asyncio.Queue(_UNSENT)
        progress = rising(self._progress) if wants_progress else asked.progress
        self.asked = Request(
            arguments=asked.arguments, meta=asked.meta, progress=progress, call_id=asked.call_id
        )
        self.task = asyncio.create_task(self._run())

    async def events(self) -> AsyncIterator[pb.CallToolResponse]:
        """Give the progress of the tool, then its result if it has one."""
        while (progress := await self._unsent.get()) is not None:
            yield pb.CallToolResponse(progress=progress)
        await asyncio.wait([self.task])
        if not self.task.cancelled() and self.task.exception() is None:
            self.result = self.task.result()
            yield pb.CallToolResponse(result=self.result)

    async def give_up(self) -> None:
        """Cancel the tool if it still runs, and return when it is over."""
        self.task.cancel()
        while not self.task.done():
            try:
                await asyncio.wait([self.task])
            except asyncio.CancelledError:
                continue
        if not self.task.cancelled() and self.task.exception() is None:
            # it was done before anyone could cancel it: what it did is known
            self.result = self.task.result()

    async def _run(self) -> pb.CallResult:
        try:
            return messages.result_message(await run(self.tool, self.asked))
        finally:
            # at the end of its own task: nothing waits behind an event that nobody reads
            self._finish()

    def _finish(self) -> None:
        while self._unsent.full():
            self._unsent.get_nowait()
        self._unsent.put_nowait(None)

    async def _progress(self, done: float, total: float | None, message: str | None) -> None:
        event = pb.Progress(progress=done, message=message or "")
        if total is not None:
            event.total = total
        await self._unsent.put(event)


async def _nobody(_done: float, _total: float | None, _message: str | None) -> None:
    """Tell nobody: the caller wants no progress."""


def _recordable(tool: Tool, asked: Request) -> bool:
    """Say whether a call must not be made twice, and the tool does not see to that by itself."""
    own_memory = tool.meta.get(HONOURS) == "key" and CALL_ID in asked.meta
    return bool(asked.call_id) and tool.effect is not Effect.READ and not own_memory


def _failure(call: _Call) -> Refusal:
    """Return how a call without a result is told; the log has what happened, under the same id."""
    reference = secrets.token_hex(6)
    failure = None if call.task.cancelled() else call.task.exception()
    _log.error("tool %s failed (reference %s)", call.tool.name, reference, exc_info=failure)
    if failure is None:
        message, code = f"the tool gave up (reference {reference})", StatusCode.CANCELLED
    else:
        message, code = f"the tool failed (reference {reference})", StatusCode.INTERNAL
    return Refusal(code=code, reason="TOOL_FAILED", message=message)
