"""The one table from errors to what a client of MCP sees.

Never shows what went wrong inside us: a bug is a correlation id, the detail is in the log.
"""

import logging
import secrets
from collections.abc import Awaitable
from typing import Any, NamedTuple

from thoughtgate.core.errors import (
    CallerReplied,
    GateError,
    InvalidArguments,
    Malformed,
    NotAsked,
    Overloaded,
    Refused,
    UnknownTarget,
    UpstreamError,
    UpstreamLost,
    UpstreamReplied,
    facts,
    told,
)
from thoughtgate.core.json import JsonValue
from thoughtgate.core.servers import Era
from thoughtgate.wire import codes
from thoughtgate.wire.messages import BadMessage, MessageId, encode_failure, encode_reply
from thoughtgate.wire.results import make_result
from thoughtgate.wire.stateless import UnsupportedVersion

_log = logging.getLogger("thoughtgate.surface")

_FOR_MODELS = (InvalidArguments, CallerReplied, NotAsked, Refused, Overloaded, UpstreamError)
"""What a model may mend or work around: a result with `isError`, not a protocol error."""

_OF_A_HOP = frozenset({codes.HEADER_MISMATCH, codes.UNSUPPORTED_VERSION})
"""What a server says of the request that we made: a client would take it for its own."""


class Failed(NamedTuple):
    """A JSON-RPC error, without the id of the request."""

    code: int
    message: str
    data: JsonValue = None


STOPPING = Failed(
    codes.INTERNAL_ERROR,
    "the gateway is stopping; ask again later, but what was asked may have been carried out",
    {"error": UpstreamLost.code, "outcome": UpstreamLost.outcome},
)
"""What a client hears that did not give its request up: only a server that stops does it then."""


class Answer(NamedTuple):
    """A whole reply; `code` is 0 for a result, else the error code."""

    body: bytes
    code: int = 0


async def answered(id_: MessageId, work: Awaitable[bytes]) -> Answer:
    """Return the reply to a request: the result that `work` returns, or the error it raises.

    This is the door of the surface: nothing but a cancellation gets past it.
    """
    try:
        return Answer(encode_reply(id_, await work))
    except GateError as error:
        failed = failed_by(error)
    except Exception:  # noqa: BLE001 - the door: a bug becomes a reply with a correlation id
        failed = _bug()
    return refusal(id_, failed)


def refusal(id_: MessageId | None, failed: Failed) -> Answer:
    """Return the reply that carries a failure."""
    return Answer(encode_failure(id_, failed.code, failed.message, failed.data), failed.code)


def result_for_models(error: GateError) -> bytes | None:
    """Return the error of a call as a tool's result, None when it is a protocol error."""
    if not isinstance(error, _FOR_MODELS) or isinstance(error, UpstreamReplied):
        return None
    text = told(error)
    structured = {**_data(error), "message": text}
    return make_result(text=text, structured=structured, is_error=True)


def failed_by(error: GateError) -> Failed:
    """Return an error as a JSON-RPC error; what is not the caller's nor the server's is hidden."""
    if isinstance(error, UpstreamReplied):
        return _relayed(error)
    if isinstance(error, UnsupportedVersion):
        return Failed(error.rpc_code, error.message, error.data)
    if isinstance(error, BadMessage):
        return Failed(error.rpc_code, error.message, _data(error))
    if isinstance(error, Malformed | UnknownTarget | InvalidArguments):
        return Failed(codes.INVALID_PARAMS, error.message, _data(error))
    if isinstance(error, _FOR_MODELS):
        return Failed(codes.INTERNAL_ERROR, told(error), _data(error))
    return _bug()


def unknown_method(method: str) -> BadMessage:
    """Return the error for a method that nobody here carries."""
    return BadMessage(message=f"method not found: {method[:120]}", rpc_code=codes.METHOD_NOT_FOUND)


def no_resource(uri: str, era: Era) -> BadMessage:
    """Return the error for a URI that no server here has; `data` names it."""
    error = BadMessage(
        message=f"unknown resource: {uri[:120]}; list the resources and their templates",
        rpc_code=codes.NO_RESOURCE if era is Era.HANDSHAKE else codes.INVALID_PARAMS,
    )
    error.data = {"uri": uri}
    return error


def _data(error: GateError) -> dict[str, Any]:
    return {**facts(error), "error": error.code}


def _relayed(error: UpstreamReplied) -> Failed:
    """Return a server's own error as it came, unless it is about our hop and not the client's."""
    if error.rpc_code in _OF_A_HOP:
        message = f"the tool server refuses us: {error.message}"
        return Failed(codes.INTERNAL_ERROR, message, _data(error))
    return Failed(error.rpc_code, error.rpc_message, error.rpc_data)


def _bug() -> Failed:
    """Log the exception that is being handled under a fresh id, and return only that id."""
    incident = secrets.token_hex(8)
    _log.exception("request failed", extra={"incident": incident})
    return Failed(
        codes.INTERNAL_ERROR, f"internal error; look for {incident} in the log", {"id": incident}
    )
