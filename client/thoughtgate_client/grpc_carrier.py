"""Tools and calls over gRPC, by the protocol `thoughtgate.gateway.v1`.

Never loaded unless an address asks for it, and never leaves a stream open that nobody reads.
"""

import asyncio
import ipaddress
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, urlsplit

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry

from thoughtgate_client.carrier import Page, Wanted
from thoughtgate_client.errors import (
    ConnectionLost,
    Garbled,
    GateError,
    Refused,
    TimedOut,
    Unreachable,
)
from thoughtgate_client.values import Progress, Tool, ToolResult
from thoughtgate_proto.gateway.v1.gateway_pb2 import (
    CallToolRequest,
    Domain,
    ListDomainsRequest,
    ListToolsRequest,
)
from thoughtgate_proto.gateway.v1.gateway_pb2_grpc import GatewayServerStub
from thoughtgate_proto.tools.v1 import tool_server_pb2 as wire

if TYPE_CHECKING:
    from thoughtgate_proto.gateway.v1.gateway_pb2_grpc import GatewayServerAsyncStub

VERSION: Final = "thoughtgate.gateway.v1"
_DEFAULT: Final = "default"
_LATER: Final = 5.0
"""Seconds beyond our own patience at which the server gives a call up by itself."""

_INVALID_PARAMS, _NO_METHOD, _INTERNAL = -32602, -32601, -32603
_CODES: Final = {
    grpc.StatusCode.INVALID_ARGUMENT: _INVALID_PARAMS,
    grpc.StatusCode.NOT_FOUND: _INVALID_PARAMS,
    grpc.StatusCode.UNIMPLEMENTED: _NO_METHOD,
}
"""The codes of JSON-RPC that mean the same: an error is one, whatever it came over."""

_KEY: Final = re.compile(r"[a-z0-9_.-]+")
_VALUE: Final = re.compile(r"[ -~]*")
_DETAILS: Final = "grpc-status-details-bin"


@asynccontextmanager
async def grpc_carrier(
    url: str, *, headers: Mapping[str, str], start_seconds: float
) -> AsyncIterator["GrpcCarrier"]:
    """Connect to `grpc://HOST:PORT/DOMAIN` and yield the connection for borrowing.

    Raises:
        Unreachable: No connection could be made in time, or there is no such domain.
    """
    place = _place(url)
    async with place.channel() as channel:
        stub: GatewayServerAsyncStub = GatewayServerStub(channel)
        metadata = _metadata(headers)
        domain = await _greeted(stub, metadata, place, start_seconds)
        yield GrpcCarrier(stub, domain, metadata)


class GrpcCarrier:
    """A carrier over one channel, for one domain."""

    def __init__(
        self, stub: "GatewayServerAsyncStub", domain: Domain, metadata: tuple[tuple[str, str], ...]
    ) -> None:
        self._stub = stub
        self._domain = domain
        self._metadata = metadata
        self._checks: dict[str, Validator | None] = {}

    @property
    def protocol_version(self) -> str:
        """The protocol that both sides speak."""
        return VERSION

    @property
    def instructions(self) -> str:
        """What the gateway says about the domain's use, empty when nothing."""
        return self._domain.instructions

    async def page(self, cursor: str | None) -> Page:
        """Return one page of tools, the first without a cursor.

        Raises:
            GateError: It could not be had.
        """
        request = ListToolsRequest(domain=self._domain.name, page_token=cursor or "")
        with _translated():
            page = await self._stub.ListTools(request, metadata=self._metadata)
        tools = tuple(map(_tool, page.tools))
        self._checks |= {tool.name: _check(tool) for tool in tools}
        return Page(tools=tools, cursor=page.next_page_token or None)

    async def call(self, wanted: Wanted) -> ToolResult:
        """Call a tool and return its result, failed or not.

        Raises:
            GateError: There is no usable result.
        """
        request = CallToolRequest(
            domain=self._domain.name,
            name=wanted.name,
            arguments_json=_spelled(wanted.arguments),
            want_progress=wanted.report is not None,
            meta_json=json.dumps(dict(wanted.meta)).encode() if wanted.meta else b"",
        )
        with _translated():
            result = _result(await self._answer(request, wanted))
        await self._hold(wanted.name, result)
        return result

    async def _answer(self, request: CallToolRequest, wanted: Wanted) -> wire.CallResult:
        """Return the one result of a call; its progress is reported on the way."""
        answer = None
        seconds = wanted.seconds + _LATER
        stream = self._stub.CallTool(request, metadata=self._metadata, timeout=seconds)
        try:
            async for event in stream:
                if answer is not None:
                    raise Garbled(message="something came after the result")
                if event.HasField("result"):
                    answer = event.result
                elif wanted.report is not None and event.HasField("progress"):
                    await wanted.report(_progress(event.progress))
        finally:
            stream.cancel()  # gRPC leaves a stream open that nobody reads any more
        if answer is None:
            raise Garbled(message="the answer ended without a result")
        return answer

    async def _hold(self, name: str, result: ToolResult) -> None:
        """Hold a result against the tool's output schema, read anew where it seems to break it."""
        if result.is_error:
            return
        if name in self._checks and _fits(self._checks[name], result):
            return
        cursor = None
        while True:
            page = await self.page(cursor)
            cursor = page.cursor
            if cursor is None:
                break
        if not _fits(self._checks.get(name), result):
            raise Garbled(message=f"the result of {name} breaks the tool's own output schema")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where an address leads."""

    target: str
    domain: str
    secure: bool
    loopback: bool

    def channel(self) -> grpc.aio.Channel:
        options = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
            ("grpc.enable_http_proxy", 0 if self.loopback else 1),
        ]
        if self.secure:
            credentials = grpc.ssl_channel_credentials()
            return grpc.aio.secure_channel(self.target, credentials, options=options)
        return grpc.aio.insecure_channel(self.target, options=options)

    def __str__(self) -> str:
        return f"{'grpcs' if self.secure else 'grpc'}://{self.target}/{self.domain}"


def _place(url: str) -> _Place:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, SplitResult("", "", "", "", "")
    domain = parts.path.strip("/") or _DEFAULT
    if not host or port is None or "/" in domain:
        raise Unreachable(
            message="not an address: write grpc://HOST:PORT or grpc://HOST:PORT/DOMAIN"
        )
    shown = f"[{host}]" if ":" in host else host
    return _Place(
        target=f"{shown}:{port}",
        domain=domain,
        secure=parts.scheme == "grpcs",
        loopback=_is_loopback(host),
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _metadata(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return headers as gRPC sends them; what it cannot send it would print, not refuse."""
    made = tuple((key.lower(), value) for key, value in headers.items())
    for key, value in made:
        if not _KEY.fullmatch(key) or key.startswith("grpc-") or not _VALUE.fullmatch(value):
            raise Unreachable(message=f"the header {key[:60]!r} cannot be sent over gRPC")
    return made


