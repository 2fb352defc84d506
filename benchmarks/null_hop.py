"""The floor: one HTTP hop that answers every request with the same bytes.

Never looks at what it is asked; it is what any Python server pays for a request and a reply.

    python null_hop.py PORT
"""

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

Message = MutableMapping[str, Any]
REPLY = b'{"jsonrpc":"2.0","id":0,"result":{"content":[{"type":"text","text":"hello"}]}}'
HEAD = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(REPLY))]


async def app(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Read the body and answer."""
    del scope
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEAD})
    await send({"type": "http.response.body", "body": REPLY})


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        lifespan="off",
        log_level="error",
        access_log=False,
    )
