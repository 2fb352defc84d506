"""The table from errors to replies: every class of the tree has its place."""

import json
from collections.abc import Iterator

import pytest

from thoughtgate.core import errors
from thoughtgate.core.errors import GateError
from thoughtgate.surface.errors import answered, failed_by, result_for_models
from thoughtgate.wire.messages import BadMessage
from thoughtgate.wire.stateless import UnsupportedVersion

SAID = "what, which, what to do"
SECRET = "postgres://secret"


ODD: dict[type[GateError], GateError] = {
    errors.UnknownTarget: errors.UnknownTarget(name="x"),
    errors.UpstreamReplied: errors.UpstreamReplied(rpc_code=-7, rpc_message="theirs"),
    errors.CallerReplied: errors.CallerReplied(rpc_code=-7, rpc_message=SAID),
    errors.OutOfOrder: errors.OutOfOrder(state=SECRET, event="x"),
    errors.SchemaRejected: errors.SchemaRejected(rule="r", message=SECRET),
    errors.InvalidArguments: errors.InvalidArguments(message=SAID, problems=[], data={}),
    errors.InvalidResult: errors.InvalidResult(message=SAID, problems=[], data={}),
}


def made(kind: type[GateError]) -> GateError:
    """Make an error of a class with the arguments that it needs."""
    ours = not issubclass(kind, errors.CallerError | errors.UpstreamError)
    return ODD[kind] if kind in ODD else kind(message=SECRET if ours else SAID)


def tree(kind: type[GateError] = GateError) -> Iterator[type[GateError]]:
    if kind.__module__ == errors.__name__:
        yield kind
    for child in kind.__subclasses__():
        yield from tree(child)


FOR_MODELS = {
    "invalid_arguments", "caller_replied", "not_asked", "refused", "overloaded", "upstream_error",
    "upstream_unreachable",
    "upstream_denied", "upstream_lost", "upstream_timeout", "upstream_garbled", "invalid_result",
    "upstream_refused", "upstream_failed",
}  # fmt: skip

OUTCOMES = {
    "upstream_unreachable": "not_sent",
    "upstream_denied": "not_done",
    "upstream_refused": "not_done",
    "upstream_failed": "unknown",
    "upstream_lost": "unknown",
    "upstream_timeout": "unknown",
    "upstream_garbled": "unknown",
}
"""What a caller is told of a call that a server failed."""


@pytest.mark.parametrize("kind", list(tree()))
def test_every_error_is_a_result_for_models_or_a_failure(kind: type[GateError]) -> None:
    error = made(kind)
    raw = result_for_models(error)
    assert (raw is not None) == (kind.code in FOR_MODELS)
    if raw is not None:
        result = json.loads(raw)
        assert result["isError"]
        known = OUTCOMES.get(kind.code, "")
        words = f"{SAID}; {errors.OUTCOMES[known]}" if known else SAID
        assert result["content"] == [{"type": "text", "text": words}]
        assert result["structuredContent"]["error"] == kind.code
        assert result["structuredContent"].get("outcome", "") == known
    failed = failed_by(error)
    assert SECRET not in str(failed)


@pytest.mark.parametrize(
    ("error", "code", "data"),
    [
        (errors.UnknownTarget(name="x"), -32602, {"error": "unknown_tool"}),
        (
            errors.UnknownTarget(name="x", nearest=("xs",)),
            -32602,
            {"error": "unknown_tool", "nearest": ["xs"]},
        ),
        (errors.Malformed(message=SAID), -32602, {"error": "malformed"}),
        (BadMessage(message=SAID, rpc_code=-32601), -32601, {"error": "malformed"}),
        (errors.UpstreamReplied(rpc_code=-7, rpc_message="m", rpc_data={"k": 1}), -7, {"k": 1}),
        (errors.Overloaded(message=SAID), -32603, {"error": "overloaded"}),
        (
            UnsupportedVersion(requested="x"),
            -32022,
            {"supported": ["2026-07-28"], "requested": "x"},
        ),
    ],
)
def test_a_failure_has_its_code(error: GateError, code: int, data: object) -> None:
    failed = failed_by(error)
    assert (failed.code, failed.data) == (code, data)


@pytest.mark.parametrize("code", [-32020, -32022])
def test_what_a_server_says_of_our_own_request_is_not_told_as_the_clients_mistake(
    code: int,
) -> None:
    failed = failed_by(errors.UpstreamReplied(rpc_code=code, rpc_message="no", rpc_data=[1]))
    assert failed.code == -32603
    assert failed.data == {"error": "upstream_replied", "upstreamCode": code}


async def test_a_bug_is_logged_under_the_id_that_the_client_sees(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> bytes:
        raise KeyError(SECRET)

    answer = await answered("a", fail())
    reply = json.loads(answer.body)
    assert (reply["id"], answer.code) == ("a", -32603)
    assert SECRET not in str(reply)
    (record,) = caplog.records
    assert record.__dict__["incident"] == reply["error"]["data"]["id"]
    assert record.exc_info is not None