async def _greeted(
    stub: "GatewayServerAsyncStub",
    metadata: tuple[tuple[str, str], ...],
    place: _Place,
    seconds: float,
) -> Domain:
    """Return the domain as the gateway tells of it."""
    try:
        async with asyncio.timeout(seconds):
            told = await stub.ListDomains(ListDomainsRequest(), metadata=metadata)
    except TimeoutError:
        raise Unreachable(message=f"{place} did not answer within {seconds:g} s") from None
    except grpc.aio.AioRpcError as failure:
        raise Unreachable(message=f"cannot connect to {place}: {_why(failure, place)}") from None
    for domain in told.domains:
        if domain.name == place.domain:
            return domain
    raise Unreachable(message=f"cannot connect to {place}: the gateway has no such domain")


def _why(failure: grpc.aio.AioRpcError, place: _Place) -> str:
    if failure.code() is grpc.StatusCode.UNAVAILABLE:
        if place.secure:
            return (
                "nobody whose certificate is trusted speaks gRPC by TLS there; a gateway's own "
                "port has no TLS: write grpc://HOST:PORT"
            )
        return "nobody speaks gRPC there; is the gateway running (thoughtgate serve --grpc-port)"
    if failure.code() is grpc.StatusCode.UNIMPLEMENTED:
        return "what listens there is no gateway"
    return f"the server there answered: {(failure.details() or '')[:200]}"


@contextmanager
def _translated() -> Iterator[None]:
    """Turn what gRPC raises during a call into this library's errors."""
    try:
        yield
    except grpc.aio.AioRpcError as failure:
        raise _said(failure) from None
    except grpc.aio.UsageError:
        raise ConnectionLost(message="the connection is gone: connect again") from None


def _said(failure: grpc.aio.AioRpcError) -> GateError:
    code, message = failure.code(), failure.details() or "no reason was given"
    if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}:
        said = "outcome" in _data(failure)  # by the gateway, in its message
        known = "" if said else "; what was under way may have happened"
        return ConnectionLost(message=f"the connection is gone: {message}{known}")
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return TimedOut(message=message)
    return Refused(message=message, code=_CODES.get(code, _INTERNAL), data=_data(failure))


def _data(failure: grpc.aio.AioRpcError) -> dict[str, Any]:
    """Return the reason that came with a status, and what was said of it."""
    found: dict[str, Any] = {"status": failure.code().name}
    details = dict(failure.trailing_metadata() or ()).get(_DETAILS, b"")
    try:
        status = Status.FromString(details if isinstance(details, bytes) else b"")
        info = ErrorInfo()
        if any(one.Is(info.DESCRIPTOR) and one.Unpack(info) for one in status.details):
            found |= {"error": info.reason.lower(), **info.metadata}
    except DecodeError:
        pass
    return found


def _spelled(arguments: Mapping[str, Any]) -> bytes:
    """Return arguments as JSON; text that UTF-8 cannot say is for the gateway to refuse."""
    return json.dumps(arguments, ensure_ascii=False).encode(errors="surrogatepass")


def _tool(tool: wire.Tool) -> Tool:
    given = tool.HasField("output_schema_json")
    return Tool(
        name=tool.name,
        title=tool.title or tool.name,
        description=tool.description,
        input_schema=_parsed(tool.input_schema_json),
        output_schema=_parsed(tool.output_schema_json) if given else None,
        read_only=tool.hints.read_only,
        idempotent=tool.hints.idempotent,
    )


def _progress(progress: wire.Progress) -> Progress:
    total = progress.total if progress.HasField("total") else None
    return Progress(done=progress.progress, total=total, message=progress.message)


def _result(result: wire.CallResult) -> ToolResult:
    content = _parsed(result.content_json or b"[]")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise Garbled(message="the content of the result is not a list of blocks")
    structured = result.structured_content_json
    return ToolResult(
        text="\n".join(str(block.get("text")) for block in content if block.get("type") == "text"),
        structured=_parsed(structured) if structured else None,
        is_error=result.is_error,
        content=tuple(content),
        meta=_parsed(result.meta_json or b"{}"),
    )


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        raise Garbled(message="the server's answer is not well-formed JSON") from None


def _check(tool: Tool) -> Validator | None:
    if tool.output_schema is None:
        return None
    return validator_for(tool.output_schema)(tool.output_schema, registry=Registry())


def _fits(check: Validator | None, result: ToolResult) -> bool:
    try:
        return check is None or check.is_valid(result.structured)
    except SchemaError:
        return False
