"""The one table from the status of an RPC to what callers are told of it.

Never passes on the text of a status that a server did not mean for callers: an exception's text
may hold anything. Such a failure gets a reference, which is in the log too.
"""

import logging
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from thoughtgate.core.errors import (
    UpstreamDenied,
    UpstreamError,
    UpstreamFailed,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from thoughtgate.core.json import JsonObject, JsonValue

_log = logging.getLogger(__name__)

MAX_TEXT = 2_000
"""Characters of a server's own text that are passed on."""

MAX_FIELD = 300
"""Characters of one part of a status' details."""

MAX_DETAILS = 16
"""Details of one status, and violations of one detail, that are looked at."""

_DETAILS_KEY = "grpc-status-details-bin"
_LARGER = re.compile(r"message larger than max \((\d+) vs\. (\d+)\)")
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]+"
)
_NOT_CONNECTED = ("failed to connect to all addresses", "errors resolving", "DNS resolution failed")
_WHY_NOT: Mapping[str, str] = {
    "Connection refused": "nobody listens there",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is from no authority that is trusted here;"
    " name the authority's file as ca",
    "Hostname Verification Check failed": "its certificate is for another name; if that one is"
    " right, give it as the server's name",
    "WRONG_VERSION_NUMBER": "it does not speak TLS; use grpc:// if that is intended",
    "CERTIFICATE_REQUIRED": "it wants a client certificate; give cert and key",
    "Socket closed": "it closed the connection at once; perhaps it wants TLS (grpcs://), or a"
    " client certificate",
    "http1.x server": "it speaks HTTP/1, not gRPC",
    "errors resolving": "its name is not known",
    "DNS resolution failed": "its name is not known",
    "Timeout": "it does not answer",
    "timed out": "it does not answer",
    "unreachable": "there is no way to it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What a status says beside its code and its text, within bounds.

    `reason` and `domain` are those of its ErrorInfo; `violations` hold `pointer` and `message`;
    `retry_after` is in seconds; `resource` is what it names.
    """

    reason: str = ""
    domain: str = ""
    violations: tuple[JsonObject, ...] = ()
    retry_after: float | None = None
    resource: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A status that is not OK, read; `connected` says whether the channel was when it came."""

    code: grpc.StatusCode
    text: str
    details: Details = field(default_factory=Details)
    connected: bool = True


def status_of(error: grpc.aio.AioRpcError, *, connected: bool = True) -> Status:
    """Return what an RPC ended in."""
    trailers = error.trailing_metadata() or ()
    packed = next((value for key, value in trailers if key == _DETAILS_KEY), b"")
    return Status(
        code=error.code(),
        text=error.details() or "",
        details=read_details(packed) if isinstance(packed, bytes) else Details(),
        connected=connected,
    )


def failure(status: Status) -> UpstreamError:
    """Return the error that callers get for a status."""
    return _TABLE.get(status.code, _unexplained)(status)


def read_details(packed: bytes) -> Details:
    """Return the details of a packed `google.rpc.Status`; what cannot be read is left out."""
    found = Details()
    try:
        for any_ in status_pb2.Status.FromString(packed).details[:MAX_DETAILS]:
            reader = _READERS.get(any_.type_url.rpartition("/")[2])
            if reader is not None:
                found = reader(found, any_.value)
    except DecodeError:
        return found
    return found


def shown(text: str, limit: int = MAX_TEXT) -> str:
    """Return foreign text in one line, without what does not print, cut to so many characters."""
    plain = _UNPRINTABLE.sub(" ", text[: 4 * limit]).strip()
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def _refused(status: Status) -> UpstreamError:
    """Return the error for a call that a server will not do, in the server's own words."""
    said = shown(status.text) or "it does not say why"
    return UpstreamRefused(message=f"{status.code.name}: {said}", data=_facts(status))


def _bad_arguments(status: Status) -> UpstreamError:
    violations = status.details.violations
    if not violations:
        return _refused(status)
    said = "; ".join(f"{one['pointer'] or '(all)'} {one['message']}" for one in violations)
    message = f"it does not take the arguments: {shown(said)}"
    return UpstreamRefused(message=message, data=_facts(status))


def _aborted(status: Status) -> UpstreamError:
    if status.details.reason == "IN_PROGRESS":
        message = "a call with the same id still runs there; ask again later"
        return UpstreamFailed(message=message, data=_facts(status))
    return _refused(status)


def _forbidden(status: Status) -> UpstreamError:
    message = "it does not allow this to the gateway; an operator must act"
    return UpstreamRefused(message=message, data={"grpcStatus": status.code.name})


def _missing(status: Status) -> UpstreamError:
    message = "it does not offer this method (any more)"
    return UpstreamRefused(message=message, data={"grpcStatus": status.code.name})


def _denied(status: Status) -> UpstreamError:
    return UpstreamDenied(
        message="it refuses the gateway's credentials; set new headers, or a client certificate",
        data={"grpcStatus": status.code.name},
    )


def _late(status: Status) -> UpstreamError:
    return UpstreamTimeout(message="no answer within the deadline")


def _unavailable(status: Status) -> UpstreamError:
    """Return whether a request is lost, or was never sent: our own side says so, connectionless.

    A server that is connected may pass on such words of a server behind it.
    """
    if status.connected or not status.text.startswith(_NOT_CONNECTED):
        return UpstreamLost(message="it broke the call off, or the connection to it broke")
    why = next((said for sign, said in _WHY_NOT.items() if sign in status.text), "")
    return UpstreamUnreachable(message=f"it cannot be reached: {why or shown(status.text, 300)}")


def _exhausted(status: Status) -> UpstreamError:
    """Tell a size, which no later call will mend, from a quota."""
    larger = _LARGER.search(status.text)
    if larger and "CLIENT: Received" in status.text:
        return UpstreamGarbled(message=f"its answer is larger than {larger[2]} bytes")
    if larger:
        message = f"the arguments are larger than the {larger[2]} bytes that it takes"
        return UpstreamRefused(message=message, data={"grpcStatus": status.code.name})
    if "metadata size exceeds" in status.text:
        return UpstreamGarbled(message="the headers of its answer are larger than 16 kB")
    return _refused(status)


def _broken_off(status: Status) -> UpstreamError:
    return UpstreamFailed(message="it cancelled the call", data={"grpcStatus": status.code.name})


def _unexplained(status: Status) -> UpstreamError:
    """Return the error for a failure whose text may hold anything, under a fresh reference."""
    incident = secrets.token_hex(8)
    _log.warning("incident %s: a tool server failed with %s", incident, status.code.name)
    _log.debug("incident %s: it said %s", incident, shown(status.text))
    return UpstreamFailed(
        message=f"it failed with {status.code.name}; look for {incident} in the log",
        data={"grpcStatus": status.code.name, "id": incident},
    )


def _facts(status: Status) -> JsonObject:
    """Return what programs are told of a status beside its text."""
    details = status.details
    facts: dict[str, JsonValue] = {"grpcStatus": status.code.name}
    if details.reason:
        facts["reason"] = details.reason
    if details.violations:
        facts["violations"] = list(details.violations)
    if details.resource:
        facts["resource"] = details.resource
    if details.retry_after is not None:
        facts["retryAfter"] = details.retry_after
    return facts


_TABLE: Mapping[grpc.StatusCode, Callable[[Status], UpstreamError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: _bad_arguments,
    grpc.StatusCode.NOT_FOUND: _refused,
    grpc.StatusCode.UNIMPLEMENTED: _missing,
    grpc.StatusCode.DEADLINE_EXCEEDED: _late,
    grpc.StatusCode.UNAVAILABLE: _unavailable,
    grpc.StatusCode.RESOURCE_EXHAUSTED: _exhausted,
    grpc.StatusCode.UNAUTHENTICATED: _denied,
    grpc.StatusCode.PERMISSION_DENIED: _forbidden,
    grpc.StatusCode.FAILED_PRECONDITION: _refused,
    grpc.StatusCode.ABORTED: _aborted,
    grpc.StatusCode.ALREADY_EXISTS: _refused,
    grpc.StatusCode.OUT_OF_RANGE: _refused,
    grpc.StatusCode.CANCELLED: _broken_off,
}
"""All others, UNKNOWN, INTERNAL and DATA_LOSS, say nothing that callers may see."""


def _read_info(found: Details, packed: bytes) -> Details:
    info = error_details_pb2.ErrorInfo.FromString(packed)
    return replace(found, reason=_field(info.reason), domain=_field(info.domain))


def _read_violations(found: Details, packed: bytes) -> Details:
    listed = error_details_pb2.BadRequest.FromString(packed).field_violations[:MAX_DETAILS]
    violations = tuple(
        {"pointer": _field(one.field), "message": _field(one.description)} for one in listed
    )
    return replace(found, violations=violations)


def _read_retry(found: Details, packed: bytes) -> Details:
    delay = error_details_pb2.RetryInfo.FromString(packed).retry_delay
    return replace(found, retry_after=max(0.0, delay.seconds + delay.nanos / 1e9))


def _read_resource(found: Details, packed: bytes) -> Details:
    info = error_details_pb2.ResourceInfo.FromString(packed)
    return replace(found, resource=_field(info.resource_name))


def _field(text: str) -> str:
    return shown(text, MAX_FIELD)


_READERS: Mapping[str, Callable[[Details, bytes], Details]] = {
    "google.rpc.ErrorInfo": _read_info,
    "google.rpc.BadRequest": _read_violations,
    "google.rpc.RetryInfo": _read_retry,
    "google.rpc.ResourceInfo": _read_resource,
}
