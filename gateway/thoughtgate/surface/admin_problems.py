"""The one table from errors to what a client of the admin API sees, by RFC 9457.

Never shows what went wrong inside us: a bug is a correlation id, the detail is in the log.
"""

import logging
import secrets
from http import HTTPStatus

from thoughtgate.core.errors import (
    CallerError,
    ConfigError,
    Conflict,
    GateError,
    InvalidArguments,
    Malformed,
    Missing,
    Overloaded,
    Refused,
    SchemaRejected,
    StoreFull,
    StoreLocked,
    UnknownTarget,
    UpstreamError,
    UpstreamTimeout,
)
from thoughtgate.surface.admin_values import Problem
from thoughtgate.surface.http_io import Refusal

_log = logging.getLogger("thoughtgate.surface")

_STATUSES: tuple[tuple[type[GateError], int], ...] = (
    (Malformed, 400),
    (Refused, 403),
    (Missing, 404),
    (UnknownTarget, 404),
    (Conflict, 412),
    (InvalidArguments, 422),
    (Overloaded, 503),
    (CallerError, 400),
    (UpstreamTimeout, 504),
    (UpstreamError, 502),
    (StoreLocked, 503),
    (StoreFull, 507),
    (ConfigError, 422),
    (SchemaRejected, 422),
)

_CODES = {
    401: Refused.code,
    403: Refused.code,
    404: Missing.code,
    412: Conflict.code,
    503: Overloaded.code,
}
"""Our codes for what is refused before any operation is known; anything else is malformed."""


def status_of(kind: type[GateError]) -> int:
    """Return the HTTP status that stands for an error."""
    return next((status for known, status in _STATUSES if issubclass(kind, known)), 500)


def problem_of(error: GateError) -> Problem:
    """Return an error of an operation as what the client sees."""
    status = status_of(type(error))
    return _problem(status, error.code, error.message, dict(error.data))


def refused(error: Refusal) -> Problem:
    """Return a refusal of HTTP as what the client sees."""
    return _problem(error.status, _CODES.get(error.status, Malformed.code), error.message, {})


def bug(error: BaseException) -> Problem:
    """Log a bug under a fresh id, and return only that id."""
    incident = secrets.token_hex(8)
    _log.error("admin request failed", exc_info=error, extra={"incident": incident})
    said = f"internal error; look for {incident} in the log"
    return _problem(500, "internal", said, {"id": incident})


def _problem(status: int, code: str, detail: str, data: dict[str, object]) -> Problem:
    title = HTTPStatus(status).phrase
    return Problem(status=status, code=code, title=title, detail=detail, data=data)
