"""How a call ended, in the words of traces and audit rows.

Never holds a value of an argument or a result: a reason names rules, places and codes.
"""

from asyncio import CancelledError
from dataclasses import dataclass

from thoughtgate.core.calls import Result
from thoughtgate.core.errors import (
    CallerError,
    CallerReplied,
    GateError,
    InvalidArguments,
    InvalidResult,
    Overloaded,
    UpstreamError,
    UpstreamRefused,
    UpstreamReplied,
)

_MAX_REASON = 300
_INTERNAL_ERROR = -32603
_SERVER_ERRORS = range(-32099, -31999)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a call.

    `code` is `ok`, `tool_error`, `input_required` (the server asks the caller for something, who
    will call again), `cancelled`, `internal_error` or an error's code; `error_type` is
    the same by the MCP conventions, empty for success; `fault` says that a SERVER span counts it
    as an error (a caller's mistake is not one; a failed tool is); `rpc_code` is the server's
    own, over gRPC the name of its status.
    """

    code: str
    error_type: str = ""
    reason: str = ""
    fault: bool = False
    policy: str = ""
    rpc_code: int | str | None = None

    @property
    def cancelled(self) -> bool:
        """Return whether the caller gave up."""
        return self.code == "cancelled"


OK = Outcome(code="ok")
ASKS = Outcome(code="input_required")
TOOL_ERROR = Outcome(code="tool_error", error_type="tool_error", fault=True)
CANCELLED = Outcome(code="cancelled")
INTERNAL_ERROR = Outcome(code="internal_error", error_type="internal_error", fault=True)
"""What nobody foresaw; assumed until a call ends in another way."""


def finished(result: Result) -> Outcome:
    """Return the outcome of a call that brought a result."""
    if result.is_error:
        return TOOL_ERROR
    return OK if result.final else ASKS


def failed(error: GateError | CancelledError) -> Outcome:
    """Return the outcome of a call that ended in an error."""
    if isinstance(error, CancelledError):
        return CANCELLED
    replied = error.rpc_code if isinstance(error, UpstreamReplied) else None
    status = error.data.get("grpcStatus") if isinstance(error, UpstreamError) else None
    return Outcome(
        code=error.code,
        error_type=error.code if replied is None else str(replied),
        reason=_reason(error),
        fault=_is_fault(error),
        policy=str(error.data.get("policy", "")),
        rpc_code=status if replied is None else replied,
    )


def _reason(error: GateError) -> str:
    """Return why, without the previews and foreign texts that an error's message may hold."""
    if isinstance(error, InvalidArguments | InvalidResult):
        places = (f"{problem.pointer or '(all)'} {problem.keyword}" for problem in error.problems)
        return ", ".join(places)[:_MAX_REASON]
    if isinstance(error, UpstreamReplied):
        return f"the server replied with code {error.rpc_code}"
    if isinstance(error, UpstreamRefused):
        return f"the server refused the call with {error.data.get('grpcStatus', 'a status')}"
    if isinstance(error, CallerReplied):
        return f"the client, asked for something, replied with code {error.rpc_code}"
    return error.message[:_MAX_REASON]


def _is_fault(error: GateError) -> bool:
    if isinstance(error, UpstreamReplied):
        return error.rpc_code == _INTERNAL_ERROR or error.rpc_code in _SERVER_ERRORS
    return not isinstance(error, CallerError) or isinstance(error, InvalidArguments | Overloaded)
