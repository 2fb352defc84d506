"""Running calls of stateless clients that a server has asked something: they wait for the retry.

Never holds a call without an end: who does not come back in time has given it up.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from thoughtgate.core.calls import Question, Result
from thoughtgate.core.errors import NotAsked, Overloaded
from thoughtgate.core.json import JsonObject
from thoughtgate.surface.asking import Emit
from thoughtgate.wire.requests import offers
from thoughtgate.wire.strict import dumps

MOST: Final = 16
"""Questions that one call may have open: a person answers them together."""


class Talk:
    """One call over several requests: a task, and what it has asked so far.

    `emit` of the request that waits right now takes notifications; between two requests there is
    nobody to hear them. `task` may be begun only once this object is known to the call.
    """

    def __init__(self, capabilities: JsonObject) -> None:
        self._capabilities = capabilities
        self._numbers = count(1)
        self._open: dict[str, tuple[Question, asyncio.Future[bytes]]] = {}
        self._emit: Emit | None = None
        self._wake: asyncio.Future[None] | None = None
        self._task: asyncio.Task[Result] | None = None

    def begin(self, work: Coroutine[Any, Any, Result]) -> None:
        """Let the call run."""
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(lambda _: self._rouse())

    async def emit(self, frame: bytes) -> None:
        """Send a notification to whoever waits; dropped when nobody does."""
        if self._emit is not None:
            await self._emit(frame)

    async def ask(self, question: Question, emit: Emit, owner: object) -> bytes:
        """Return the client's answer, which a later request brings.

        Raises:
            NotAsked: The client did not declare it, or too many questions are open.
        """
        del emit, owner
        if not offers(self._capabilities, question.method, question.params):
            message = f"the client did not declare that it answers {question.method[:80]}"
            raise NotAsked(message=message)
        if len(self._open) >= MOST:
            raise NotAsked(message=f"{MOST} questions of this call are open; ask again later")
        key = f"question-{next(self._numbers)}"
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._open[key] = (question, answer)
        self._rouse()
        try:
            return await answer
        finally:
            self._open.pop(key, None)

    async def retract(self, owner: object) -> None:
        """Take back every question: the call is over."""
        del owner
        for _, answer in list(self._open.values()):
            answer.cancel()

    def answer(self, answers: JsonObject) -> None:
        """Give answers to the questions of their keys; others are nobody's and left alone."""
        for key, value in answers.items():
            found = self._open.get(key)
            if found is not None and isinstance(value, dict) and not found[1].done():
                found[1].set_result(dumps(value))

    async def turn(self, emit: Emit) -> Result | Mapping[str, Question]:
        """Return the result, or what the client must answer before there can be one.

        Cancelling the awaiting task gives the call up.

        Raises:
            GateError: Why there is no result.
        """
        assert self._task is not None
        self._emit = emit
        try:
            while True:
                await asyncio.sleep(0)  # what was answered is taken, what asks together comes along
                if self._task.done():
                    return self._task.result()
                if asked := self._unanswered():
                    return asked
                self._wake = asyncio.get_running_loop().create_future()
                await self._wake
        except asyncio.CancelledError:
            await self.give_up()
            raise
        finally:
            self._emit = None

    async def give_up(self) -> None:
        """Cancel the call and return when it has ended."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    def cancel(self) -> None:
        """Cancel the call: it ends soon."""
        if self._task is not None:
            self._task.cancel()

    def _unanswered(self) -> Mapping[str, Question]:
        return {key: asked for key, (asked, answer) in self._open.items() if not answer.done()}

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkingLimits:
    """How many calls may wait for their clients, all told and for each principal, and how long."""

    most: int = 256
    most_each: int = 32
    seconds: float = 600.0


class ParkingLot:
    """The calls that wait for their client's next request, by an id that nobody can guess."""

    def __init__(self, limits: ParkingLimits) -> None:
        self._limits = limits
        self._parked: dict[str, tuple[Talk, str, asyncio.TimerHandle]] = {}
        self._each: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return how many calls are parked."""
        return len(self._parked)

    def park(self, talk: Talk, who: str) -> str:
        """Keep a call until it is taken, or given up when its time is over.

        Where there is no room the principal's own oldest call is given up for it: a client that
        does not come back must not keep the others from being asked.

        Raises:
            Overloaded: Too many calls of others are parked; this one is given up.
        """
        limits = self._limits
        if len(self._parked) >= limits.most or self._each[who] >= limits.most_each:
            oldest = next((id_ for id_, parked in self._parked.items() if parked[1] == who), None)
            if oldest is None:
                talk.cancel()
                raise Overloaded(message="too many calls wait for their clients' answers")
            self._out(oldest).cancel()
        id_ = secrets.token_urlsafe(18)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(limits.seconds, self._expired, id_)
        self._parked[id_] = (talk, who, timer)
        self._each[who] += 1
        return id_

    def take(self, id_: str, who: str) -> Talk | None:
        """Return a parked call, which is parked no more; None when this principal has none such."""
        found = self._parked.get(id_)
        return None if found is None or found[1] != who else self._out(id_)

    def close(self) -> None:
        """Give every parked call up."""
        for id_ in list(self._parked):
            self._out(id_).cancel()

    def _expired(self, id_: str) -> None:
        self._out(id_).cancel()

    def _out(self, id_: str) -> Talk:
        talk, who, timer = self._parked.pop(id_)
        timer.cancel()
        self._each[who] -= 1
        if not self._each[who]:
            del self._each[who]
        return talk
