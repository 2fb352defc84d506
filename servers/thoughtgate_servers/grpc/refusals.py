"""The ways in which a call is refused: a status, its reason, and details that a program can read.

Never says what an exception said: that text may hold what nobody outside should read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, ResourceInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc import StatusCode

from thoughtgate_servers.schemas import Violation

DOMAIN = "thoughtgate.tools.v1"
_DETAILS = "grpc-status-details-bin"
_PLACE, _SENTENCE = 160, 400
"""Bytes of a violation's pointer and of its text: a handful stays far below what a header holds."""


class Refused(Exception):
    """A call that ends with a status instead of a result."""

    def __init__(self, refusal: "Refusal") -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A status with its reason, a message for people and further details."""

    code: StatusCode
    reason: str
    message: str
    details: tuple[Message, ...] = ()


async def refuse(context: Any, refusal: Refusal) -> NoReturn:
    """End the RPC with the refusal."""
    status = Status(code=refusal.code.value[0], message=refusal.message)
    for detail in (ErrorInfo(domain=DOMAIN, reason=refusal.reason), *refusal.details):
        status.details.add().Pack(detail)
    # a header holds text of one line: what is not ASCII travels in the details alone
    plain = refusal.message.encode("ascii", "replace").decode()
    # the other way, `abort_with_status`, wants a class of a further package
    await context.abort(refusal.code, plain, ((_DETAILS, status.SerializeToString()),))
    raise Refused(refusal)


def invalid_arguments(tool: str, wrong: Sequence[Violation]) -> Refusal:
    """Return the refusal of arguments that break the schema of `tool`."""
    said = BadRequest(
        field_violations=[
            BadRequest.FieldViolation(
                field=_cut(one.pointer, _PLACE), description=_cut(one.sentence, _SENTENCE)
            )
            for one in wrong
        ]
    )
    return Refusal(
        code=StatusCode.INVALID_ARGUMENT,
        reason="INVALID_ARGUMENTS",
        message=f"invalid arguments for {tool}",
        details=(said,),
    )


def invalid_request(field: str, problem: str) -> Refusal:
    """Return the refusal of a request of which one field cannot be read."""
    violation = BadRequest.FieldViolation(field=field, description=problem)
    return Refusal(
        code=StatusCode.INVALID_ARGUMENT,
        reason="INVALID_ARGUMENTS",
        message=f"{field}: {problem}",
        details=(BadRequest(field_violations=[violation]),),
    )


def unknown_tool(name: str) -> Refusal:
    """Return the refusal of a tool that is not there."""
    shown = name[:120]
    return Refusal(
        code=StatusCode.NOT_FOUND,
        reason="UNKNOWN_TOOL",
        message=f"unknown tool: {shown}",
        details=(ResourceInfo(resource_type="tool", resource_name=shown),),
    )


def overloaded(message: str, *, seconds: int) -> Refusal:
    """Return the refusal of what may work later."""
    later = RetryInfo(retry_delay=Duration(seconds=seconds))
    return Refusal(
        code=StatusCode.RESOURCE_EXHAUSTED,
        reason="OVERLOADED",
        message=message,
        details=(later,),
    )


def _cut(text: str, most: int) -> str:
    """Return as much of a text as some bytes hold."""
    data = text.encode()
    return text if len(data) <= most else data[: most - 3].decode(errors="ignore") + "…"


REVISION_STALE = Refusal(
    code=StatusCode.FAILED_PRECONDITION,
    reason="REVISION_STALE",
    message="the list of tools has changed: list them again",
)
IN_PROGRESS = Refusal(
    code=StatusCode.ABORTED,
    reason="IN_PROGRESS",
    message="a call with this call_id still runs",
)
CALL_ID_REUSED = Refusal(
    code=StatusCode.ALREADY_EXISTS,
    reason="CALL_ID_REUSED",
    message="this call_id was used for another tool or other arguments",
)
