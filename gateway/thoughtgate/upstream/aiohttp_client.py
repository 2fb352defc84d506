"""The other HTTP client, on aiohttp: for those who trust it more, at twice the price per call.

Never imported unless it is chosen: aiohttp is an optional extra.
"""

import asyncio
import ssl

import aiohttp
from yarl import URL

from thoughtgate.core.errors import (
    UpstreamError,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamUnreachable,
)
from thoughtgate.upstream.http_client import Limits
from thoughtgate.upstream.http_rules import check_head, header_lines, target
from thoughtgate.upstream.ports import HttpReply, HttpRequest


class AiohttpClient:
    """An `HttpClient` on aiohttp; belongs to one event loop."""

    def __init__(self, *, limits: Limits | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._limits = limits or Limits()
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def send(self, request: HttpRequest) -> HttpReply:
        """Send once and return when the head of the reply has come; see `HttpClient.send`."""
        where = target(request.url)
        header_lines(request.headers)
        if self._closed:
            raise UpstreamUnreachable(message="the gateway is shutting down")
        try:
            response = await self._opened().request(
                request.method,
                URL(request.url, encoded=True),
                headers={**request.headers, "Accept-Encoding": "identity"},
                data=request.body or None,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError) as error:
            raise _translated(error, where.origin) from None
        headers = {
            name.lower(): ", ".join(response.headers.getall(name)).strip(" \t")
            for name in response.headers
        }
        try:
            check_head(response.status, headers, request.url)
        except UpstreamGarbled:
            response.close()
            raise
        return HttpReply(status=response.status, headers=headers, body=_Body(response))

    async def aclose(self) -> None:
        """Close every connection; whoever still waits for a reply gets UpstreamLost."""
        self._closed = True
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # aiohttp closes its transports in the loop's next turn

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            limits = self._limits
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,
                    limit_per_host=limits.connections,
                    keepalive_timeout=limits.idle,
                    ssl=self._tls or True,
                ),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers={"User-Agent", "Content-Type", "Accept"},
                max_line_size=16 * 1024,
                max_field_size=16 * 1024,
            )
        return self._session


class _Body:
    """The body of one aiohttp response."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def chunk(self) -> bytes:
        """Return the next bytes, `b""` at the end; see `Body.chunk`."""
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise _broken(error) from None

    def release(self) -> None:
        """Give the connection back; aiohttp drops it when the body has not ended."""
        self._response.release()

    def close(self) -> None:
        """Drop the connection unless the body is complete."""
        self._response.close()


def _translated(error: Exception, origin: str) -> UpstreamError:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return UpstreamUnreachable(message=f"the certificate of {origin} is not trusted")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return UpstreamUnreachable(message=f"no connection to {origin} in time")
    if isinstance(error, aiohttp.ClientConnectorError):
        reason = error.os_error.strerror or type(error.os_error).__name__
        return UpstreamUnreachable(message=f"cannot connect to {origin}: {reason}")
    if isinstance(error, aiohttp.ClientResponseError):
        return UpstreamGarbled(message="the answer is not HTTP/1.1")
    return UpstreamLost(message="the connection broke before an answer came")


def _broken(error: Exception) -> UpstreamError:
    cause = error.__cause__
    if isinstance(error, aiohttp.ClientPayloadError) and isinstance(
        cause, aiohttp.http_exceptions.TransferEncodingError
    ):
        return UpstreamGarbled(message="the answer is not HTTP/1.1")
    return UpstreamLost(message="the connection broke in the middle of the answer")
