"""The one table from errors to what a client over gRPC sees: a status with `google.rpc` details.

Never shows what went wrong inside us: a bug is a correlation id, the detail is in the log.
"""

import logging
import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, ResourceInfo, RetryInfo
from google.rpc.status_pb2 import Status

from thoughtgate.core.errors import (
    CallerError,
    CallerReplied,
    Conflict,
    GateError,
    InvalidArguments,
    InvalidResult,
    Malformed,
    Missing,
    NotAsked,
    Overloaded,
    Refused,
    UnknownTarget,
    UpstreamDenied,
    UpstreamError,
    UpstreamFailed,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamRefused,
    UpstreamReplied,
    UpstreamTimeout,
    UpstreamUnreachable,
    facts,
    told,
)
from thoughtgate.wire import codes
from thoughtgate.wire.strict import dumps

DOMAIN: Final = "thoughtgate.gateway.v1"
"""Whose reasons these are, in `ErrorInfo`."""

DETAILS_KEY: Final = "grpc-status-details-bin"

MOST_DETAILS: Final = 3_000
"""Bytes of details: with the message, twice and escaped, a reply's head stays below 8 kB."""

_MOST_MESSAGE: Final = 400
_MOST_VALUE: Final = 160
_MOST_PLACES: Final = 1_400
_MOST_FACTS: Final = 5
"""The shares of all this: bytes, and how many facts come with a reason."""

_AGAIN: Final = Duration(seconds=1)
"""When it is worth to try again what found no room."""

_log = logging.getLogger("thoughtgate.surface")

_Code = grpc.StatusCode

STATUSES: Final[Mapping[type[GateError], grpc.StatusCode]] = {
    CallerError: _Code.INVALID_ARGUMENT,
    Malformed: _Code.INVALID_ARGUMENT,
    InvalidArguments: _Code.INVALID_ARGUMENT,
    UnknownTarget: _Code.NOT_FOUND,
    Missing: _Code.NOT_FOUND,
    CallerReplied: _Code.FAILED_PRECONDITION,
    NotAsked: _Code.FAILED_PRECONDITION,
    Refused: _Code.PERMISSION_DENIED,
    Conflict: _Code.ABORTED,
    Overloaded: _Code.RESOURCE_EXHAUSTED,
    UpstreamError: _Code.UNKNOWN,
    UpstreamReplied: _Code.UNKNOWN,
    UpstreamUnreachable: _Code.UNAVAILABLE,
    UpstreamLost: _Code.UNAVAILABLE,
    UpstreamTimeout: _Code.DEADLINE_EXCEEDED,
    UpstreamGarbled: _Code.INTERNAL,
    UpstreamDenied: _Code.FAILED_PRECONDITION,
    UpstreamRefused: _Code.FAILED_PRECONDITION,
    UpstreamFailed: _Code.INTERNAL,
    InvalidResult: _Code.INTERNAL,
}
"""The status of each class of errors that a client may see; of all others it sees an id."""

_REPLIED: Final = {
    codes.INVALID_PARAMS: _Code.INVALID_ARGUMENT,
    codes.METHOD_NOT_FOUND: _Code.UNIMPLEMENTED,
}
"""The statuses of a tool server's own JSON-RPC errors; all others are UNKNOWN."""


class Failure(NamedTuple):
    """How an RPC ends that has no result."""

    code: grpc.StatusCode
    message: str
    details: bytes


class BadField(Malformed):
    """A field of a request that cannot be read; `field` is its JSON pointer."""

    def __init__(self, *, field: str, message: str) -> None:
        super().__init__(message=f"{field.removeprefix('/')}: {message}")
        self.field = field


