"""One run under way: effects become tasks, replies go back in the order in which they were asked.

Never decides anything about the task; that is the engine's. Concurrency cannot change a result,
because the reply that came first waits for the one that was asked first. Verdicts take no time and
are taken at once.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from thoughtgate.engines.contract import (
    Effect,
    Engine,
    Event,
    Finish,
    Halt,
    Interrupted,
    Limits,
    Note,
    StopReason,
    Task,
    Validate,
)
from thoughtgate.runs.hands import RunHands

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """An effect on its way. `reply` is an event that is there at once, else the task makes one."""

    reply: Event | None = None
    task: "asyncio.Task[Event] | None" = None


class Drive(Generic[S]):
    """Drives one engine through one run."""

    def __init__(self, *, engine: Engine[S], hands: RunHands, deadline: float) -> None:
        self._engine = engine
        self._hands = hands
        self._deadline = deadline
        self._queue: deque[_Asked] = deque()
        self._ready: deque[Event] = deque()
        self._state: S | None = None
        self._last: Finish | Halt | None = None

    @property
    def state(self) -> S | None:
        """Return the state after the last event that was taken; None before the start."""
        return self._state

    async def run(self, task: Task, limits: Limits) -> Finish | Halt:
        """Drive to the end and return the last effect.

        Raises:
            ConfigError: The plan is refused; nothing was spent.
        """
        state, effects = self._engine.start(task, limits)
        async with asyncio.TaskGroup() as group:
            last = await self._took(state, effects, None, group.create_task)
            while last is None:
                event = await self._next_reply()
                if event is None:
                    return await self._stopped(StopReason.DEADLINE)
                state, effects = self._engine.step(state, event)
                last = await self._took(state, effects, event, group.create_task)
        return last

    async def cancelled(self) -> Finish | Halt:
        """Tell the engine that its run was cancelled, once no task of it is left."""
        return await self._stopped(StopReason.CANCELLED)

    async def _next_reply(self) -> Event | None:
        """Return the reply that was asked first, None when time is up."""
        if self._ready:
            return self._ready.popleft()
        asked = self._queue[0]
        if asked.task is not None:
            left = self._deadline - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait({asked.task}, timeout=max(left, 0.0))
            if not done:
                return None
        self._queue.popleft()
        return asked.reply if asked.task is None else await asked.task

    async def _took(
        self,
        state: S,
        effects: Sequence[Effect],
        after: Event | None,
        create: "Callable[[Coroutine[Any, Any, Event]], asyncio.Task[Event]]",
    ) -> Finish | Halt | None:
        """Keep the state, tell the notes, set the effects going; return the last effect if any."""
        self._state = state
        await self._hands.told([one for one in effects if isinstance(one, Note)], after)
        last = None
        for effect in effects:
            if isinstance(effect, (Finish, Halt)):
                last = effect
            elif isinstance(effect, Validate):
                self._ready.append(self._hands.validate(effect))
            elif not isinstance(effect, Note):
                denied = self._hands.reserve(effect)
                task = None if denied else create(self._hands.perform(effect))
                self._queue.append(_Asked(reply=denied, task=task))
        return last

    async def _stopped(self, reason: StopReason) -> Finish | Halt:
        """End the run now: what is done counts, what is under way is cancelled."""
        if self._state is None:
            return Halt(reason=reason)
        tasks = [asked.task for asked in self._queue if asked.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        while self._ready or self._queue:
            event = self._ready.popleft() if self._ready else _done(self._queue.popleft())
            if event is not None and (last := await self._settled(event)) is not None:
                return last
        last = await self._settled(Interrupted(reason=reason))
        return last or Halt(reason=reason)

    async def _settled(self, event: Event) -> Finish | Halt | None:
        """Take one event at the end of a run: verdicts are still given, nothing else is begun."""
        if self._state is None:
            return None
        self._state, effects = self._engine.step(self._state, event)
        await self._hands.told([one for one in effects if isinstance(one, Note)], event)
        for effect in effects:
            if isinstance(effect, (Finish, Halt)):
                return effect
            if isinstance(effect, Validate):
                self._ready.append(self._hands.validate(effect))
        return None


def _done(asked: _Asked) -> Event | None:
    """Return the reply to an effect that is over, None for one that was cancelled."""
    if asked.task is None:
        return asked.reply
    return None if asked.task.cancelled() else asked.task.result()
