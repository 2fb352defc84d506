"""One server, kept alive: opened when first needed, opened again when lost, in bounds.

Never sends a call twice unless it was provably not sent, or does no harm when repeated.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import (
    UpstreamDenied,
    UpstreamError,
    UpstreamLost,
    UpstreamReplied,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from thoughtgate.core.servers import Era, Listing, Server, UpstreamState, UpstreamStatus
from thoughtgate.core.tools import Effect
from thoughtgate.upstream.breaker import Breaker
from thoughtgate.upstream.listing import list_tools
from thoughtgate.upstream.ports import Counts, Link
from thoughtgate.wire.results import peek

_log = logging.getLogger(__name__)

ENDING = 10.0
"""Seconds that ending a failed attempt may take, beyond the time for starting."""

SHORT_PAUSE = 1.0
"""Seconds until the next attempt that a call waits out; beyond that it fails at once."""

PROVEN = 10.0
"""Seconds after which a connection counts as having worked, even without an answered call."""

TOLERATED = 2
"""Calls in a row that may fail on a link without a connection before the breaker opens."""

RELIST_GAP = 0.5
"""Seconds between two listings of a server that keeps announcing changes."""

Open = Callable[[Server, Era | None], Awaitable[Link]]
"""Opens a link to a server, in the era that it is known to speak."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watchers:
    """Who wants to know: of each discovery and of each change of state."""

    on_listing: Callable[[Listing], None]
    on_status: Callable[[UpstreamStatus], None]


