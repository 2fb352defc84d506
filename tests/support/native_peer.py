"""A native gRPC tool server as a peer: its tools show what reached it.

Never reaches beyond the loopback address.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2

from tests.support.waiting import within
from thoughtgate.core.servers import GrpcTransport, Server, Tls
from thoughtgate_proto.tools.v1 import tool_server_pb2 as pb
from thoughtgate_proto.tools.v1 import tool_server_pb2_grpc as stubs

OPEN = b'{"type":"object"}'
STRICT = json.dumps({
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}).encode()
TOOLS = ("echo", "progress", "wait", "cancelled", "change", "meta", "sum", "script", "fail")
Context = Any


class NativePeer(stubs.ToolServerServicer):
    """A server whose answers a test may script.

    `scripts` are the events that tool `script` answers with, one list for each call; `calls` are
    the requests as they came. `pages` may replace the pages of the list.
    """

    def __init__(self) -> None:
        self.extra: list[str] = []
        self.revision = "r0"
        self.cancelled = 0
        self.waiting = 0
        self.watching = 0
        self.listed = 0
        self.page_size = 3
        self.watchable = True
        self.info = pb.GetServerInfoResponse(name="peer", version="7", instructions="be kind")
        self.scripts: list[list[Any]] = []
        self.calls: list[pb.CallToolRequest] = []
        self.deadlines: list[float | None] = []
        self.pages: list[pb.ListToolsResponse] = []
        self.ttl: float | None = None
        self.changed = asyncio.Condition()

    @property
    def names(self) -> list[str]:
        return [*TOOLS, *self.extra]

    async def GetServerInfo(self, request: Any, context: Context) -> pb.GetServerInfoResponse:
        return self.info

    async def ListTools(self, request: Any, context: Context) -> pb.ListToolsResponse:
        self.listed += 1
        if self.pages:
            return self.pages.pop(0)
        start = int(request.page_token or 0)
        end = start + self.page_size
        page = pb.ListToolsResponse(
            tools=[self.tool(name) for name in self.names[start:end]],
            next_page_token=str(end) if end < len(self.names) else "",
            revision=self.revision,
        )
        if self.ttl is not None:
            page.ttl.FromMilliseconds(int(self.ttl * 1000))
        return page

    def tool(self, name: str) -> pb.Tool:
        return pb.Tool(name=name, input_schema_json=STRICT if name == "sum" else OPEN)

    async def WatchTools(self, request: Any, context: Context) -> AsyncIterator[Any]:
        if not self.watchable:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "not here")
        self.watching += 1
        known = request.known_revision
        try:
            while True:
                async with self.changed:
                    if self.revision == known:
                        await self.changed.wait()
                    known = self.revision
                yield pb.WatchToolsResponse(revision=known)
        except asyncio.CancelledError:
            await context.abort(grpc.StatusCode.CANCELLED, "")
        finally:
            self.watching -= 1

    async def CallTool(self, request: Any, context: Context) -> AsyncIterator[Any]:
        self.calls.append(request)
        self.deadlines.append(context.time_remaining())
        behave = getattr(self, f"tool_{request.name}", None)
        if behave is None:
            await refuse(context, grpc.StatusCode.NOT_FOUND, "UNKNOWN_TOOL")
            return
        try:
            async for event in behave(request, context):
                yield event
        except asyncio.CancelledError:
            await context.abort(grpc.StatusCode.CANCELLED, "")

    async def tool_echo(self, request: Any, context: Context) -> AsyncIterator[Any]:
        yield result(request.arguments_json)

    async def tool_sum(self, request: Any, context: Context) -> AsyncIterator[Any]:
        arguments = json.loads(request.arguments_json)
        yield result({"sum": arguments["a"] + arguments["b"]})

    async def tool_meta(self, request: Any, context: Context) -> AsyncIterator[Any]:
        headers = {key: str(value) for key, value in context.invocation_metadata()}
        meta = json.loads(request.meta_json or b"{}")
        yield result({"meta": meta, "headers": headers, "call_id": request.call_id})

    async def tool_progress(self, request: Any, context: Context) -> AsyncIterator[Any]:
        for step in range(3):
            yield progress(step, total=3, message=f"step {step}")
        yield result({"done": True})

    async def tool_wait(self, request: Any, context: Context) -> AsyncIterator[Any]:
        self.waiting += 1
        try:
            await asyncio.get_running_loop().create_future()
            yield result({})
        finally:
            self.waiting -= 1
            self.cancelled += 1

    async def tool_cancelled(self, request: Any, context: Context) -> AsyncIterator[Any]:
        yield result({"cancelled": self.cancelled, "waiting": self.waiting})

    async def tool_change(self, request: Any, context: Context) -> AsyncIterator[Any]:
        await self.change()
        yield result({"extra": self.extra})

    async def tool_script(self, request: Any, context: Context) -> AsyncIterator[Any]:
        for event in self.scripts.pop(0):
            yield event

    async def tool_huge(self, request: Any, context: Context) -> AsyncIterator[Any]:
        await refuse(context, grpc.StatusCode.ABORTED, "REASON", "x" * 20_000)
        yield

    async def tool_lasting(self, request: Any, context: Context) -> AsyncIterator[Any]:
        """Give the result, and leave the call open."""
        self.waiting += 1
        try:
            yield result({"a": 1})
            await asyncio.get_running_loop().create_future()
        finally:
            self.waiting -= 1

    async def tool_fail(self, request: Any, context: Context) -> AsyncIterator[Any]:
        wanted = json.loads(request.arguments_json)
        code = grpc.StatusCode[wanted["status"]]
        if "reason" in wanted:
            await refuse(context, code, wanted["reason"], wanted.get("text", ""))
        await context.abort(code, wanted.get("text", ""))
        yield

    async def change(self) -> None:
        """Add a tool, and tell those who watch."""
        self.extra.append(f"extra{len(self.extra)}")
        async with self.changed:
            self.revision = f"r{len(self.extra)}"
            self.changed.notify_all()


def result(structured: Any, **fields: Any) -> pb.CallToolResponse:
    """Return the event that ends a call; bytes are sent as they are."""
    spelled = structured if isinstance(structured, bytes) else json.dumps(structured).encode()
    given = {"structured_content_json": spelled, **fields}
    return pb.CallToolResponse(result=pb.CallResult(**given))


def progress(done: float, **fields: Any) -> pb.CallToolResponse:
    return pb.CallToolResponse(progress=pb.Progress(progress=done, **fields))


async def refuse(context: Context, code: grpc.StatusCode, reason: str, text: str = "") -> None:
    """End an RPC in a status with details, as the protocol wants."""
    status = status_pb2.Status(code=code.value[0], message=text or reason)
    info = error_details_pb2.ErrorInfo(domain="thoughtgate.tools.v1", reason=reason)
    bad = error_details_pb2.BadRequest()
    bad.field_violations.add(field="/a", description="must be odd")
    for detail in (info, bad):
        status.details.add().Pack(detail)
    trailers = (("grpc-status-details-bin", status.SerializeToString()),)
    await context.abort(code, text or reason, trailers)


async def not_serving(request: bytes, context: Context) -> bytes:
    """Answer any RPC as a server's health does that does not serve."""
    return b"\x08\x02"


