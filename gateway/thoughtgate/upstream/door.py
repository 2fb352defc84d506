"""Where the other workers of a gateway come in for the tool servers whose children this one runs.

Never checks a call, writes a row or records a span: that was done where the call began. The socket
lies in a folder that is this user's alone.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from thoughtgate.core.calls import Call, Notice, Question
from thoughtgate.core.errors import GateError, NotAsked, UpstreamGarbled, UpstreamLost
from thoughtgate.core.servers import Listing, StdioTransport, UpstreamStatus
from thoughtgate.upstream.carried import (
    asked,
    call_of,
    error_of,
    fault_of,
    noticed,
    read_params,
    stands,
    write_listing,
)
from thoughtgate.upstream.frame_pipe import LONGEST, FramePipe
from thoughtgate.upstream.frames import (
    Answered,
    Asking,
    Done,
    Failed,
    FromGuest,
    FromHost,
    GivenUp,
    Left,
    Listed,
    Saying,
    Sending,
    Taken,
    TakenBack,
    Wish,
    encode,
    read_guest,
)
from thoughtgate.upstream.served import Served
from thoughtgate.upstream.upstreams import Upstreams

_log = logging.getLogger(__name__)

PARTING = 1.0
"""Seconds that closing the sockets may take."""

_BUG = "an internal error in the worker that runs it; see its log"


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What stands behind the door.

    `look` reads the registry again where a guest knows a server that is not known here yet;
    `settle` returns when what was discovered is in the registry.
    """

    upstreams: Upstreams
    look: Callable[[], Awaitable[None]]
    settle: Callable[[], Awaitable[None]]

    def runs(self, server: str) -> Served | None:
        """Return a server whose children run here for all; any other is each worker's own."""
        served = self.upstreams.served(server)
        if served is None or not isinstance(served.server.transport, StdioTransport):
            return None
        return served


class Door:
    """Listens at `place` for the other workers; belongs to one event loop."""

    def __init__(self, place: Path, house: House) -> None:
        self._place = place
        self._house = house
        self._guests: set[Guest] = set()
        self._server: asyncio.Server | None = None
        self._leaving: asyncio.Future[None] | None = None

    async def open(self) -> None:
        """Begin to listen; a socket that an earlier process left there is replaced."""
        with contextlib.suppress(FileNotFoundError):
            self._place.unlink()
        self._server = await asyncio.get_running_loop().create_unix_server(
            self._come_in, str(self._place)
        )
        os.chmod(self._place, 0o600)

    def left(self) -> "asyncio.Future[None]":
        """Return what is done when no guest is in: none has come, or all have left."""
        if self._leaving is None or self._leaving.done():
            self._leaving = asyncio.get_running_loop().create_future()
        if not self._guests:
            self._leaving.set_result(None)
        return self._leaving

    async def aclose(self) -> None:
        """Send all guests away, whatever they still want, and let nobody in any more."""
        if self._server is not None:
            self._server.close()
        guests = list(self._guests)
        ending = [guest.end() for guest in guests]
        if ending:
            await asyncio.wait(ending, timeout=PARTING)
        for guest in guests:
            guest.pipe.abort()  # one that reads nothing would never be gone

    def heard(self, listing: Listing) -> None:
        """Tell all guests what a discovery of a server that runs here found."""
        if self._house.runs(listing.server) is not None:
            for guest in self._guests:
                guest.heard(listing)

    def stands(self, status: UpstreamStatus) -> None:
        """Tell all guests how a server that runs here fares."""
        if self._house.runs(status.server) is not None:
            for guest in self._guests:
                guest.tell(stands(status))

    def _come_in(self) -> FramePipe:
        guest = Guest(self._house)
        self._guests.add(guest)
        guest.pipe.ended.add_done_callback(partial(self._gone, guest))
        return guest.pipe

    def _gone(self, guest: "Guest", ended: "asyncio.Future[None]") -> None:
        self._guests.discard(guest)
        guest.leave()
        if self._leaving is not None and not self._leaving.done() and not self._guests:
            self._leaving.set_result(None)


