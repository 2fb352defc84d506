"""The events of streams that a client may come back for, in memory.

Never keeps more than a few hundred: the suite resumes within seconds.
"""

from collections import deque
from typing import Final

from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import JSONRPCMessage

KEPT: Final = 512


class Events(EventStore):
    """Event ids count upwards; each belongs to one stream."""

    def __init__(self) -> None:
        self._count = 0
        self._kept: deque[tuple[int, str, JSONRPCMessage | None]] = deque(maxlen=KEPT)

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Keep one event; None is the one that only names where to resume."""
        self._count += 1
        self._kept.append((self._count, stream_id, message))
        return str(self._count)

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        """Send what came after an event on its stream, and return the stream."""
        known = {str(number): stream for number, stream, _ in self._kept}
        stream = known.get(last_event_id)
        if stream is None:
            return None
        for number, of, message in list(self._kept):
            if of == stream and number > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream
