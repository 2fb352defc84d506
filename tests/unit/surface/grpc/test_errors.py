"""The table from errors to statuses: every class of the tree has its place, and little room."""

import string

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from tests.unit.surface.test_errors import SECRET, made, tree
from thoughtgate.core import errors
from thoughtgate.core.errors import GateError
from thoughtgate.core.problems import Problem
from thoughtgate.surface.errors import result_for_models
from thoughtgate.surface.grpc.errors import STATUSES, Failure, failure_by

CODE = grpc.StatusCode


def info(failure: Failure) -> ErrorInfo:
    found = ErrorInfo()
    assert Status.FromString(failure.details).details[0].Unpack(found)
    return found


@pytest.mark.parametrize("kind", list(tree()))
def test_every_error_is_a_status_with_its_reason_or_an_id(kind: type[GateError]) -> None:
    failure = failure_by(made(kind))
    visible = issubclass(kind, errors.CallerError | errors.UpstreamError)
    assert info(failure).reason == (kind.code.upper() if visible else "INTERNAL_ERROR")
    assert (info(failure).domain, SECRET in str(failure)) == ("thoughtgate.gateway.v1", False)
    assert Status.FromString(failure.details).code == failure.code.value[0]


@pytest.mark.parametrize("kind", list(tree()))
def test_what_is_a_result_over_mcp_has_a_status_of_its_own_nevertheless(
    kind: type[GateError],
) -> None:
    """Lists and searches have no result that could say it."""
    if result_for_models(made(kind)) is not None:
        assert failure_by(made(kind)).code is STATUSES[kind]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Malformed(message="m"), CODE.INVALID_ARGUMENT),
        (errors.UnknownTarget(name="x"), CODE.NOT_FOUND),
        (errors.Refused(message="m"), CODE.PERMISSION_DENIED),
        (errors.Overloaded(message="m"), CODE.RESOURCE_EXHAUSTED),
        (errors.Conflict(message="m"), CODE.ABORTED),
        (errors.NotAsked(message="m"), CODE.FAILED_PRECONDITION),
        (errors.UpstreamUnreachable(message="m"), CODE.UNAVAILABLE),
        (errors.UpstreamTimeout(message="m"), CODE.DEADLINE_EXCEEDED),
        (errors.UpstreamDenied(message="m"), CODE.FAILED_PRECONDITION),
        (errors.StoreFull(message="m"), CODE.INTERNAL),
        (RuntimeError("m"), CODE.INTERNAL),
    ],
)
def test_an_error_has_its_status(error: Exception, code: grpc.StatusCode) -> None:
    assert failure_by(error).code is code


def test_what_a_server_failed_says_what_is_known_of_the_outcome() -> None:
    failure = failure_by(errors.UpstreamLost(message="server s: gone"))
    assert info(failure).metadata == {"outcome": "unknown"}
    assert failure.message == "server s: gone; the outcome is unknown"


def test_who_is_one_too_many_hears_when_to_come_back() -> None:
    status = Status.FromString(failure_by(errors.Overloaded(message="m")).details)
    retry = RetryInfo()
    assert status.details[1].Unpack(retry)
    assert retry.retry_delay.seconds == 1


def problem(number: int, text: str) -> Problem:
    return Problem(
        pointer=f"/{text}/{number}",
        keyword="type",
        expected=text,
        got_type="string",
        got_preview=text,
        hint=text,
    )


@pytest.mark.parametrize("text", ["x" * 5_000, "名" * 5_000, "\U0001f600" * 5_000, "\n\x00%" * 900])
def test_however_long_an_error_is_its_status_fits_into_a_head(text: str) -> None:
    problems = [problem(number, text) for number in range(1_000)]
    data = {f"key-{number}": {"a": text} for number in range(100)}
    for error in (
        errors.InvalidArguments(message=text, problems=problems, data=data),
        errors.UnknownTarget(name=text, nearest=[text] * 10),
        errors.UpstreamReplied(rpc_code=1, rpc_message=text, rpc_data=data),
        errors.Refused(message=text, data=data),
    ):
        failure = failure_by(error)
        plain = string.ascii_letters + string.digits
        escaped = sum(1 if chr(one) in plain else 3 for one in failure.message.encode())
        assert escaped + len(failure.details) * 4 // 3 < 8_000
        assert info(failure).reason == error.code.upper()


def test_the_places_of_problems_are_named() -> None:
    error = errors.InvalidArguments(message="m", problems=[problem(1, "a")], data={"problems": []})
    bad = BadRequest()
    assert Status.FromString(failure_by(error).details).details[1].Unpack(bad)
    assert [(one.field, one.description) for one in bad.field_violations] == [("/a/1", "type: a")]
