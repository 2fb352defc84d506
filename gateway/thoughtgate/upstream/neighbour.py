"""Another worker of this gateway, as one that wants something of its tool servers reaches it.

Never sends a request twice: what became of one that had left when the worker ended, nobody knows.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import msgspec

from thoughtgate.core.calls import Listener
from thoughtgate.core.errors import GateError, NotAsked, UpstreamLost, UpstreamUnreachable
from thoughtgate.core.servers import Listing, Server, StdioTransport, UpstreamStatus
from thoughtgate.core.workers import Crew
from thoughtgate.upstream.carried import (
    error_of,
    fault_of,
    notice_of,
    question_of,
    read_listing,
    status_of,
)
from thoughtgate.upstream.frame_pipe import FramePipe
from thoughtgate.upstream.frames import (
    Answered,
    Asked,
    Done,
    Failed,
    FromGuest,
    FromHost,
    GivenUp,
    Left,
    Listed,
    Noticed,
    Saying,
    Stands,
    Taken,
    TakenBack,
    encode,
    read_host,
)

_log = logging.getLogger(__name__)

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
"""Seconds between two attempts to reach the worker: it is back about a second after it ended."""

RESTARTING = "the worker that runs it is being restarted"

_NOBODY = ("", None)


class Follower(Protocol):
    """Wants to hear of one server that the worker runs."""

    def heard(self, listing: Listing) -> None:
        """Take what a discovery found."""
        ...

    def stands(self, status: UpstreamStatus) -> None:
        """Take how the server fares."""
        ...

    def back(self) -> None:
        """Learn that the worker can be reached, the first time or again."""
        ...

    def gone(self) -> None:
        """Learn that the worker cannot be reached: it ended."""
        ...


class Neighbour:
    """One other worker, behind its socket at `place`; belongs to one event loop."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._followers: dict[str, Follower] = {}
        self._pipe: FramePipe | None = None
        self._there = asyncio.Event()
        self._numbers = count(1)
        self._waiting: dict[int, tuple[str, asyncio.Future[Done | Listed]]] = {}
        self._callers: dict[int, Listener] = {}
        self._lasting: dict[int, tuple[int, Listener]] = {}
        self._asked: dict[int, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._keeping: asyncio.Task[None] | None = None
        self._handlers: dict[type[FromHost], Callable[[Any], None]] = {
            Done: self._settle,
            Listed: self._listed,
            Failed: self._fail,
            Stands: self._stands,
            Noticed: self._notify,
            Asked: self._ask,
            TakenBack: self._take_back,
        }

    def follow(self, server: str, follower: Follower) -> None:
        """Tell a follower of a server from now on, and keep in touch for it."""
        self._followers[server] = follower
        if self._keeping is None:
            self._keeping = asyncio.get_running_loop().create_task(self._keep())

    def unfollow(self, server: str, follower: Follower) -> None:
        """Tell a follower no more."""
        if self._followers.get(server) is follower:
            del self._followers[server]

    async def ready(self, server: str, seconds: float) -> None:
        """Return when the worker can be reached that runs `server`.

        Raises:
            UpstreamUnreachable: It cannot, for so many seconds.
        """
        if self._there.is_set():
            return
        try:
            async with asyncio.timeout(seconds):
                await self._there.wait()
        except TimeoutError:
            raise restarting(server) from None

    async def ask(
        self, server: str, frame: Callable[[int], FromGuest], caller: Listener | None = None
    ) -> Done | Listed:
        """Send a request for `server`, made under the number given; return what comes for it.

        `caller` is told and asked what the server has for it meanwhile. Cancelling takes the
        request back.

        Raises:
            UpstreamUnreachable: It was not sent.
            UpstreamLost: The worker ended before it answered.
            GateError: What the worker says.
        """
        number, pipe = next(self._numbers), self._pipe
        if pipe is not None:
            await pipe.room()
        answer: asyncio.Future[Done | Listed] = asyncio.get_running_loop().create_future()
        if pipe is None or not pipe.send(encode(frame(number))):
            raise restarting(server)
        self._waiting[number] = server, answer
        if caller is not None:
            self._callers[number] = caller
        try:
            return await answer
        except asyncio.CancelledError:
            self.tell(GivenUp(number=number))
            raise
        finally:
            self._callers.pop(number, None)
            del self._waiting[number]

    def tell(self, frame: FromGuest) -> None:
        """Send what nobody waits for, if the worker is there."""
        if self._pipe is not None:
            self._pipe.send(encode(frame))

    def say(self, frame: Saying) -> bool:
        """Send what nobody misses; False when the worker is not there, or has long read nothing."""
        pipe = self._pipe
        return pipe is not None and not pipe.full and pipe.send(encode(frame))

    def number_of(self, listener: Listener | None) -> int:
        """Return the number of a listener that lasts, until it is forgotten; 0 for none."""
        if listener is None:
            return 0
        known = self._lasting.get(id(listener))
        if known is None:
            known = self._lasting[id(listener)] = (next(self._numbers), listener)
            self._callers[known[0]] = listener
        return known[0]

    def forget(self, listener: Listener) -> None:
        """Learn that a listener is gone."""
        known = self._lasting.pop(id(listener), None)
        if known is not None:
            del self._callers[known[0]]
            self.tell(Left(listener=known[0]))

    async def aclose(self) -> None:
        """End it; whoever still waits gets UpstreamLost."""
        self._followers.clear()
        ending = [*self._tasks, *([self._keeping] if self._keeping else ())]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)

    async def _keep(self) -> None:
        """Keep in touch: connect, and again whenever the worker has ended."""
        pause = FIRST_PAUSE
        loop = asyncio.get_running_loop()
        while True:
            try:
                _, pipe = await loop.create_unix_connection(
                    lambda: FramePipe(self._take), str(self._place)
                )
            except OSError:
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            pause = FIRST_PAUSE
            try:
                self._found(pipe)
                await pipe.ended
            finally:
                pipe.abort()
                self._lost()

    def _found(self, pipe: FramePipe) -> None:
        self._pipe = pipe
        self._there.set()
        for follower in list(self._followers.values()):
            follower.back()

    def _lost(self) -> None:
        self._pipe = None
        self._there.clear()
        for server, answer in self._waiting.values():
            if not answer.done():
                message = (
                    f"server {server}: the worker that ran it has ended, and the server with it"
                )
                answer.set_exception(UpstreamLost(message=message))
        for task in self._asked.values():
            task.cancel()
        for follower in list(self._followers.values()):
            follower.gone()

    def _take(self, data: bytes) -> None:
        """Take one frame."""
        try:
            frame = read_host(data)
        except msgspec.DecodeError as error:
            _log.error("worker at %s: what it says cannot be read: %s", self._place.name, error)
            if self._pipe is not None:
                self._pipe.abort()
            return
        self._handlers[type(frame)](frame)

    def _settle(self, frame: Done | Listed) -> None:
        _, answer = self._waiting.get(frame.number, _NOBODY)
        if answer is not None and not answer.done():
            answer.set_result(frame)

    def _fail(self, frame: Failed) -> None:
        _, answer = self._waiting.get(frame.number, _NOBODY)
        if answer is not None and not answer.done():
            answer.set_exception(error_of(frame.fault))

    def _listed(self, frame: Listed) -> None:
        if frame.number:
            self._settle(frame)
        elif frame.server in self._followers:
            self._followers[frame.server].heard(read_listing(frame.listing))

    def _stands(self, frame: Stands) -> None:
        if frame.server in self._followers:
            self._followers[frame.server].stands(status_of(frame))

    def _notify(self, frame: Noticed) -> None:
        self._begin(self._deliver(frame, self._callers.get(frame.listener)))

    async def _deliver(self, frame: Noticed, listener: Listener | None) -> None:
        try:
            if listener is not None:
                await listener.notify(notice_of(frame))
        finally:
            self.tell(Taken(number=frame.number))

    def _ask(self, frame: Asked) -> None:
        task = self._begin(self._answer(frame, self._callers.get(frame.listener)))
        self._asked[frame.number] = task
        task.add_done_callback(partial(self._answered, frame.number))

    def _answered(self, number: int, task: "asyncio.Task[None]") -> None:
        self._asked.pop(number, None)
        if not task.cancelled() and task.exception() is not None:
            fault = fault_of(NotAsked(message="the client could not be asked: an internal error"))
            self.tell(Answered(number=number, fault=fault))

    async def _answer(self, frame: Asked, listener: Listener | None) -> None:
        try:
            if listener is None:
                raise NotAsked(message="the client is gone")
            answer = Answered(number=frame.number, raw=await listener.ask(question_of(frame)))
        except GateError as error:
            answer = Answered(number=frame.number, fault=fault_of(error))
        self.tell(answer)

    def _take_back(self, frame: TakenBack) -> None:
        task = self._asked.get(frame.number)
        if task is not None:
            task.cancel()

    def _begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(_ended, self._tasks))
        return task


def _ended(tasks: "set[asyncio.Task[None]]", task: "asyncio.Task[None]") -> None:
    tasks.discard(task)
    if not task.cancelled() and task.exception() is not None:
        _log.error("a client could not be told of something", exc_info=task.exception())


def restarting(server: str) -> UpstreamUnreachable:
    """Return the error for what was not sent: the worker that runs a server is not there."""
    return UpstreamUnreachable(message=f"server {server}: {RESTARTING}; try again in a moment")


class Neighbours:
    """The other workers of a crew, each reached when first needed."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._known: dict[int, Neighbour] = {}

    def runs(self, server: Server) -> Neighbour | None:
        """Return the worker that runs a server's child; None for what every worker opens itself."""
        if runs_here(server, self._crew):
            return None
        owner = self._crew.owner(server.name)
        if owner not in self._known:
            self._known[owner] = Neighbour(self._crew.door(owner))
        return self._known[owner]

    async def aclose(self) -> None:
        """End them all."""
        for neighbour in self._known.values():
            await neighbour.aclose()


def runs_here(server: Server, crew: Crew) -> bool:
    """Tell whether a worker has connections of its own to a server, rather than by another."""
    return not isinstance(server.transport, StdioTransport) or crew.owns(server.name)
