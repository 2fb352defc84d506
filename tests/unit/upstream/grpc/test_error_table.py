"""Every status of gRPC, from a native server and from a reflected one: one table for both."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from tests.support.grpc_orders import LEDGER, ORDERS, Shop, files_of, orders_set, serving
from tests.support.grpc_reflector import Reflector
from tests.support.upstreams import Rig, rig
from tests.support.waiting import within
from thoughtgate.core.errors import (
    UpstreamDenied,
    UpstreamError,
    UpstreamFailed,
    UpstreamLost,
    UpstreamRefused,
    UpstreamReplied,
    UpstreamTimeout,
    told,
)
from thoughtgate.core.servers import GrpcTransport, Server, UpstreamState
from thoughtgate.testing.faults import read_plan
from thoughtgate.testing.grpc_host import fake_grpc

GET = "shop-v1-Orders-GetOrder"
SECRET = "hunter2"
HOSTILE = f"password={SECRET}\r\n\x1b[31mat /srv/app.py\u202e"

TABLE: dict[grpc.StatusCode, tuple[type[UpstreamError], bool]] = {
    grpc.StatusCode.CANCELLED: (UpstreamFailed, False),
    grpc.StatusCode.UNKNOWN: (UpstreamFailed, False),
    grpc.StatusCode.INVALID_ARGUMENT: (UpstreamRefused, True),
    grpc.StatusCode.DEADLINE_EXCEEDED: (UpstreamTimeout, False),
    grpc.StatusCode.NOT_FOUND: (UpstreamRefused, True),
    grpc.StatusCode.ALREADY_EXISTS: (UpstreamRefused, True),
    grpc.StatusCode.PERMISSION_DENIED: (UpstreamRefused, False),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (UpstreamRefused, True),
    grpc.StatusCode.FAILED_PRECONDITION: (UpstreamRefused, True),
    grpc.StatusCode.ABORTED: (UpstreamRefused, True),
    grpc.StatusCode.OUT_OF_RANGE: (UpstreamRefused, True),
    grpc.StatusCode.UNIMPLEMENTED: (UpstreamRefused, False),
    grpc.StatusCode.INTERNAL: (UpstreamFailed, False),
    grpc.StatusCode.UNAVAILABLE: (UpstreamLost, False),
    grpc.StatusCode.DATA_LOSS: (UpstreamFailed, False),
    grpc.StatusCode.UNAUTHENTICATED: (UpstreamDenied, False),
}
"""By status the error, and whether its text is meant for callers."""

OF_OUR_PROTOCOL: dict[grpc.StatusCode, tuple[type[UpstreamError], bool]] = {
    grpc.StatusCode.NOT_FOUND: (UpstreamReplied, False),
    grpc.StatusCode.ABORTED: (UpstreamFailed, False),
}
"""What is another error when our own protocol gives it a reason."""

STATUSES = [status for status in grpc.StatusCode if status is not grpc.StatusCode.OK]


@asynccontextmanager
async def native(status: grpc.StatusCode) -> AsyncIterator[tuple[Rig, str]]:
    async with fake_grpc() as fake:
        transport = GrpcTransport(url=fake.url)
        async with rig(Server(name="peer", transport=transport)) as made:
            await made.call("echo")
            fault = {"name": "error", "code": status.value[0], "text": HOSTILE}
            fake.server.faults.put(read_plan([fault]))
            yield made, "echo"


@asynccontextmanager
async def reflected(status: grpc.StatusCode) -> AsyncIterator[tuple[Rig, str]]:
    async def fail(_: Shop, context: Any) -> None:
        await context.abort(status, HOSTILE)

    shop = Shop(before={"GetOrder": fail})
    reflector = Reflector(files_of(orders_set()), [ORDERS, LEDGER])
    async with serving(shop.handler(), reflector.handler()) as port:
        transport = GrpcTransport(url=f"grpc://127.0.0.1:{port}", reflect=(ORDERS,))
        async with rig(Server(name="peer", transport=transport)) as made:
            await within(made.upstreams.discover("peer"))
            yield made, GET


def test_the_table_has_every_status() -> None:
    assert [*TABLE] == STATUSES


@pytest.mark.parametrize("serve", [native, reflected], ids=["native", "reflected"])
async def test_each_status_is_one_error_and_its_text_goes_no_further_than_it_may(
    serve: Callable[[grpc.StatusCode], Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for status in STATUSES:
        expected = {**TABLE, **OF_OUR_PROTOCOL} if serve is native else TABLE
        error, shown = expected[status]
        async with serve(status) as (made, tool):
            with pytest.raises(UpstreamError) as caught:
                await within(made.send(tool, {"number": 1}))
            states = {one.state for one in made.statuses}
        assert type(caught.value) is error, status
        words = f"{told(caught.value)} {caught.value.data}"
        assert (SECRET in words) == shown, status
        assert words.isprintable(), status
        denied = status is grpc.StatusCode.UNAUTHENTICATED
        assert (UpstreamState.NEEDS_AUTH in states) == denied, status
    assert SECRET not in caplog.text


@pytest.mark.parametrize("serve", [native, reflected], ids=["native", "reflected"])
async def test_a_failure_that_may_not_be_told_is_found_in_the_log_by_its_reference(
    serve: Callable[[grpc.StatusCode], Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serve(grpc.StatusCode.INTERNAL) as (made, tool):
        with pytest.raises(UpstreamFailed) as caught:
            await within(made.send(tool, {"number": 1}))
    incident = caught.value.data["id"]
    assert incident in caught.value.message
    levels = {r.levelno for r in caplog.records if incident in r.getMessage()}
    assert levels == {logging.WARNING, logging.DEBUG}
    assert {r.levelno for r in caplog.records if SECRET in r.getMessage()} == {logging.DEBUG}
