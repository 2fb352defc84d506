"""What the error body of a model server means, in words of our own.

Never passes on the server's prose: it may quote the key or the question.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from thoughtgate.core.errors import Malformed, ModelError
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.wire.strict import parse

_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_OVERFLOW = ("context_length_exceeded", "exceed_context_size_error", "request_too_large")
_OVERFLOW_SAID = re.compile(
    r"prompt is too long|(context|model)('s)? (maximum |max )?(length|window|size)"
    r"|maximum context|exceeds? the (available )?context",
    re.IGNORECASE,
)
_LASTING = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached"})
_TOO_LARGE = 413


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """`said` is status and code, `lasting` tells that waiting will not help, `data` is for code."""

    said: str
    lasting: bool
    data: JsonObject


def refusal(status: int, body: bytes) -> Refusal:
    """Return what a reply with an error status means."""
    error = _error(body)
    code = error_code(error)
    overflow = status == _TOO_LARGE or is_overflow(error)
    data: JsonObject = {"kind": "context_overflow"} if overflow else {"status": status}
    said = f"{status} ({code})" if code else str(status)
    return Refusal(said=said, lasting=overflow or code in _LASTING, data=data)


def is_overflow(error: JsonValue) -> bool:
    """Say whether an error object tells that the request was too long for the model."""
    if not isinstance(error, Mapping):
        return False
    if any(error.get(key) in _OVERFLOW for key in ("code", "type")):
        return True
    message = error.get("message")
    return isinstance(message, str) and _OVERFLOW_SAID.search(message[:1000]) is not None


def failed(error: JsonValue) -> ModelError:
    """Return the error of a server that failed within its reply, told as an error object."""
    code = error_code(error)
    if is_overflow(error):
        return ModelError(
            message=f"the model server refused the request: {code or 'too long'}",
            data={"kind": "context_overflow"},
        )
    return ModelError(
        message=f"the model server failed within its reply: {code or 'it does not say why'}",
        retriable=code not in _LASTING,
    )


def error_code(error: JsonValue) -> str:
    """Return the code of an error object, empty unless it is a plain word."""
    if not isinstance(error, Mapping):
        return ""
    for key in ("code", "type"):
        code = error.get(key)
        if isinstance(code, str) and _CODE.fullmatch(code):
            return code
    return ""


def _error(body: bytes) -> JsonValue:
    try:
        value = parse(body)
    except Malformed:
        return None
    return value.get("error") if isinstance(value, Mapping) else None