def failure_by(error: BaseException) -> Failure:
    """Return how an error ends an RPC; what is not the caller's nor a server's is hidden."""
    if not isinstance(error, GateError):
        return _bug(error)
    code = _status(error)
    if code is None:
        return _bug(error)
    details: list[Message] = [_info(error)]
    if isinstance(error, UnknownTarget):
        details.append(
            ResourceInfo(resource_type=error.kind, resource_name=_cut(error.name, _MOST_VALUE))
        )
    elif isinstance(error, Overloaded):
        details.append(RetryInfo(retry_delay=_AGAIN))
    elif isinstance(error, BadField):
        details.append(_bad_request({error.field: error.message}))
    elif isinstance(error, InvalidArguments):
        places = {one.pointer or "/": f"{one.keyword}: {one.hint}" for one in error.problems}
        details.append(_bad_request(places))
    return _failure(code, told(error), details)


def _fixed(code: grpc.StatusCode, reason: str, message: str, outcome: str = "") -> Failure:
    metadata = {"outcome": outcome} if outcome else {}
    info = ErrorInfo(domain=DOMAIN, reason=reason, metadata=metadata)
    return _failure(code, message, [info])


def _failure(code: grpc.StatusCode, message: str, details: list[Message]) -> Failure:
    shown = _cut(message, _MOST_MESSAGE)
    number, _ = code.value
    status = Status(code=number, message=shown)
    for detail in details:
        packed = Any()
        packed.Pack(detail)
        if status.ByteSize() + packed.ByteSize() < MOST_DETAILS:
            status.details.append(packed)
    return Failure(code, shown, status.SerializeToString())


def _status(error: GateError) -> grpc.StatusCode | None:
    if isinstance(error, UpstreamReplied):
        return _REPLIED.get(error.rpc_code, _Code.UNKNOWN)
    return next((STATUSES[one] for one in type(error).__mro__ if one in STATUSES), None)


def _info(error: GateError) -> ErrorInfo:
    said = {key: value for key, value in facts(error).items() if key not in {"problems", "detail"}}
    metadata = {key[:64]: _short(value) for key, value in list(said.items())[:_MOST_FACTS]}
    return ErrorInfo(domain=DOMAIN, reason=error.code.upper(), metadata=metadata)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else dumps(value).decode()
    return _cut(text, _MOST_VALUE)


def _cut(text: str, most: int) -> str:
    """Return as much of a text as some bytes hold."""
    data = text.encode(errors="replace")
    return data.decode() if len(data) <= most else data[: most - 3].decode(errors="ignore") + "…"


def _bad_request(places: Mapping[str, str]) -> BadRequest:
    """Return what is wrong where, as much of it as there is room for."""
    bad = BadRequest()
    for field, why in places.items():
        one = BadRequest.FieldViolation(
            field=_cut(field, _MOST_VALUE), description=_cut(why, _MOST_VALUE)
        )
        if bad.ByteSize() + one.ByteSize() > _MOST_PLACES:
            break
        bad.field_violations.append(one)
    return bad


def _bug(error: BaseException) -> Failure:
    """Log an exception under a fresh id, and return only that id."""
    incident = secrets.token_hex(8)
    _log.error("request failed", exc_info=error, extra={"incident": incident})
    info = ErrorInfo(domain=DOMAIN, reason="INTERNAL_ERROR", metadata={"id": incident})
    return _failure(_Code.INTERNAL, f"internal error; look for {incident} in the log", [info])


STOPPING: Final = _fixed(
    _Code.UNAVAILABLE,
    UpstreamLost.code.upper(),
    "the gateway is stopping; ask again later, but what was asked may have been carried out",
    UpstreamLost.outcome,
)
"""What a client hears that did not give its call up."""

ENDED: Final = _fixed(_Code.UNAVAILABLE, "STOPPING", "the gateway is stopping; ask again later")
"""What a client hears that watches."""

STALLED: Final = _fixed(
    _Code.ABORTED, "STALLED", "the client does not read what it is told; nothing more is sent"
)

CANCELLED: Final = _fixed(_Code.CANCELLED, "CANCELLED", "the caller gave up")

LATE: Final = _fixed(
    _Code.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", "no time was left for it; nothing was sent"
)
