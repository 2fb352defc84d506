"""A server's headers as metadata: what gRPC can carry, and what it would choke on."""

import pytest

from thoughtgate.core.errors import UpstreamUnreachable
from thoughtgate.protos.metadata import MAX_BYTES
from thoughtgate.upstream.grpc.metadata import metadata_of


def test_names_are_sent_in_lower_case_and_bytes_are_given_as_base64() -> None:
    made = metadata_of({"Authorization": "Bearer x y", "X-Token-Bin": "AP8"})
    assert made == (("authorization", "Bearer x y"), ("x-token-bin", b"\x00\xff"))


@pytest.mark.parametrize(
    "headers",
    [
        {"a b": "x"},
        {"": "x"},
        {":path": "x"},
        {"ü": "x"},
        {"x": "a\nb"},
        {"x": "é"},
        {"x": ""},
        {"x": " padded"},
        {"x-bin": "not base64!"},
        {"x": "a" * MAX_BYTES},
    ],
)
def test_what_grpc_cannot_carry_is_refused_before_any_call(headers: dict[str, str]) -> None:
    with pytest.raises(UpstreamUnreachable):
        metadata_of(headers)


@pytest.mark.parametrize(
    "name", ["grpc-timeout", "Traceparent", "tracestate", "TE", "content-type", "idempotency-key"]
)
def test_what_the_gateway_says_itself_is_refused(name: str) -> None:
    with pytest.raises(UpstreamUnreachable, match="itself"):
        metadata_of({name: "x"})


def test_no_value_is_repeated_in_a_refusal() -> None:
    with pytest.raises(UpstreamUnreachable) as caught:
        metadata_of({"authorization": "s3cret\n"})
    assert "s3cret" not in caught.value.message