class Sick(grpc.GenericRpcHandler):
    """Has the standard service of health, which says that nothing is served."""

    def service(self, details: Any) -> Any:
        if details.method != "/grpc.health.v1.Health/Check":
            return None
        return grpc.unary_unary_rpc_method_handler(not_serving)


@asynccontextmanager
async def serving(
    peer: NativePeer,
    *,
    address: str = "127.0.0.1:0",
    proof: grpc.ServerCredentials | None = None,
    more: grpc.GenericRpcHandler | None = None,
    age: float = 3600.0,
) -> AsyncIterator[int]:
    """Serve a peer; yields its port. Connections are ended after so many seconds."""
    options = [("grpc.so_reuseport", 0), ("grpc.max_connection_age_ms", int(age * 1000))]
    server = grpc.aio.server(options=options)
    stubs.add_ToolServerServicer_to_server(peer, server)
    if more is not None:
        server.add_generic_rpc_handlers((more,))
    if proof is None:
        port = server.add_insecure_port(address)
    else:
        port = server.add_secure_port(address, proof)
    await server.start()
    try:
        yield port
    finally:
        await within(server.stop(None))


def grpc_server(url: str, *, tls: Tls | None = None, **fields: Any) -> Server:
    """Return server `peer` at a URL."""
    headers = fields.pop("headers", {})
    transport = GrpcTransport(url=url, headers=headers, tls=tls or Tls())
    return Server(name="peer", transport=transport, **fields)
