"""Our own HTTP/1.1 client: pooled connections, one write per request, replies as streams.

Never sends a request twice: when a reused connection breaks before the reply, the caller is told.
"""

import asyncio
import os
import ssl
from collections import deque
from dataclasses import dataclass, field

from thoughtgate.core.errors import UpstreamError, UpstreamUnreachable
from thoughtgate.upstream.http_connection import Connection
from thoughtgate.upstream.http_rules import Target, check_head, request_bytes, target
from thoughtgate.upstream.ports import HttpReply, HttpRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a client, in seconds and connections per origin.

    `idle` stays under the five seconds after which common servers close a silent connection;
    `connections` leaves room for the streams of all clients that may have sessions of their own.
    """

    connect: float = 10.0
    idle: float = 4.0
    connections: int = 8192
    kept: int = 64


@dataclass(slots=True, kw_only=True)
class _Pool:
    """The connections of one origin."""

    idle: deque[Connection] = field(default_factory=deque)
    open: int = 0
    queue: deque[asyncio.Future[None]] = field(default_factory=deque)


class PooledClient:
    """An `HttpClient` on asyncio and httptools; belongs to one event loop."""

    def __init__(self, *, limits: Limits | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._limits = limits or Limits()
        self._tls = tls
        self._pools: dict[tuple[bool, str, int], _Pool] = {}
        self._open: set[Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    async def send(self, request: HttpRequest) -> HttpReply:
        """Send once and return when the head of the reply has come; see `HttpClient.send`."""
        where = target(request.url)
        data = request_bytes(request, where)
        pool = self._pool(where)
        connection = self._idle(pool) or await self._connection(where, pool)
        reply = await connection.exchange(data)
        try:
            check_head(reply.status, reply.headers, request.url)
        except UpstreamError:
            reply.body.close()
            raise
        return reply

    async def aclose(self) -> None:
        """Close every connection; whoever still waits for a reply gets UpstreamLost."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        closing = list(self._open)
        for connection in closing:
            connection.abort()
        for pool in self._pools.values():
            _wake(pool, everyone=True)
        if closing:
            await asyncio.wait([connection.gone for connection in closing], timeout=1.0)

    def _pool(self, where: Target) -> _Pool:
        place = (where.secure, where.host, where.port)
        pool = self._pools.get(place)
        if pool is None:
            pool = self._pools[place] = _Pool()
        return pool

    def _idle(self, pool: _Pool) -> Connection | None:
        """Return a connection that nobody uses, None when there is none."""
        if self._closed:
            raise UpstreamUnreachable(message="the gateway is shutting down")
        while pool.idle:
            connection = pool.idle.pop()
            if connection.reusable(self._limits.idle):
                return connection
            connection.abort()
        return None

    async def _connection(self, where: Target, pool: _Pool) -> Connection:
        """Return a new connection, or one that came free when there may be no more of them."""
        while pool.open >= self._limits.connections:
            await _turn(pool)
            connection = self._idle(pool)
            if connection is not None:
                return connection
        return await self._connect(where, pool)

    async def _connect(self, where: Target, pool: _Pool) -> Connection:
        loop = asyncio.get_running_loop()
        pool.open += 1
        connection = Connection(loop, lambda done: self._finished(done, pool))
        connected = False
        try:
            async with asyncio.timeout(self._limits.connect):
                await loop.create_connection(
                    lambda: connection,
                    where.host,
                    where.port,
                    ssl=self._context() if where.secure else None,
                )
            connected = True
        except (OSError, UnicodeError) as error:  # a host name that IDNA refuses is a UnicodeError
            raise UpstreamUnreachable(message=_why_unreachable(where, error)) from None
        finally:
            if not connected:
                connection.abort()
                if not connection.attached:  # otherwise its own end gives the place back
                    pool.open -= 1
                    _wake(pool)
        self._open.add(connection)
        connection.gone.add_done_callback(lambda _: self._open.discard(connection))
        return connection

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def _finished(self, connection: Connection, pool: _Pool) -> None:
        """Take back a connection whose exchange is over, or the place of one that is gone."""
        if connection.gone.done():
            pool.open -= 1
            if connection in pool.idle:
                pool.idle.remove(connection)
        elif self._closed or len(pool.idle) >= self._limits.kept:
            connection.abort()
            return
        else:
            pool.idle.append(connection)
            self._plan_sweep()
        _wake(pool)

    def _plan_sweep(self) -> None:
        if self._sweeper is None:
            loop = asyncio.get_running_loop()
            self._sweeper = loop.call_later(self._limits.idle, self._sweep)

    def _sweep(self) -> None:
        """Close what was idle for too long; the oldest stand on the left."""
        self._sweeper = None
        for pool in self._pools.values():
            while pool.idle and not pool.idle[0].reusable(self._limits.idle):
                pool.idle.popleft().abort()
        if any(pool.idle for pool in self._pools.values()):
            self._plan_sweep()


async def _turn(pool: _Pool) -> None:
    """Wait until a connection of the pool may be free; first come, first served."""
    turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    pool.queue.append(turn)
    try:
        await turn
    except asyncio.CancelledError:
        if turn.done() and not turn.cancelled():
            _wake(pool)  # the turn came, but nobody takes it
        raise


def _wake(pool: _Pool, *, everyone: bool = False) -> None:
    while pool.queue:
        turn = pool.queue.popleft()
        if not turn.done():
            turn.set_result(None)
            if not everyone:
                return


def _why_unreachable(where: Target, error: OSError | UnicodeError) -> str:
    """Return what a failed connect means; nothing was sent."""
    if isinstance(error, TimeoutError):
        return f"no connection to {where.origin} in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of {where.origin} is not trusted: {error.verify_message}"
    reason = error.strerror if isinstance(error, OSError) else None
    if isinstance(error, ConnectionError) and error.errno:  # asyncio puts the address in its words
        reason = os.strerror(error.errno)
    return f"cannot connect to {where.origin}: {reason or type(error).__name__}"
