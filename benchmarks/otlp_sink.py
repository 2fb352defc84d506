"""An OTLP receiver that counts requests and throws them away, so that it costs next to nothing.

Never decodes anything: what the spans say is held by the tests.

    python otlp_sink.py PORT
"""

import asyncio
import sys

import uvloop

ACCEPTED = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read requests with a length and accept each, until the client leaves."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            [length] = (
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            )
            await reader.readexactly(length)
            writer.write(ACCEPTED)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(port: int) -> None:
    """Serve until killed."""
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