class Supervised:
    """One server's owner: a task opens its link, follows it and opens it again."""

    def __init__(self, server: Server, opener: Open, watchers: Watchers, breaker: Breaker) -> None:
        loop = asyncio.get_running_loop()
        self.server = server
        self.status = UpstreamStatus(server=server.name, state=UpstreamState.IDLE)
        self.counts = Counts()
        self.in_flight = 0
        self._now = loop.time
        self._opener = opener
        self._watchers = watchers
        self._breaker = breaker
        self._owner: asyncio.Task[None] | None = None
        self._link: Link | None = None
        self._listing: Listing | None = None
        self._era = server.era
        self._attempt: asyncio.Future[Link] = loop.create_future()
        self._stale = asyncio.Event()
        self._quiet = asyncio.Event()
        self._closed = False

    @property
    def name(self) -> str:
        """Return the server's name."""
        return self.server.name

    async def discover(self) -> Listing:
        """Return what the server offers now.

        Raises:
            UpstreamError: It could not be asked.
        """
        known = self._listing
        link = await self._named(self._ready(self._now() + self.server.start_timeout + ENDING))
        if self._listing is not None and self._listing is not known:
            return self._listing  # the connection has just been opened, and listed
        try:
            async with asyncio.timeout(self.server.start_timeout):
                return await self._named(self._list(link))
        except TimeoutError:
            raise self._error(UpstreamTimeout(message="no list of tools in time")) from None

    async def send(self, call: Call) -> Result:
        """Send once and return the result; see `Sender.send`."""
        timeout = min(call.deadline - self._now(), call.tool.call_timeout)
        progress = _Progress()
        self.in_flight += 1
        try:
            async with asyncio.timeout(timeout):
                raw = await self._named(self._attempts(call, progress))
        except TimeoutError:
            raise self._error(_too_late(timeout, sent=progress.sent)) from None
        finally:
            self.in_flight -= 1
            self._quiet.set()
        return Result(raw=raw, is_error=peek(raw).is_error)

    async def restart(self) -> Listing:
        """End the connection, forget all failures and open it again.

        Raises:
            UpstreamError: It could not be opened.
        """
        await self._end_owner()
        self._breaker.succeeded()
        self._era = self.server.era
        return await self.discover()

    async def aclose(self) -> None:
        """End the connection for good, within the bound of its link."""
        self._closed = True
        await self._end_owner()

    async def quiet(self) -> None:
        """Return when no call is in flight."""
        while self.in_flight:
            self._quiet.clear()
            await self._quiet.wait()

    async def _attempts(self, call: Call, progress: "_Progress") -> bytes:
        try:
            return await self._once(call, progress)
        except UpstreamUnreachable:
            if not progress.started:
                raise
        except UpstreamLost:
            if call.tool.effect is Effect.WRITE:
                raise
        progress.sent = False
        return await self._once(call, progress)

    async def _once(self, call: Call, progress: "_Progress") -> bytes:
        link = await self._ready(call.deadline)
        progress.started = progress.sent = True
        try:
            raw = await link.call(call)
        except (UpstreamUnreachable, UpstreamLost, UpstreamDenied) as error:
            self._call_failed(link, error)
            raise
        if self._breaker.failures:
            self._worked(link)
        return raw

    async def _ready(self, deadline: float) -> Link:
        """Return the open link; open it, or wait for whoever is opening it."""
        if self._closed:
            raise UpstreamUnreachable(message="it was removed, or the gateway is shutting down")
        pause = self._breaker.pause(self._now())
        if self._breaker.given_up:
            raise UpstreamUnreachable(message=f"given up after failing often: {self._why()}")
        if pause > SHORT_PAUSE:
            raise UpstreamUnreachable(
                message=f"not tried again for {pause:.0f} seconds: {self._why()}"
            )
        if self._link is not None and not self._link.lost:
            return self._link
        if self._owner is None or self._owner.done():
            self._owner = asyncio.get_running_loop().create_task(
                self._own(), name=f"upstream {self.server.name}"
            )
            self._owner.add_done_callback(self._owner_done)
        try:
            async with asyncio.timeout_at(deadline):
                return await asyncio.shield(self._attempt)
        except TimeoutError:
            raise UpstreamUnreachable(message="it has not started in time") from None

    async def _own(self) -> None:
        """Open, follow, and open again, until there is no use in trying."""
        while await self._wait_for_turn():
            self._set(UpstreamState.STARTING)
            try:
                link = await self._connect()
            except UpstreamError as error:
                self._attempt_failed(error)
                if isinstance(error, UpstreamDenied):
                    return
                continue
            self._opened(link)
            since = self._now()
            try:
                reason = await self._follow(link)
            finally:
                self._link = None
                await link.aclose()
            self._lost(since, reason)

    async def _wait_for_turn(self) -> bool:
        """Wait out the breaker's pause; False when it has given up."""
        if self._breaker.given_up:
            return False
        await asyncio.sleep(self._breaker.pause(self._now()))
        return True

    async def _connect(self) -> Link:
        """Open a link and list its tools, within the server's time for starting."""
        era, self._era = self._era, self.server.era  # if this fails, it may be another server now
        link: Link | None = None
        listed = False
        try:
            async with asyncio.timeout(self.server.start_timeout):
                link = await self._opener(self.server, era)
                await self._list(link)
            listed = True
        except TimeoutError:
            raise UpstreamUnreachable(
                message=f"not ready within {self.server.start_timeout:g} seconds"
            ) from None
        finally:
            if link is not None and not listed:
                await link.aclose()
        return link

    async def _follow(self, link: Link) -> str:
        """Watch a link and list again whenever its tools change; return why it is over."""
        relisting = asyncio.get_running_loop().create_task(self._keep_listed(link))
        try:
            return await link.watch(self._stale.set)
        finally:
            relisting.cancel()
            await asyncio.wait([relisting])  # awaiting the task would swallow our own cancellation
            if not relisting.cancelled():
                relisting.result()  # it ends only by a bug

    async def _keep_listed(self, link: Link) -> None:
        while True:
            await self._stale.wait()
            self._stale.clear()
            try:
                async with asyncio.timeout(self.server.start_timeout):
                    await self._list(link)
            except (UpstreamError, TimeoutError) as error:
                _log.warning("server %s: its changed tools cannot be listed: %s", self.name, error)
            await asyncio.sleep(RELIST_GAP)

    async def _list(self, link: Link) -> Listing:
        listing = await list_tools(self.name, link)
        self._listing = listing
        self._watchers.on_listing(listing)
        return listing

    def _opened(self, link: Link) -> None:
        self._link = link
        self._era = link.peer.era
        self.counts = link.counts
        self._set(UpstreamState.READY)
        self._resolve(link)

    def _attempt_failed(self, error: UpstreamError) -> None:
        """Count a failed attempt, say so once, and fail who waits for it."""
        self._breaker.failed(self._now())
        _log.warning(
            "server %s: attempt %d failed: %s", self.name, self._breaker.failures, error.message
        )
        if isinstance(error, UpstreamDenied):
            self._set(UpstreamState.NEEDS_AUTH, error.message)
            self._resolve(error)
        else:
            self._down(error.message)
            self._resolve(UpstreamUnreachable(message=error.message))  # no call was sent

    def _lost(self, since: float, reason: str) -> None:
        """Count a lost connection unless it had proven itself; then it is opened at once."""
        _log.warning("server %s: connection lost: it %s", self.name, reason)
        if self._now() - since > PROVEN:
            self._breaker.succeeded()
        else:
            self._breaker.failed(self._now(), tolerated=1)
        self._down(f"it {reason}")
        if self._breaker.pause(self._now()) > SHORT_PAUSE or self._breaker.given_up:
            self._resolve(UpstreamUnreachable(message=f"it {reason}"))

    def _down(self, reason: str) -> None:
        given_up = self._breaker.given_up
        self._set(UpstreamState.FAILED if given_up else UpstreamState.DEGRADED, reason)

    def _call_failed(self, link: Link, error: UpstreamError) -> None:
        """Count a call that failed for want of a connection; a lost link is its owner's matter."""
        if link.lost or self._link is not link:
            return
        self._breaker.failed(self._now(), tolerated=TOLERATED)
        denied = isinstance(error, UpstreamDenied)
        state = UpstreamState.NEEDS_AUTH if denied else UpstreamState.DEGRADED
        self._set(state, error.message)

    def _worked(self, link: Link) -> None:
        self._breaker.succeeded()
        if self._link is link:
            self._set(UpstreamState.READY)

    def _resolve(self, outcome: "Link | UpstreamError") -> None:
        """Tell whoever waits for the attempt how it went, and start a new wait."""
        attempt, self._attempt = self._attempt, asyncio.get_running_loop().create_future()
        if isinstance(outcome, UpstreamError):
            attempt.set_exception(outcome)
            attempt.exception()  # perhaps nobody waits
        else:
            attempt.set_result(outcome)

    async def _end_owner(self) -> None:
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.cancel()
            await asyncio.wait([owner])
        self._resolve(UpstreamUnreachable(message="it was stopped"))

    def _owner_done(self, owner: "asyncio.Task[None]") -> None:
        """Fail who waits when the owner died of a bug, ours or a watcher's."""
        if owner.cancelled() or owner.exception() is None:
            return
        _log.error("server %s: its owner failed", self.name, exc_info=owner.exception())
        self._set(UpstreamState.FAILED, "an internal error; see the log")
        self._resolve(UpstreamUnreachable(message="it could not be opened for an internal error"))

    def _why(self) -> str:
        return self.status.reason or "it failed"

    def _set(self, state: UpstreamState, reason: str = "") -> None:
        peer = self._link.peer if self._link is not None else None
        status = UpstreamStatus(
            server=self.name,
            state=state,
            reason=reason,
            era=peer.era if peer else self._era,
            version=peer.version if peer else "",
        )
        if status != self.status:
            self.status = status
            self._watchers.on_status(status)

    async def _named(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except UpstreamReplied:
            raise  # relayed as it is
        except UpstreamError as error:
            raise self._error(error) from None

    def _error(self, error: UpstreamError) -> UpstreamError:
        return type(error)(message=f"server {self.name}: {error.message}", data=error.data)


@dataclass(slots=True)
class _Progress:
    """How far a call has come: whether a link was there, whether it may have been sent."""

    started: bool = False
    sent: bool = False


def _too_late(timeout: float, *, sent: bool) -> UpstreamError:
    if sent:
        return UpstreamTimeout(message=f"no answer within {max(timeout, 0.0):.1f} seconds")
    return UpstreamUnreachable(message="it has not started in time; the call was not sent")
