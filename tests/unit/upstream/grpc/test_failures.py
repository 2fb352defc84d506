"""What callers are told of each status of gRPC."""

import logging

import grpc
import pytest
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2

from thoughtgate.core import errors
from thoughtgate.core.errors import UpstreamError
from thoughtgate.upstream.grpc.failures import (
    MAX_DETAILS,
    MAX_FIELD,
    MAX_TEXT,
    Details,
    Status,
    failure,
    read_details,
    shown,
)

Code = grpc.StatusCode
SECRET = "Unexpected ValueError: s3cret in /etc/place"

TABLE = [
    (Code.INVALID_ARGUMENT, errors.UpstreamRefused, True),
    (Code.NOT_FOUND, errors.UpstreamRefused, True),
    (Code.FAILED_PRECONDITION, errors.UpstreamRefused, True),
    (Code.ABORTED, errors.UpstreamRefused, True),
    (Code.ALREADY_EXISTS, errors.UpstreamRefused, True),
    (Code.OUT_OF_RANGE, errors.UpstreamRefused, True),
    (Code.RESOURCE_EXHAUSTED, errors.UpstreamRefused, True),
    (Code.UNIMPLEMENTED, errors.UpstreamRefused, False),
    (Code.PERMISSION_DENIED, errors.UpstreamRefused, False),
    (Code.UNAUTHENTICATED, errors.UpstreamDenied, False),
    (Code.DEADLINE_EXCEEDED, errors.UpstreamTimeout, False),
    (Code.UNAVAILABLE, errors.UpstreamLost, False),
    (Code.CANCELLED, errors.UpstreamFailed, False),
    (Code.UNKNOWN, errors.UpstreamFailed, False),
    (Code.INTERNAL, errors.UpstreamFailed, False),
    (Code.DATA_LOSS, errors.UpstreamFailed, False),
]


def test_the_table_has_every_status_that_is_not_ok() -> None:
    assert {code for code, _, _ in TABLE} == set(Code) - {Code.OK}


@pytest.mark.parametrize(("code", "kind", "told"), TABLE, ids=lambda one: getattr(one, "name", ""))
def test_each_status_is_one_error_and_its_text_goes_on_only_where_it_is_meant_to(
    code: grpc.StatusCode, kind: type[UpstreamError], told: bool
) -> None:
    error = failure(Status(code=code, text=SECRET))
    assert type(error) is kind
    assert ("s3cret" in error.message) == told
    assert told or "s3cret" not in str(error.data)


@pytest.mark.parametrize("code", [Code.UNKNOWN, Code.INTERNAL, Code.DATA_LOSS])
def test_a_failure_that_says_nothing_has_a_reference_that_is_in_the_log(
    code: grpc.StatusCode, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    error = failure(Status(code=code, text=SECRET))
    assert error.data["id"] in error.message
    assert error.data["id"] in caplog.text
    assert "s3cret" not in caplog.text


def test_a_request_that_was_never_sent_is_told_from_one_that_is_lost() -> None:
    text = "failed to connect to all addresses; last error: Connection refused"
    error = failure(Status(code=Code.UNAVAILABLE, text=text, connected=False))
    assert type(error) is errors.UpstreamUnreachable
    assert "nobody listens" in error.message
    silent = f"{text[:-18]}connection attempt timed out before receiving SETTINGS frame"
    error = failure(Status(code=Code.UNAVAILABLE, text=silent, connected=False))
    assert error.message == "it cannot be reached: it does not answer"
    relayed = failure(Status(code=Code.UNAVAILABLE, text=text, connected=True))
    assert type(relayed) is errors.UpstreamLost
    broken = failure(Status(code=Code.UNAVAILABLE, text="Socket closed", connected=False))
    assert type(broken) is errors.UpstreamLost


def test_a_size_is_told_from_a_quota() -> None:
    code = Code.RESOURCE_EXHAUSTED
    larger = "Received message larger than max (5000 vs. 4000)"
    answer = failure(Status(code=code, text=f"CLIENT: {larger}"))
    assert type(answer) is errors.UpstreamGarbled
    assert "4000 bytes" in answer.message
    request = failure(Status(code=code, text=f"SERVER: {larger}"))
    assert type(request) is errors.UpstreamRefused
    assert "4000 bytes" in request.message
    headers = failure(Status(code=code, text="received metadata size exceeds hard limit"))
    assert type(headers) is errors.UpstreamGarbled
    quota = failure(Status(code=code, text="slow down", details=Details(retry_after=1.5)))
    assert quota.data == {"grpcStatus": "RESOURCE_EXHAUSTED", "retryAfter": 1.5}


def test_an_earlier_call_that_still_runs_leaves_the_outcome_open() -> None:
    error = failure(Status(code=Code.ABORTED, text="", details=Details(reason="IN_PROGRESS")))
    assert type(error) is errors.UpstreamFailed
    assert error.outcome == "unknown"


def test_violations_are_rendered_with_their_places() -> None:
    details = Details(violations=({"pointer": "/a", "message": "must be odd"},))
    error = failure(Status(code=Code.INVALID_ARGUMENT, text="no", details=details))
    assert error.message.endswith("/a must be odd")
    assert error.data["violations"] == [{"pointer": "/a", "message": "must be odd"}]


def test_details_are_read_within_bounds() -> None:
    status = status_pb2.Status()
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason="R" * 999, domain="d"))
    bad = error_details_pb2.BadRequest()
    for _ in range(MAX_DETAILS + 5):
        bad.field_violations.add(field="/x", description="y\x00z")
    status.details.add().Pack(bad)
    delay = duration_pb2.Duration(seconds=2, nanos=500_000_000)
    status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    status.details.add().Pack(error_details_pb2.ResourceInfo(resource_name="tool"))
    status.details.add(type_url="type.googleapis.com/made.Up", value=b"\xff")
    found = read_details(status.SerializeToString())
    assert len(found.reason) == MAX_FIELD
    assert found.violations == ({"pointer": "/x", "message": "y z"},) * MAX_DETAILS
    assert (found.retry_after, found.resource, found.domain) == (2.5, "tool", "d")


def test_details_that_cannot_be_read_are_left_out() -> None:
    assert read_details(b"\xff\xff\xff") == Details()
    status = status_pb2.Status()
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason="R"))
    status.details.add(type_url="x/google.rpc.BadRequest", value=b"\xff")
    assert read_details(status.SerializeToString()).reason == "R"


def test_foreign_text_is_shown_in_one_short_line() -> None:
    assert shown("a\nb\u202ec\x1b[0m") == "a b c [0m"
    assert shown("\U0001f389 日本") == "\U0001f389 日本"
    assert len(shown("x" * 99_999)) == MAX_TEXT
