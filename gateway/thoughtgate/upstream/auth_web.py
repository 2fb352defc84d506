"""The HTTP client that a login uses: the SDK's kind, with our rules of where it may go.

Never follows a redirect, takes a proxy from the environment, or reads an answer without end.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

from thoughtgate.core.errors import UpstreamGarbled
from thoughtgate.upstream.auth_places import check_place, check_reach

_TIMEOUT = 30.0
_LONGEST_BODY = 1024 * 1024


@asynccontextmanager
async def web(
    server_url: str, tls: ssl.SSLContext | None = None
) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a client for one login at one server."""
    inner = httpx2.AsyncHTTPTransport(
        verify=ssl.create_default_context() if tls is None else tls, trust_env=False
    )
    async with httpx2.AsyncClient(
        transport=_Guarded(inner, server_url),
        timeout=_TIMEOUT,
        follow_redirects=False,
        trust_env=False,
        headers={"accept-encoding": "identity", "user-agent": "thoughtgate"},
    ) as client:
        yield client


class _Guarded(httpx2.AsyncBaseTransport):
    """Looks at each address before it is dialled, and bounds each answer."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, server_url: str) -> None:
        self._inner = inner
        self._server_url = server_url

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send, if the address may be dialled."""
        place = check_place(str(request.url), self._server_url)
        await check_reach(place, self._server_url)
        response = await self._inner.handle_async_request(request)
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Capped(stream, place.origin),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class _Capped(httpx2.AsyncByteStream):
    """A body that ends with an error when it is too long."""

    def __init__(self, inner: httpx2.AsyncByteStream, origin: str) -> None:
        self._inner = inner
        self._origin = origin

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > _LONGEST_BODY:
                raise UpstreamGarbled(
                    message=f"the answer of {self._origin} is longer than {_LONGEST_BODY} bytes"
                )
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
