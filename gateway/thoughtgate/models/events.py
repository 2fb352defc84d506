"""A reply that comes as server-sent events, folded into one.

Never takes a stream that ends early for a reply.
"""

from collections.abc import Callable
from typing import Protocol

from thoughtgate.core.json import JsonValue
from thoughtgate.core.models import ModelResponse
from thoughtgate.models.patience import Later, Reader, usable
from thoughtgate.wire.sse import EventParser
from thoughtgate.wire.strict import parse

_MAX_EVENT = 4 * 2**20


class Fold(Protocol):
    """What takes the events of one reply."""

    @property
    def done(self) -> bool:
        """Whether the last event has come."""
        ...

    def take(self, data: bytes) -> None:
        """Take one event's data."""
        ...

    def reply(self) -> ModelResponse | None:
        """Return the whole reply, None while it is not."""
        ...


async def folded(
    reader: Reader, fold: Fold, whole: Callable[[JsonValue], ModelResponse]
) -> ModelResponse:
    """Return what `fold` makes of the stream; of a server that does not stream, what `whole` does.

    Raises:
        Later: The stream ended before the reply did, or is not one.
        Malformed: It holds what is not JSON.
        ModelError: The server refuses what it has begun to answer.
    """
    events = EventParser(cap=_MAX_EVENT)
    first = await reader.chunk()
    with usable():
        if first.lstrip()[:1] == b"{":
            return whole(parse(first + await reader.whole()))
        chunk = first
        while chunk:
            for event in events.feed(chunk):
                if event.data:
                    fold.take(event.data)
            if fold.done:
                break
            chunk = await reader.chunk()
        reply = fold.reply()
    if reply is None:
        raise Later(what="ended its reply too early")
    return reply
