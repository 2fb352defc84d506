"""One connection, kept alive: opened when first needed, opened again when lost, in bounds.

Never sends a call twice unless it was provably not sent, or does no harm when repeated.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from thoughtgate.core.calls import Call, Listener
from thoughtgate.core.errors import (
    UpstreamDenied,
    UpstreamError,
    UpstreamLost,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from thoughtgate.core.servers import UpstreamState
from thoughtgate.core.tools import Effect, Item, Kind, Tool
from thoughtgate.upstream.auth import ScopeMissing
from thoughtgate.upstream.breaker import Breaker
from thoughtgate.upstream.home import Home
from thoughtgate.upstream.ports import Changed, Counts, Link, Peer, SentTwice
from thoughtgate.wire.messages import Reply

_log = logging.getLogger(__name__)

ENDING = 10.0
"""Seconds that ending a failed attempt may take, beyond the time for starting."""

SHORT_PAUSE = 1.0
"""Seconds until the next attempt that a call waits out; beyond that it fails at once."""

PROVEN = 10.0
"""Seconds after which a connection counts as having worked, even without an answered call."""

TOLERATED = 2
"""Calls in a row that may fail on a link without a connection before the breaker opens."""

LEAVING = 5.0
"""Seconds in which a server is told that nobody follows a resource any more."""


def _nothing(which: str) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What a connection is for.

    `open` opens a link and makes it ready for use; `said` hears of each change of state, with the
    reason and who answered; `changed` runs when one of the server's lists has; `tend` runs beside
    an open link. A `lasting` connection is opened again at once when it is lost, others when they
    are needed; one that nobody used for `idle` seconds is ended, unless that is 0.
    """

    name: str
    open: Callable[[], Awaitable[Link]]
    said: Callable[[UpstreamState, str, Peer | None], None]
    lasting: bool
    idle: float
    changed: Changed = _nothing
    tend: Callable[[Link], Coroutine[Any, Any, None]] | None = None


class Progress(msgspec.Struct, eq=False):
    """How far a call has come: whether a link was there, whether it may have been sent."""

    started: bool = False
    sent: bool = False


