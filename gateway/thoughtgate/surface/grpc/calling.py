"""A call over gRPC: a message becomes a call, and its result a message.

Never rebuilds what a server returned: content and structured content stay the bytes that came.
"""

import asyncio
import secrets
from collections.abc import Mapping
from itertools import count
from typing import Final

import msgspec

from thoughtgate.core.calls import (
    Call,
    Notice,
    NoticeKind,
    Principal,
    Question,
    Result,
    Session,
    ToolName,
)
from thoughtgate.core.errors import GateError, Malformed, NotAsked
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.servers import Era
from thoughtgate.core.traces import SpanContext, parse_traceparent
from thoughtgate.surface.desk import Desk
from thoughtgate.surface.errors import result_for_models
from thoughtgate.surface.grpc.errors import DOMAIN, BadField
from thoughtgate.surface.grpc.ports import DomainGateway
from thoughtgate.surface.grpc.rpcs import Rpc
from thoughtgate.wire.messages import BadMessage
from thoughtgate.wire.methods import read_meta
from thoughtgate.wire.strict import parse
from thoughtgate_proto.gateway.v1.gateway_pb2 import CallToolRequest, CallToolResponse
from thoughtgate_proto.tools.v1.tool_server_pb2 import CallResult, Progress

ORIGIN: Final = "grpc"
"""The face, as sessions, spans and audit rows name it."""

SESSION: Final = Session(
    id="", era=Era.HANDSHAKE, version=DOMAIN, client={"name": "gRPC client"}, origin=ORIGIN
)
"""Every client over gRPC: it holds nothing between two calls, and cannot be asked anything."""

_MARGIN: Final = 0.2
"""Seconds before the caller's deadline at which a call ends, so that it hears how."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Caller:
    """Carries calls through the gateway's path; `seconds` bounds each beyond the tool's own."""

    def __init__(self, gateway: DomainGateway, desk: Desk, seconds: float) -> None:
        self._gateway = gateway
        self._desk = desk
        self._seconds = seconds
        self._prefix = secrets.token_hex(8)
        self._numbers = count(1)

    async def call(self, request: CallToolRequest, domain: str, who: Principal, rpc: Rpc) -> None:
        """Carry one call and write its progress and its result.

        Raises:
            GateError: What is no result, not even one that says that the tool failed.
        """
        outlet = Outlet(rpc, wanted=request.want_progress)
        call = self._call(request, domain, who, rpc, outlet)
        try:
            result = await self._gateway.call(call)
        except GateError as error:
            shown = result_for_models(error)
            if shown is None:
                raise
            result = Result(raw=shown, is_error=True)
        else:
            result = self._desk.translated(call, result)
        outlet.close()
        await rpc.write(CallToolResponse(result=result_of(result)).SerializeToString())

    def _call(
        self, request: CallToolRequest, domain: str, who: Principal, rpc: Rpc, outlet: "Outlet"
    ) -> Call:
        meta = _object(request.meta_json, "/meta_json")
        try:
            read = read_meta({"_meta": meta})
        except BadMessage as error:
            raise BadField(field="/meta_json", message=error.message) from None
        return Call(
            id=f"{self._prefix}-{next(self._numbers)}",
            target=ToolName(domain=domain, name=request.name),
            arguments=_object(request.arguments_json, "/arguments_json"),
            principal=who,
            session=SESSION,
            domain=domain,
            deadline=asyncio.get_running_loop().time() + self._patience(rpc.seconds()),
            listener=outlet,
            meta=read.kept,
            trace=read.trace or _trace(rpc.metadata),
            wants_progress=request.want_progress,
        )

    def _patience(self, left: float | None) -> float:
        """Return how long a call may take: a little less than the caller waits."""
        if left is None:
            return self._seconds
        return min(self._seconds, max(left - _MARGIN, left / 2))


class Outlet:
    """A call's listener: progress becomes messages; nothing comes after the result."""

    __slots__ = ("_closed", "_rpc", "_wanted")

    def __init__(self, rpc: Rpc, *, wanted: bool) -> None:
        self._rpc = rpc
        self._wanted = wanted
        self._closed = False

    async def notify(self, notice: Notice) -> None:
        """Send progress that was asked for."""
        if self._closed or not self._wanted or notice.kind is not NoticeKind.PROGRESS:
            return
        progress = progress_of(notice.params)
        if progress is not None:
            await self._rpc.write(CallToolResponse(progress=progress).SerializeToString())

    async def ask(self, question: Question) -> bytes:
        """Refuse: a client over gRPC cannot be asked.

        Raises:
            NotAsked: Always.
        """
        raise NotAsked(message=f"a client over gRPC cannot be asked for {question.method[:80]}")

    def close(self) -> None:
        """Send nothing more."""
        self._closed = True


def result_of(result: Result) -> CallResult:
    """Return the message of a result: its members as they came."""
    members = _members(result.raw)
    made = CallResult(
        content_json=bytes(members.get("content", b"")),
        is_error=result.is_error,
        meta_json=bytes(members.get("_meta", b"")),
    )
    if "structuredContent" in members:
        made.structured_content_json = bytes(members["structuredContent"])
    return made


def progress_of(params: JsonObject) -> Progress | None:
    """Return the message of a progress notice, None when it does not say how far the call is."""
    done = _number(params.get("progress"))
    if done is None:
        return None
    message = params.get("message")
    return Progress(
        progress=done,
        total=_number(params.get("total")),
        message=message if isinstance(message, str) else "",
    )


def _number(value: JsonValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _object(data: bytes, field: str) -> JsonObject:
    """Return the object that a field spells; an empty one is an empty object."""
    if not data:
        return {}
    try:
        value = parse(data)
    except Malformed as error:
        raise BadField(field=field, message=error.message) from None
    if not isinstance(value, dict):
        raise BadField(field=field, message="it must be a JSON object")
    return value


def _trace(metadata: Mapping[str, str | bytes]) -> SpanContext | None:
    return parse_traceparent(metadata.get("traceparent"), metadata.get("tracestate", ""))
