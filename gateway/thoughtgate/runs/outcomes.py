"""From a call's result or error to what an engine may build on it.

Never calls an outcome known that is not: after sending, only an answer is an answer.
"""

from collections.abc import Mapping

from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import (
    CallerError,
    GateError,
    InvalidResult,
    Malformed,
    UpstreamDenied,
    UpstreamRefused,
    UpstreamReplied,
    UpstreamUnreachable,
)
from thoughtgate.core.ports import Next
from thoughtgate.engines.contract import Outcome, OutcomeStatus
from thoughtgate.engines.observations import failure
from thoughtgate.wire.strict import parse

_INTERIM = "input_required"


async def outcome_of(call: Call, call_next: Next) -> Outcome:
    """Make the call and return how it went."""
    try:
        return _read(await call_next(call))
    except GateError as error:
        return Outcome(status=_status(error), observation=failure(error.message), code=error.code)


def _read(result: Result) -> Outcome:
    try:
        value = parse(result.raw)
    except Malformed as error:
        return _invalid(error.message)
    if not isinstance(value, Mapping):
        return _invalid("the result is not an object")
    if value.get("resultType") == _INTERIM:
        said = failure("the tool asks for input that a run cannot give")
        return Outcome(status=OutcomeStatus.TOOL_ERROR, observation=said, code=_INTERIM)
    failed = value.get("isError") is True
    return Outcome(
        status=OutcomeStatus.TOOL_ERROR if failed else OutcomeStatus.OK,
        observation=value,
        code="tool_error" if failed else "",
    )


def _invalid(message: str) -> Outcome:
    return Outcome(
        status=OutcomeStatus.INVALID, observation=failure(message), code=InvalidResult.code
    )


def _status(error: GateError) -> OutcomeStatus:
    if isinstance(error, (CallerError, UpstreamUnreachable, UpstreamDenied)):
        return OutcomeStatus.NOT_SENT
    if isinstance(error, InvalidResult):
        return OutcomeStatus.INVALID
    if isinstance(error, (UpstreamReplied, UpstreamRefused)):
        return OutcomeStatus.TOOL_ERROR
    return OutcomeStatus.UNKNOWN
