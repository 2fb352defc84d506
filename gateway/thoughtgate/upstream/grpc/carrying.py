"""Carries one call of a method: messages out, messages in, in all four kinds.

Never reads a stream without end: what is beyond the caps is left with the server.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from thoughtgate.core.errors import UpstreamTimeout
from thoughtgate.upstream.grpc.channel import Connection
from thoughtgate.upstream.grpc.metadata import Metadata

MAX_MESSAGES = 1_000
"""Messages of one stream that are taken."""

MAX_BYTES = 4 * 1024 * 1024
"""Bytes that they may have together on the wire."""

_SHARE = 0.1
_LONGEST_MARGIN = 2.0
"""What is left of a call's time, at most, when a stream that has not ended is cut: to answer."""

Arrived = Callable[[bytes], Awaitable[bool]]
"""Takes each message of a stream as it comes, and tells whether there is room for it.

What it waits for holds the server up; once there is no room, the stream is cut.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rpc:
    """One RPC: of which method, with what, and until when, on the loop's clock, it may last."""

    path: str
    messages: Sequence[bytes]
    metadata: Metadata
    until: float

    @property
    def seconds(self) -> float:
        """Return how long it may last from now on."""
        return max(0.0, self.until - asyncio.get_running_loop().time())

    @property
    def request(self) -> bytes | Sequence[bytes]:
        """Return what is sent; one message is the same on the wire as a stream of one.

        It is written with the end of the stream, so that a server which refuses it is understood:
        where one ends a call that is still written to, grpcio may lose the status.
        """
        return self.messages[0] if len(self.messages) == 1 else self.messages


async def answered(connection: Connection, rpc: Rpc) -> bytes:
    """Return the one message that a method answers with.

    Raises:
        UpstreamError: What went wrong, and whether the outcome is known.
    """
    return await connection.answer(rpc.path, rpc.request, seconds=rpc.seconds, more=rpc.metadata)


async def streamed(connection: Connection, rpc: Rpc, arrived: Arrived) -> bool:
    """Hand each message that a method streams to `arrived`; return whether all of them have come.

    Raises:
        UpstreamTimeout: Not one has come in time.
        UpstreamError: What went wrong, and whether the outcome is known.
    """
    count = size = 0
    patience = rpc.seconds - min(rpc.seconds * _SHARE, _LONGEST_MARGIN)
    with connection.answers(
        rpc.path, rpc.request, seconds=rpc.seconds, more=rpc.metadata
    ) as answers:
        try:
            async with asyncio.timeout(patience):
                while (message := await answers.next()) is not None:
                    if count == MAX_MESSAGES or size + len(message) > MAX_BYTES:
                        return False
                    count += 1
                    size += len(message)
                    if not await arrived(message):
                        return False
        except TimeoutError:
            if not count:
                raise UpstreamTimeout(message="no message came in time") from None
            return False
    return True