class Guest:
    """One other worker: what it wants done, and who of its clients hear of what."""

    def __init__(self, house: House) -> None:
        self.pipe = FramePipe(self._take, self._welcome)
        self.tasks: set[asyncio.Task[None]] = set()
        self._house = house
        self._running: dict[int, asyncio.Task[None]] = {}
        self._lasting: dict[int, Caller] = {}
        self._sessions: set[tuple[str, str]] = set()
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._news: dict[str, Listing] = {}
        self._telling: asyncio.Task[None] | None = None
        self._handlers: dict[type[FromGuest], Callable[[Any], None]] = {
            Sending: self._send,
            Asking: self._asked_of,
            GivenUp: self._give_up,
            Taken: lambda frame: self._settle(frame.number, b""),
            Answered: self._answered,
            Saying: self._say,
            Left: self._left,
        }

    def tell(self, frame: FromHost) -> None:
        """Send a frame, if the guest is there."""
        self.pipe.send(encode(frame))

    def heard(self, listing: Listing) -> None:
        """Send a listing when there is room; of one server only the newest."""
        self._news[listing.server] = listing
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._tell_news())

    async def told(self, listener: int, notice: Notice) -> None:
        """Have a listener told of something; returns when it has room for the next."""
        await self._answer_to(lambda number: noticed(notice, number=number, listener=listener))

    async def asked(self, listener: int, question: Question) -> bytes:
        """Have a listener asked; see `Listener.ask`."""
        return await self._answer_to(lambda n: asked(question, number=n, listener=listener))

    def leave(self) -> None:
        """Learn that the guest is gone, and all its clients with it."""
        for task in (*self.tasks, *([self._telling] if self._telling else ())):
            task.cancel()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(NotAsked(message="the client is gone"))
        for caller in self._lasting.values():
            self._house.upstreams.leave(caller)
        self._lasting.clear()
        for server, session in self._sessions:
            self._leave_session(server, session)
        self._sessions.clear()

    def end(self) -> "asyncio.Future[None]":
        """Send the guest away; what is returned is done when it is gone."""
        self.pipe.close()
        return self.pipe.ended

    def _welcome(self) -> None:
        """Tell the guest how the servers fare that run here, and what they list."""
        for status in self._house.upstreams.statuses():
            self._tell_status(status.server)
            served = self._house.runs(status.server)
            if served is not None and served.newest is not None:
                self.heard(served.newest)

    def _tell_status(self, server: str) -> None:
        served = self._house.runs(server)
        if served is not None:
            self.tell(stands(served.status))

    async def _tell_news(self) -> None:
        while self._news:
            await self.pipe.room()
            self.tell(_listed(self._news.pop(next(iter(self._news))), 0))

    def _take(self, data: bytes) -> None:
        """Take one frame."""
        try:
            frame = read_guest(data)
        except msgspec.DecodeError as error:
            _log.error("another worker cannot be understood: %s", error)
            self.pipe.abort()
            return
        self._handlers[type(frame)](frame)

    def _send(self, frame: Sending) -> None:
        self._begin(frame.number, frame.server, self._carry(frame))

    def _asked_of(self, frame: Asking) -> None:
        self._begin(frame.number, frame.server, self._inquire(frame))

    def _give_up(self, frame: GivenUp) -> None:
        task = self._running.get(frame.number)
        if task is not None:
            task.cancel()

    def _answered(self, frame: Answered) -> None:
        waiting = self._waiting.get(frame.number)
        if waiting is None or waiting.done():
            return
        if frame.fault is None:
            waiting.set_result(frame.raw)
        else:
            waiting.set_exception(error_of(frame.fault))

    def _say(self, frame: Saying) -> None:
        served = self._house.runs(frame.server)
        if served is not None:
            served.tell(frame.session, frame.method, read_params(frame.params))

    def _left(self, frame: Left) -> None:
        if frame.session:
            self._sessions.discard((frame.server, frame.session))
            self._leave_session(frame.server, frame.session)
        caller = self._lasting.pop(frame.listener, None)
        if caller is not None:
            self._house.upstreams.leave(caller)

    def _leave_session(self, server: str, session: str) -> None:
        served = self._house.runs(server)
        if served is not None:
            served.leave_session(session)

    async def _carry(self, frame: Sending) -> None:
        call = self._call(frame)
        if self._house.runs(frame.server) is None:
            await self._house.look()
        result = await self._house.upstreams.send(call)
        done = Done(
            number=frame.number, raw=result.raw, is_error=result.is_error, final=result.final
        )
        await self._reply(done, frame.server)

    async def _inquire(self, frame: Asking) -> None:
        upstreams = self._house.upstreams
        if frame.wish is Wish.FIRST:
            answers = await upstreams.ask(frame.server)
            self.tell(Done(number=frame.number, raw=b"", final=answers))
            return
        await self._house.look()
        asking = upstreams.restart if frame.wish is Wish.ANEW else upstreams.discover
        try:
            listing = await asking(frame.server)
        finally:
            self._tell_status(frame.server)  # who asks may not have known the server before
        await self._house.settle()
        await self._reply(_listed(listing, frame.number), frame.server)

    async def _reply(self, frame: FromHost, server: str) -> None:
        data = encode(frame)
        if len(data) > LONGEST:
            raise UpstreamGarbled(message=f"server {server}: too long to be passed on")
        await self.pipe.room()
        self.pipe.send(data)

    def _call(self, frame: Sending) -> Call:
        """Return the call, with those who are told and asked in it, and later."""
        peer = self._known(frame.speaker.peer) if frame.speaker.peer else None
        if frame.speaker.id:
            self._sessions.add((frame.server, frame.speaker.id))
        if frame.listener == frame.number:
            return call_of(frame, Caller(self, frame.number), peer)
        return call_of(frame, self._known(frame.listener), peer)

    def _known(self, number: int) -> "Caller":
        """Return the listener of a number: the same one until it is gone."""
        if number not in self._lasting:
            self._lasting[number] = Caller(self, number)
        return self._lasting[number]

    async def _answer_to(self, frame: Callable[[int], FromHost]) -> bytes:
        number = next(self._numbers)
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        await self.pipe.room()
        if not self.pipe.send(encode(frame(number))):
            raise NotAsked(message="the client is gone")
        self._waiting[number] = waiting
        try:
            return await waiting
        finally:
            if not waiting.done() or waiting.cancelled():
                self.tell(TakenBack(number=number))
            del self._waiting[number]

    def _settle(self, number: int, raw: bytes) -> None:
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(raw)

    def _begin(self, number: int, server: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._running[number] = task
        self.tasks.add(task)
        task.add_done_callback(partial(self._over, number, server))

    def _over(self, number: int, server: str, task: "asyncio.Task[None]") -> None:
        """Say why a request has no result."""
        self.tasks.discard(task)
        self._running.pop(number, None)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if not isinstance(error, GateError):
            _log.error("server %s: a call of another worker failed", server, exc_info=error)
            error = UpstreamLost(message=f"server {server}: {_BUG}")
        self.tell(Failed(number=number, fault=fault_of(error)))


class Caller:
    """A listener of a guest's; the same object for as long as it lasts."""

    def __init__(self, guest: Guest, number: int) -> None:
        self._guest = guest
        self._number = number

    async def notify(self, notice: Notice) -> None:
        """Deliver one notification; see `Listener.notify`."""
        with contextlib.suppress(NotAsked):  # it is gone
            await self._guest.told(self._number, notice)

    async def ask(self, question: Question) -> bytes:
        """Return the caller's answer; see `Listener.ask`."""
        return await self._guest.asked(self._number, question)


def _listed(listing: Listing, number: int) -> Listed:
    return Listed(number=number, server=listing.server, listing=write_listing(listing))
