"""The fake server over gRPC, in the gateway's own protocol, behind a front that can break HTTP/2.

Never used beyond loopback; whatever a tool or a fault says in MCP is said in the protocol's events.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import grpc
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2

from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.testing.fake_host import FakeServer
from thoughtgate.testing.fake_turn import Turn
from thoughtgate.testing.faults import CONNECT, STREAM, Kind
from thoughtgate.testing.grpc_front import Front, Line
from thoughtgate.wire import codes, methods
from thoughtgate.wire.messages import (
    BadMessage,
    Failure,
    Notification,
    Reply,
    Request,
    decode,
    encode_request,
)
from thoughtgate_proto.tools.v1 import tool_server_pb2 as pb

SERVICE: Final = "thoughtgate.tools.v1.ToolServer"
DOMAIN: Final = "thoughtgate.tools.v1"
MAX_MESSAGE: Final = 64 << 20

Context = grpc.aio.ServicerContext[Any, Any]

_STATUSES: Final = {status.value[0]: status for status in grpc.StatusCode}
_OF_MCP: Final = {
    codes.INVALID_PARAMS: grpc.StatusCode.INVALID_ARGUMENT,
    codes.METHOD_NOT_FOUND: grpc.StatusCode.UNIMPLEMENTED,
}
_REASONS: Final = {
    grpc.StatusCode.INVALID_ARGUMENT: "INVALID_ARGUMENTS",
    grpc.StatusCode.NOT_FOUND: "UNKNOWN_TOOL",
    grpc.StatusCode.FAILED_PRECONDITION: "REVISION_STALE",
    grpc.StatusCode.ABORTED: "IN_PROGRESS",
    grpc.StatusCode.ALREADY_EXISTS: "CALL_ID_REUSED",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "OVERLOADED",
}
_NO_MESSAGE: Final = b"\xff\xff\xff"
_ALERT: Final = b"\x15\x03\x03\x00\x02\x02\x46"
"""What a server of TLS says to whom it does not understand."""


class FakeGrpc:
    """The fake server as a gRPC server behind a front; `revision` is that of its tools."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.front: Front
        self.revision = 0
        self._calls = 0

    @property
    def url(self) -> str:
        """Return where the server is reached."""
        return f"grpc://127.0.0.1:{self.front.port}"

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the methods of the service."""
        one: Any = grpc.unary_unary_rpc_method_handler
        many: Any = grpc.unary_stream_rpc_method_handler
        table = {
            "GetServerInfo": one(self._info, pb.GetServerInfoRequest.FromString, _packed),
            "ListTools": one(self._list, pb.ListToolsRequest.FromString, _packed),
            "CallTool": many(self._call, pb.CallToolRequest.FromString, _packed),
            "WatchTools": many(self._watch, pb.WatchToolsRequest.FromString, _packed),
        }
        return grpc.method_handlers_generic_handler(SERVICE, table)

    def greet(self) -> bytes | None:
        """Return how a new connection is met, as `Front` has it."""
        fault = self.server.faults.pick(CONNECT)
        if fault is None:
            return b""
        self.server.log.note("struck", fault=fault.name.value, on=CONNECT)
        if fault.name in {Kind.HANG, Kind.HALF_OPEN}:
            return None
        if fault.name is Kind.WRONG:
            return _ALERT
        return b"HTTP/1.1 %d X\r\ncontent-length: 0\r\n\r\n" % (fault.code or 400)

    async def _info(self, request: pb.GetServerInfoRequest, context: Context) -> object:
        await self._asked(methods.INITIALIZE, {}, context)
        return pb.GetServerInfoResponse(name="fake", version="1", instructions="break me")

    async def _list(self, request: pb.ListToolsRequest, context: Context) -> object:
        params = {"cursor": request.page_token} if request.page_token else {}
        result = json.loads(await self._asked(methods.TOOLS_LIST, params, context) or "{}")
        return pb.ListToolsResponse(
            tools=map(_tool, result.get("tools", ())),
            next_page_token=result.get("nextCursor", ""),
            revision=str(self.revision),
        )

    async def _asked(self, method: str, params: JsonObject, context: Context) -> bytes:
        """Let the server answer a request of MCP, and return its result."""
        out = _GrpcOut(context, self.front.line(context.peer()))
        await self.server.take(encode_request(0, method, params), out)
        return out.result

    async def _call(self, request: pb.CallToolRequest, context: Context) -> None:
        meta = json.loads(request.meta_json or b"{}")
        if request.want_progress:
            meta["progressToken"] = "p"
        arguments = json.loads(request.arguments_json or b"{}")
        params = {"name": request.name, "arguments": arguments, "_meta": meta}
        self._calls += 1
        out = _GrpcOut(context, self.front.line(context.peer()), id_=self._calls)
        cancelled = asyncio.Event()
        data = encode_request(self._calls, methods.TOOLS_CALL, params)
        serving = asyncio.ensure_future(self.server.take(data, out, {}, cancelled))
        self.server.background.add(serving)
        serving.add_done_callback(self._served)
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            cancelled.set()
            self.server.log.note("cancelled", tool=request.name, arguments=arguments)
            raise

    def _served(self, serving: "asyncio.Task[None]") -> None:
        self.server.background.discard(serving)
        if not serving.cancelled():
            serving.exception()  # the call had it, unless it was over already

    async def _watch(self, request: pb.WatchToolsRequest, context: Context) -> None:
        async def changed() -> None:
            self.revision += 1
            with suppress(grpc.aio.BaseError):
                await context.write(pb.WatchToolsResponse(revision=str(self.revision)))

        async def follow(turn: Turn) -> None:
            if request.known_revision != str(self.revision):
                await context.write(pb.WatchToolsResponse(revision=str(self.revision)))
            self.server.listeners.add(changed)
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.server.listeners.discard(changed)

        out = _GrpcOut(context, self.front.line(context.peer()))
        watching = Request(id=0, method=STREAM, params={})
        turn = Turn(server=self.server, request=watching, era=Era.HANDSHAKE, out=out)
        await self.server.strike(turn, follow)


class _GrpcOut:
    """One RPC as `Out`: messages of MCP become events, and a failure becomes its status."""

    def __init__(self, context: Context, line: Line | None, id_: int = 0) -> None:
        self.lasting = False
        self.session = ""
        self.result = b""
        self._context = context
        self._line = line
        self._id = id_
        self._rest = b""

    async def send(self, data: bytes) -> None:
        try:
            message = decode(data)
        except BadMessage:
            await self._write(_broken(data))
            return
        if isinstance(message, Failure):
            await self._abort(message)
        elif isinstance(message, Notification):
            if message.method == methods.PROGRESS:
                progress = {k: v for k, v in message.params.items() if k != "progressToken"}
                await self._write(pb.CallToolResponse(progress=pb.Progress(**progress)))
        elif isinstance(message, Reply) and message.id != self._id:
            await self._write(_NO_MESSAGE)
        elif isinstance(message, Reply) and self._id:
            await self._write(pb.CallToolResponse(result=_result(message.value)))
        elif isinstance(message, Reply):
            self.result = message.result

    def framed(self, data: bytes) -> bytes:
        return data + b"\n" if data else b""

    async def raw(self, *parts: bytes) -> None:
        """Send the messages that are whole; of half a message there is a sign of life only."""
        given = 0 if self._line is None else self._line.given
        if self._line is not None and len(parts) > 1:
            self._line.slowly = sum(map(len, parts))
        for part in parts:
            *whole, self._rest = (self._rest + part).split(b"\n")
            for data in whole:
                await self.send(data)
        if self._rest:
            await self._write(pb.CallToolResponse(progress=pb.Progress(progress=0.5)))
        if self._line is not None:
            await self._line.gives(given)

    async def event(self, event: bytes) -> None:
        await self._write(b"")

    async def refuse(self, status: int, location: str = "") -> bool:
        if self._line is not None:
            self._line.refuse(status, location)
        await asyncio.get_running_loop().create_future()
        return True

    async def freeze(self) -> None:
        if self._line is not None:
            self._line.freeze()
        await asyncio.get_running_loop().create_future()

    async def end(self, code: int | None = None) -> bool:
        if code is not None and self._line is not None:
            self._line.go_away(code, "too_many_pings" if code else "")
            if code:
                self.cut(code)
        return True

    def cut(self, code: int) -> None:
        if self._line is not None:
            self._line.cut()
        raise ConnectionAbortedError

    async def _write(self, event: object) -> None:
        with suppress(grpc.aio.BaseError):  # the call is over
            await self._context.write(event)

    async def _abort(self, failure: Failure) -> None:
        code = _STATUSES.get(failure.code) or _OF_MCP.get(failure.code, grpc.StatusCode.INTERNAL)
        said: JsonObject = failure.data if isinstance(failure.data, dict) else {}
        trailers: list[tuple[str, str | bytes]] = [
            ("grpc-status-details-bin", _details(code, failure.message, said))
        ]
        if said.get("trailers"):
            trailers.append(("x-large", "x" * int(said["trailers"])))
        await self._context.abort(code, failure.message, tuple(trailers))


def _details(code: grpc.StatusCode, text: str, said: JsonObject) -> bytes:
    status = status_pb2.Status(code=code.value[0], message=text)
    if code in _REASONS:
        info = error_details_pb2.ErrorInfo(domain=DOMAIN, reason=_REASONS[code])
        status.details.add().Pack(info)
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        wrong = error_details_pb2.BadRequest.FieldViolation(field="/n", description=text)
        status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[wrong]))
    if said.get("retryAfter"):
        delay = duration_pb2.Duration(seconds=int(said["retryAfter"]))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    packed: bytes = status.SerializeToString()
    return packed


def _packed(message: Any) -> bytes:
    packed: bytes = message if type(message) is bytes else message.SerializeToString()
    return packed


def _tool(tool: JsonObject) -> pb.Tool:
    said = tool.get("annotations", {})
    hints = pb.ToolHints()
    if "readOnlyHint" in said:
        hints.read_only = said["readOnlyHint"]
    if "idempotentHint" in said:
        hints.idempotent = said["idempotentHint"]
    return pb.Tool(
        name=tool["name"],
        description=tool["description"],
        input_schema_json=json.dumps(tool["inputSchema"]).encode(),
        hints=hints,
    )


def _result(value: JsonObject) -> pb.CallResult:
    made = pb.CallResult(is_error=bool(value.get("isError")))
    made.content_json = _json(value.get("content", []))
    if "structuredContent" in value:
        made.structured_content_json = _json(value["structuredContent"])
    if "_meta" in value:
        made.meta_json = _json(value["_meta"])
    return made


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _broken(data: bytes) -> pb.CallToolResponse:
    """Return a result whose content is what stands as the result of a reply that is none."""
    inner = data.partition(b'"result":')[2].rstrip(b"\n")[:-1]
    return pb.CallToolResponse(result=pb.CallResult(content_json=inner))


@asynccontextmanager
async def fake_grpc(server: FakeServer | None = None, port: int = 0) -> AsyncIterator[FakeGrpc]:
    """Serve a fake server by gRPC on loopback while the block runs."""
    fake = FakeGrpc(server or FakeServer())
    size = ("grpc.max_receive_message_length", MAX_MESSAGE)
    behind = grpc.aio.server(options=[size, ("grpc.so_reuseport", 0)])
    behind.add_generic_rpc_handlers((fake.handlers(),))
    fake.front = Front(behind.add_insecure_port("127.0.0.1:0"), fake.greet)
    await fake.front.start(port)
    await behind.start()
    try:
        yield fake
    finally:
        await fake.front.stop()
        await behind.stop(None)
        for task in set(fake.server.background):
            task.cancel()


async def serve_grpc(server: FakeServer, port: int) -> None:
    """Serve until the process ends, and say on standard output where."""
    async with fake_grpc(server, port) as fake:
        sys.stdout.write(f"listening on {fake.url}\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().create_future()
