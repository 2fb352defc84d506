"""A fastmcp proxy, as its documentation shows it, to be measured beside us.

Never run by our own Python: fastmcp lives in an environment of its own.

    python fastmcp_proxy.py default|connected PORT URL | COMMAND ARGUMENT…

`default` gives the proxy the address and lets it connect; `connected` gives it a client that is
connected already and shared by all.
"""

import asyncio
import sys

from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy


async def main(mode: str, port: int, *target: str) -> None:
    """Serve until killed."""
    where = target[0] if len(target) == 1 else StdioTransport(target[0], list(target[1:]))
    if mode == "connected":
        async with Client(where) as client:
            await serve(create_proxy(client), port)
    else:
        await serve(create_proxy(where), port)


async def serve(proxy: FastMCP, port: int) -> None:
    """Serve over HTTP, silently."""
    await proxy.run_http_async(show_banner=False, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
