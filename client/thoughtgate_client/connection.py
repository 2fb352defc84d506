"""One connection, owned by one task; everybody else only borrows it.

Never lets the SDK's task group reach the caller: a broken transport would cancel whoever holds it,
so a task of our own holds it, and callers get errors instead.
"""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, Implementation
from pydantic import ValidationError

from thoughtgate_client.errors import (
    ConnectionLost,
    Garbled,
    GateError,
    Refused,
    TimedOut,
    Unreachable,
)

_CONNECT = 10.0
"""Seconds for one TCP connection."""


@asynccontextmanager
async def connection(
    url: str, *, headers: Mapping[str, str], start_seconds: float, mode: str
) -> AsyncIterator[Client]:
    """Connect, yield the SDK's client for borrowing, and disconnect.

    Raises:
        Unreachable: No connection could be made in time.
    """
    owner = _Owner(url, headers, mode)
    task = asyncio.create_task(owner.hold(), name=f"thoughtgate-client {owner.shown}")
    try:
        yield await owner.ready(task, start_seconds)
    finally:
        owner.leave.set()
        await asyncio.wait([task], timeout=start_seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class _Owner:
    """The task that enters and leaves the SDK's client."""

    def __init__(self, url: str, headers: Mapping[str, str], mode: str) -> None:
        self.shown = _without_secrets(url)
        self.leave = asyncio.Event()
        self._url = url
        self._headers = dict(headers)
        self._mode = mode
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()

    async def hold(self) -> None:
        """Hold the connection until told to leave; never raises what the transport raised."""
        try:
            async with self._http() as http:
                transport = streamable_http_client(self._url, http_client=http)
                info = Implementation(name="thoughtgate-client", version="1")
                async with Client(transport, mode=self._mode, client_info=info) as client:
                    self._client.set_result(client)
                    await self.leave.wait()
        except (httpx2.HTTPError, httpx2.InvalidURL, MCPError, OSError, ExceptionGroup) as failure:
            if not self._client.done():
                self._client.set_exception(self._unreachable(failure))

    async def ready(self, task: asyncio.Task[None], seconds: float) -> Client:
        """Return the client once it is connected."""
        waited: list[asyncio.Future[Any]] = [self._client, task]
        await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._client.done():
            return self._client.result()
        if task.done():
            task.result()
        raise Unreachable(message=f"{self.shown} did not answer within {seconds:g} s")

    def _http(self) -> httpx2.AsyncClient:
        # a run may think for longer than any read timeout: calls carry their own
        timeout = httpx2.Timeout(None, connect=_CONNECT)
        return httpx2.AsyncClient(
            headers=self._headers, timeout=timeout, trust_env=not _is_loopback(self._url)
        )

    def _unreachable(self, failure: BaseException) -> Unreachable:
        first = _first(failure)
        if isinstance(first, httpx2.ConnectError | httpx2.ConnectTimeout):
            reason = "nobody listens there; is the gateway running (thoughtgate serve)"
        elif isinstance(first, httpx2.UnsupportedProtocol | httpx2.InvalidURL):
            return Unreachable(
                message="not an address: write http://HOST:PORT/mcp or grpc://HOST:PORT"
            )
        elif isinstance(first, httpx2.RemoteProtocolError):
            reason = "what answers there is not HTTP; write grpc://HOST:PORT where it speaks gRPC"
        elif isinstance(first, MCPError):
            reason = f"the server there answered: {first.error.message[:200]}"
        else:
            reason = f"{type(first).__name__}; is this the address of an MCP endpoint"
        return Unreachable(message=f"cannot connect to {self.shown}: {reason}")


@contextmanager
def translated() -> Iterator[None]:
    """Turn what the SDK raises during a call into this library's errors."""
    try:
        yield
    except MCPError as failure:
        raise _said(failure) from None
    except ValidationError:
        raise Garbled(message="the server's answer is not a well-formed result") from None
    except RuntimeError as failure:
        # the SDK's word for a result that breaks the tool's output schema
        raise Garbled(message=f"the result cannot be used: {str(failure)[:300]}") from None


def _said(failure: MCPError) -> GateError:
    code, message = failure.error.code, failure.error.message
    if code == CONNECTION_CLOSED:
        return ConnectionLost(
            message="the connection is gone: connect again; what was under way may have happened"
        )
    if code == REQUEST_TIMEOUT:
        return TimedOut(message=message)
    return Refused(message=message, code=code, data=failure.error.data)


def _first(failure: BaseException) -> BaseException:
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


def _without_secrets(url: str) -> str:
    """Return `url` without user, password and query."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "this address"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
