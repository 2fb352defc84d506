"""A tool table served over gRPC in this process, and the smallest client of the protocol.

Never reaches beyond the loopback address.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import msgspec
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from grpc import aio

from tests.support.waiting import within
from thoughtgate_proto.tools.v1 import tool_server_pb2 as pb
from thoughtgate_proto.tools.v1.tool_server_pb2_grpc import ToolServerStub
from thoughtgate_servers.grpc.carrying import served
from thoughtgate_servers.grpc.servicer import Identity
from thoughtgate_servers.table import Table, Tool

if TYPE_CHECKING:
    # a name of the type information only
    from thoughtgate_proto.tools.v1.tool_server_pb2_grpc import ToolServerAsyncStub

IDENTITY = Identity(name="thoughtgate-test", version="1.2.3", instructions="Ask nicely.")


@asynccontextmanager
async def stub_of(table: Table | Sequence[Tool]) -> "AsyncIterator[ToolServerAsyncStub]":
    """Serve the table and yield a client of it."""
    whole = table if isinstance(table, Table) else Table(table)
    async with served(whole, IDENTITY, "127.0.0.1:0") as url, dialled(url) as stub:
        yield stub


@asynccontextmanager
async def dialled(url: str) -> "AsyncIterator[ToolServerAsyncStub]":
    """Yield a client of the server at `url`."""
    async with aio.insecure_channel(url.partition("://")[2]) as channel:
        yield ToolServerStub(channel)


def asking(name: str, arguments: object = None, **more: Any) -> pb.CallToolRequest:
    """Return the request of a call."""
    given = msgspec.json.encode({} if arguments is None else arguments)
    return pb.CallToolRequest(name=name, **{"arguments_json": given, **more})


async def events(
    stub: "ToolServerAsyncStub", request: pb.CallToolRequest
) -> list[pb.CallToolResponse]:
    """Return everything that a call says."""
    call = stub.CallTool(request)
    try:
        return await within(_all(call))
    finally:
        call.cancel()


async def result(stub: "ToolServerAsyncStub", request: pb.CallToolRequest) -> pb.CallResult:
    """Return the result of a call, which says nothing else."""
    [event] = await events(stub, request)
    assert event.HasField("result")
    return event.result


async def refused(stub: "ToolServerAsyncStub", request: pb.CallToolRequest) -> "Refused":
    """Return how a call is refused."""
    try:
        said = await events(stub, request)
    except aio.AioRpcError as failure:
        return Refused(failure)
    raise AssertionError(said)


class Refused:
    """A refusal, its details decoded."""

    def __init__(self, failure: aio.AioRpcError) -> None:
        self.code: grpc.StatusCode = failure.code()
        self.message = failure.details() or ""
        self.violations: dict[str, str] = {}
        self.reason, self.retry_seconds = "", 0
        for key, value in failure.trailing_metadata() or ():
            if key == "grpc-status-details-bin":
                assert isinstance(value, bytes)
                self._read(Status.FromString(value))

    def _read(self, status: Status) -> None:
        for packed in status.details:
            kind = getattr(error_details_pb2, packed.TypeName().rpartition(".")[2])
            detail = kind.FromString(packed.value)
            if isinstance(detail, error_details_pb2.ErrorInfo):
                assert detail.domain == "thoughtgate.tools.v1"
                self.reason = detail.reason
            elif isinstance(detail, error_details_pb2.BadRequest):
                self.violations = {v.field: v.description for v in detail.field_violations}
            elif isinstance(detail, error_details_pb2.RetryInfo):
                self.retry_seconds = detail.retry_delay.seconds


async def _all(call: Any) -> list[pb.CallToolResponse]:
    return [event async for event in call]
