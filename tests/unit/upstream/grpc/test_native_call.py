"""The end of a native call: what comes behind its result, and what that changes."""

from collections.abc import Awaitable

import pytest

from tests.support.native_peer import result
from tests.support.waiting import within
from thoughtgate.core.errors import (
    UpstreamError,
    UpstreamFailed,
    UpstreamLost,
    UpstreamTimeout,
)
from thoughtgate.testing.values import make_call
from thoughtgate.upstream.grpc.channel import Answers
from thoughtgate.upstream.grpc.native_call import reply_of
from thoughtgate.upstream.ports import Counts


class Stream:
    """An RPC that is over; what its reader gets is said by the test."""

    def __init__(self, *outcomes: object) -> None:
        self._outcomes = list(outcomes)

    async def read(self) -> object:
        return self._outcomes.pop(0)

    async def code(self) -> object:
        return None

    def cancel(self) -> bool:
        return False


async def read(waiting: Awaitable[object]) -> object:
    return await waiting


def answers(*outcomes: object) -> Answers:
    return Answers(Stream(*outcomes), read)


RESULT = result({"a": 1}).SerializeToString()


@pytest.mark.parametrize("ending", [UpstreamLost(message="broke"), UpstreamTimeout(message="late")])
async def test_a_result_that_has_been_read_stands_though_the_connection_breaks(
    ending: UpstreamError,
) -> None:
    with answers(RESULT, ending) as stream:
        reply = await within(reply_of(stream, make_call(), Counts()))
    assert reply.value["structuredContent"] == {"a": 1}


async def test_a_result_does_not_stand_when_its_server_says_that_the_call_failed() -> None:
    with answers(RESULT, UpstreamFailed(message="no")) as stream, pytest.raises(UpstreamFailed):
        await within(reply_of(stream, make_call(), Counts()))
