"""Answers that no gRPC library would give: each is one error, and none escapes as another."""

import pytest

from tests.support.h2_peer import Headers, answering, grpc_status
from tests.support.waiting import within
from thoughtgate.core import errors
from thoughtgate.core.errors import UpstreamError
from thoughtgate.core.servers import GrpcTransport
from thoughtgate.upstream.grpc.channel import connect


def page(status: str) -> Headers:
    return [(":status", status), ("content-type", "text/html")]


ANSWERS = [
    (grpc_status("0"), errors.UpstreamGarbled),
    (grpc_status("99", grpc_message="s3cret"), errors.UpstreamFailed),
    (grpc_status("-1", grpc_message="s3cret"), errors.UpstreamFailed),
    (grpc_status("x", grpc_message="s3cret"), errors.UpstreamFailed),
    (grpc_status("9", grpc_status_details_bin="////"), errors.UpstreamRefused),
    (page("401"), errors.UpstreamDenied),
    (page("403"), errors.UpstreamRefused),
    (page("404"), errors.UpstreamRefused),
    (page("502"), errors.UpstreamLost),
    (page("200"), errors.UpstreamFailed),
]


@pytest.mark.parametrize(("headers", "kind"), ANSWERS)
async def test_an_answer_that_is_no_answer_is_one_error(
    headers: Headers, kind: type[UpstreamError]
) -> None:
    async with answering(headers) as port:
        connection = await connect(GrpcTransport(url=f"grpc://127.0.0.1:{port}"))
        try:
            with pytest.raises(UpstreamError) as caught:
                await within(connection.answer("/any/Method", b""))
        finally:
            await connection.aclose()
    assert type(caught.value) is kind
    assert "s3cret" not in f"{caught.value.message}{caught.value.data}"


async def test_an_address_that_is_closed_is_lost_and_says_so() -> None:
    async with answering(grpc_status("0")) as port:
        pass
    connection = await connect(GrpcTransport(url=f"grpc://127.0.0.1:{port}"))
    try:
        assert await within(connection.over()) == "cannot be reached any more"
        assert connection.lost
        with pytest.raises(errors.UpstreamUnreachable):
            await within(connection.answer("/any/Method", b""))
    finally:
        await connection.aclose()


async def test_what_a_server_answered_was_sent_though_it_is_gone_with_its_answer() -> None:
    relayed = grpc_status("14", grpc_message="failed to connect to all addresses")
    async with answering(relayed, times=2) as port:
        connection = await connect(GrpcTransport(url=f"grpc://127.0.0.1:{port}"))
        try:
            for _ in range(2):
                with pytest.raises(errors.UpstreamLost):
                    await within(connection.answer("/any/Method", b""))
            await within(connection.over())
        finally:
            await connection.aclose()
