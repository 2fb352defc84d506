"""Clients whose connections all come out at one worker, whatever they ask on them.

The first request on a connection leads it to its worker; a proxy's connections are like that.
"""

import asyncio

from tests.support.http_peer import HttpPeer, read_reply
from tests.support.old_client import OldClient
from tests.support.waiting import within
from thoughtgate.surface.holders import holder

WORKERS = 2


class PinnedPeer(HttpPeer):
    """Opens connections to the worker that holds the session of `beacon`."""

    def __init__(self, url: str, beacon: OldClient) -> None:
        super().__init__(url)
        self._beacon = beacon

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await super().open()
        kept = [*self._beacon.headers.items(), ("connection", "keep-alive")]
        ping = b'{"jsonrpc":"2.0","id":0,"method":"ping"}'
        writer.write(self.head("POST", self._beacon.path, len(ping), kept) + ping)
        got = await within(read_reply(reader))
        assert got.status == 200, got
        return reader, writer


def worker_of(client: OldClient) -> int:
    """Return the worker that holds the session of a client."""
    return holder(client.headers["mcp-session-id"], WORKERS)


async def beacons(url: str) -> list[OldClient]:
    """Return a client for each worker, by the worker's number."""
    found: dict[int, OldClient] = {}
    while len(found) < WORKERS:
        client = await OldClient.open(url)
        found[worker_of(client)] = client
    return [found[index] for index in range(WORKERS)]


def strayed(client: OldClient, elsewhere: OldClient) -> OldClient:
    """Return the same session, whose every request comes to another client's worker."""
    assert worker_of(client) != worker_of(elsewhere)
    stray = OldClient(f"http://127.0.0.1:{client.peer.port}{client.path}")
    stray.headers = client.headers
    stray.peer = PinnedPeer(f"http://127.0.0.1:{client.peer.port}", elsewhere)
    return stray