class Supervised:
    """One connection's owner: a task opens its link, follows it and opens it again."""

    def __init__(self, role: Role, home: Home, breaker: Breaker) -> None:
        loop = asyncio.get_running_loop()
        self.home = home
        self.counts = Counts()
        self.in_flight = 0
        self._role = role
        self._now = loop.time
        self._used = loop.time()
        self._breaker = breaker
        self._owner: asyncio.Task[None] | None = None
        self._link: Link | None = None
        self._attempt: asyncio.Future[Link] = loop.create_future()
        self._waiting = 0
        self._following = asyncio.Lock()
        self._quiet: asyncio.Event | None = None
        self._reason = ""
        self._denied = False
        self._closed = False

    @property
    def link(self) -> Link | None:
        """Return the open link, None when there is none."""
        return None if self._link is None or self._link.lost else self._link

    @property
    def busy(self) -> bool:
        """Tell whether anybody uses the connection now, or waits to hear something on it."""
        asked = self._link is not None and self._link.questions > 0
        return bool(self.in_flight or self._waiting or asked or self.home.subscriptions)

    async def send(self, call: Call, progress: Progress) -> Reply:
        """Send a call once and return the reply; see `Sender.send`."""
        self.in_flight += 1
        try:
            return await self._once(call, progress)
        except (UpstreamUnreachable, UpstreamLost) as error:
            return await self._again(call, progress, error)
        finally:
            self._done()

    async def follow(self, uri: str, listener: Listener, deadline: float) -> None:
        """Have a listener hear of changes of a resource.

        Raises:
            Overloaded: Too much is followed here.
            UpstreamError: The server will not tell, or could not be asked.
        """
        self.in_flight += 1
        followed = False
        try:
            async with self._following:
                link = await self.ready(deadline)
                if self.home.subscriptions.add(uri, listener):
                    await link.subscribe(uri)
                followed = True
        finally:
            if not followed:
                self.home.subscriptions.discard(uri, listener)
            self._done()

    async def unfollow(self, uri: str, listener: Listener) -> None:
        """Have a listener hear no more of a resource."""
        if self.home.subscriptions.discard(uri, listener):
            await self.unsubscribed((uri,))

    async def unsubscribed(self, uris: tuple[str, ...]) -> None:
        """Tell the server, if it is connected, of resources that nobody follows any more."""
        self.in_flight += 1
        try:
            async with asyncio.timeout(LEAVING), self._following:
                gone = [uri for uri in uris if uri not in self.home.subscriptions]
                if gone and self.link is not None:
                    await self.link.unsubscribe(gone)
        except (UpstreamError, TimeoutError):
            return  # what it tells from now on finds nobody
        finally:
            self._done()

    async def ready(self, deadline: float) -> Link:
        """Return the open link; open it, or wait for whoever is opening it."""
        if self._closed:
            raise UpstreamUnreachable(message="it was removed, or the gateway is shutting down")
        pause = self._breaker.pause(self._now())
        kind = UpstreamDenied if self._denied else UpstreamUnreachable
        if self._breaker.given_up:
            raise kind(message=f"given up after failing often: {self._why()}")
        if pause > SHORT_PAUSE:
            raise kind(message=f"not tried again for {pause:.0f} seconds: {self._why()}")
        if self._link is not None and not self._link.lost:
            return self._link
        if self._owner is None or self._owner.done():
            self._owner = asyncio.get_running_loop().create_task(
                self._own(), name=f"upstream {self._role.name}"
            )
            self._owner.add_done_callback(self._owner_done)
        self._waiting += 1
        try:
            async with asyncio.timeout_at(deadline):
                return await asyncio.shield(self._attempt)
        except TimeoutError:
            raise UpstreamUnreachable(message="it has not started in time") from None
        finally:
            self._waiting -= 1

    async def end(self) -> None:
        """End the connection; it is opened again when it is next needed."""
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.cancel()
            await asyncio.wait([owner])
        self._resolve(UpstreamUnreachable(message="it was stopped"))

    async def aclose(self) -> None:
        """End the connection for good, within the bound of its link."""
        self._closed = True
        await self.end()
        self.home.outlets.close()

    async def quiet(self) -> None:
        """Return when no call is in flight."""
        while self.in_flight:
            self._quiet = self._quiet or asyncio.Event()  # mostly nobody waits for that
            self._quiet.clear()
            await self._quiet.wait()

    def _done(self) -> None:
        self.in_flight -= 1
        self._used = self._now()
        if self._quiet is not None:
            self._quiet.set()

    async def _again(self, call: Call, progress: Progress, first: UpstreamError) -> Reply:
        """Send once more what did not go out, or does no harm when repeated."""
        lost = isinstance(first, UpstreamLost)
        if not (_repeatable(call.found) if lost else progress.started):
            raise first
        progress.sent = lost  # it may have been, the first time
        try:
            return await self._once(call, progress)
        except UpstreamUnreachable as error:
            if not lost:
                raise
            raise UpstreamLost(message=f"{first.message}; again: {error.message}") from None

    async def _once(self, call: Call, progress: Progress) -> Reply:
        link = self._link
        if link is None or link.lost or self._closed or self._breaker.failures:
            link = await self.ready(call.deadline)
        progress.started = progress.sent = True
        try:
            reply = await link.call(call)
        except (UpstreamUnreachable, UpstreamLost, UpstreamDenied) as error:
            progress.started = not isinstance(error, SentTwice)
            self._call_failed(link, error)
            raise
        if self._breaker.failures:
            self._worked(link)
        return reply

    async def _own(self) -> None:
        """Open, follow, and open again, until there is no use in trying."""
        while await self._wait_for_turn():
            self._say(UpstreamState.STARTING)
            try:
                link = await self._role.open()
            except UpstreamError as error:
                self._attempt_failed(error)
                if isinstance(error, UpstreamDenied) or not self._wanted:
                    return
                continue
            self._opened(link)
            since = self._now()
            try:
                reason = await self._follow(link)
            finally:
                self._link = None
                await link.aclose()
            if reason is None:
                self._say(UpstreamState.IDLE)
                if not self._waiting:
                    return
            else:
                self._lost(since, reason)
                if not self._wanted:
                    return

    @property
    def _wanted(self) -> bool:
        """Tell whether a connection is to be opened although no new call asks for it."""
        return bool(self._role.lasting or self._waiting or self.home.subscriptions)

    async def _wait_for_turn(self) -> bool:
        """Wait out the breaker's pause; False when it has given up."""
        if self._breaker.given_up:
            return False
        await asyncio.sleep(self._breaker.pause(self._now()))
        return True

    async def _follow(self, link: Link) -> str | None:
        """Watch a link, and tend to it; return why it is over, None when nobody used it."""
        loop = asyncio.get_running_loop()
        watching = loop.create_task(link.watch(self._role.changed))
        tasks: set[asyncio.Task[None]] = set()
        if self._role.tend is not None:
            tasks.add(loop.create_task(self._role.tend(link)))
        try:
            await self._until_over((watching, *tasks))
        finally:
            for task in (watching, *tasks):
                task.cancel()
            await asyncio.wait([watching, *tasks])  # awaiting one would swallow our cancellation
        for task in tasks:
            if not task.cancelled():
                task.result()  # raises when it ended by a bug
        return None if watching.cancelled() else watching.result()

    async def _until_over(self, tasks: Sequence[asyncio.Task[Any]]) -> None:
        """Return when a task has ended, or nobody has used the connection for long enough."""
        idle, ended = self._role.idle, set[asyncio.Task[Any]]()
        while not ended:
            rest = idle if self.busy else self._used + idle - self._now()
            if idle and rest <= 0:
                return
            limit = rest if idle else None
            ended, _ = await asyncio.wait(tasks, timeout=limit, return_when=asyncio.FIRST_COMPLETED)

    def _opened(self, link: Link) -> None:
        self._link = link
        self._used = self._now()
        self.counts = link.counts
        self._say(UpstreamState.READY)
        self._resolve(link)

    def _attempt_failed(self, error: UpstreamError) -> None:
        """Count a failed attempt, say so once, and fail who waits for it."""
        self._breaker.failed(self._now())
        _log.warning(
            "server %s: attempt %d failed: %s",
            self._role.name,
            self._breaker.failures,
            error.message,
        )
        if isinstance(error, UpstreamDenied):
            self._say(UpstreamState.NEEDS_AUTH, error.message)
            self._resolve(error)
        else:
            self._down(error.message)
            self._resolve(UpstreamUnreachable(message=error.message))  # no call was sent

    def _lost(self, since: float, reason: str) -> None:
        """Count a lost connection unless it had proven itself; then it is opened at once.

        A client that lets its own child crash costs nobody else the server: that is not counted.
        """
        _log.warning("server %s: connection lost: it %s", self._role.name, reason)
        if self._now() - since > PROVEN:
            self._breaker.succeeded()
        elif self._role.lasting:
            self._breaker.failed(self._now(), tolerated=1)
        self._down(f"it {reason}")
        if self._breaker.pause(self._now()) > SHORT_PAUSE or self._breaker.given_up:
            self._resolve(UpstreamUnreachable(message=f"it {reason}"))

    def _down(self, reason: str) -> None:
        given_up = self._breaker.given_up
        self._say(UpstreamState.FAILED if given_up else UpstreamState.DEGRADED, reason)

    def _call_failed(self, link: Link, error: UpstreamError) -> None:
        """Count a call that failed for want of a connection; a lost link is its owner's matter."""
        if link.lost or self._link is not link or isinstance(error, ScopeMissing):
            return
        self._breaker.failed(self._now(), tolerated=TOLERATED)
        denied = isinstance(error, UpstreamDenied)
        self._say(UpstreamState.NEEDS_AUTH if denied else UpstreamState.DEGRADED, error.message)

    def _worked(self, link: Link) -> None:
        self._breaker.succeeded()
        if self._link is link:
            self._say(UpstreamState.READY)

    def _resolve(self, outcome: "Link | UpstreamError") -> None:
        """Tell whoever waits for the attempt how it went, and start a new wait."""
        attempt, self._attempt = self._attempt, asyncio.get_running_loop().create_future()
        if isinstance(outcome, UpstreamError):
            attempt.set_exception(outcome)
            attempt.exception()  # perhaps nobody waits
        else:
            attempt.set_result(outcome)

    def _owner_done(self, owner: "asyncio.Task[None]") -> None:
        """Fail who waits when the owner died of a bug, ours or a watcher's."""
        if owner.cancelled() or owner.exception() is None:
            return
        _log.error("server %s: its owner failed", self._role.name, exc_info=owner.exception())
        self._say(UpstreamState.FAILED, "an internal error; see the log")
        self._resolve(UpstreamUnreachable(message="it could not be opened for an internal error"))

    def _say(self, state: UpstreamState, reason: str = "") -> None:
        self._reason = reason
        self._denied = state is UpstreamState.NEEDS_AUTH
        self._role.said(state, reason, None if self._link is None else self._link.peer)

    def _why(self) -> str:
        return self._reason or "it failed"


def _repeatable(target: Tool | Item) -> bool:
    """Tell whether a call may be sent again when its outcome is unknown."""
    if isinstance(target, Item) and target.kind is Kind.METHOD:
        return False  # nobody knows what it does
    return target.effect is not Effect.WRITE


def too_late(timeout: float, progress: Progress) -> UpstreamError:
    """Return the error for a call whose time is over."""
    if progress.sent:
        return UpstreamTimeout(message=f"no answer within {max(timeout, 0.0):.1f} seconds")
    return UpstreamUnreachable(message="it has not started in time; the call was not sent")
