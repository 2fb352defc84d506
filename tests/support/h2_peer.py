"""A server of bare HTTP/2: it answers every request with headers that a test spells.

Never reaches beyond the loopback address, and never sends a message.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded

from tests.support.waiting import within

Headers = Sequence[tuple[str, str]]


@asynccontextmanager
async def answering(headers: Headers, *, times: int | None = None) -> AsyncIterator[int]:
    """Serve; yields the port. After so many answers the server is gone, connection and all."""
    answered = 0
    talks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answered
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        connection = H2Connection(H2Configuration(client_side=False))
        connection.initiate_connection()
        while True:
            writer.write(connection.data_to_send())
            data = await reader.read(65_536)
            if not data:
                return writer.close()
            for event in connection.receive_data(data):
                if isinstance(event, StreamEnded):
                    connection.send_headers(event.stream_id, headers, end_stream=True)
                    answered += 1
            if answered == times:
                server.close()
                writer.write(connection.data_to_send())
                return writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        if talks:
            await within(asyncio.wait(talks))


def grpc_status(code: str, **more: str) -> Headers:
    """Return the headers of an answer that is a status only."""
    made = [(":status", "200"), ("content-type", "application/grpc"), ("grpc-status", code)]
    return [*made, *((name.replace("_", "-"), value) for name, value in more.items())]
