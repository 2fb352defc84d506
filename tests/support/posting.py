"""The gateway's own HTTP client behind the port that model clients take."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from thoughtgate.models.posting import Post, Posted
from thoughtgate.upstream.http_client import PooledClient
from thoughtgate.upstream.ports import HttpRequest


@asynccontextmanager
async def posting() -> AsyncIterator[Post]:
    """Yield a `Post` that really posts."""
    client = PooledClient()

    async def post(url: str, *, headers: Mapping[str, str], body: bytes) -> Posted:
        return await client.send(HttpRequest(method="POST", url=url, headers=headers, body=body))

    try:
        yield post
    finally:
        await client.aclose()
