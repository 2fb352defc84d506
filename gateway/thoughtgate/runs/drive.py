"""One run under way: effects become tasks, replies go back in the order in which they were asked.

Never decides anything about the task; that is the engine's. Concurrency cannot change a result,
because the reply that came first waits for the one that was asked first. Verdicts take no time and
are taken at once.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from thoughtgate.engines.contract import (
    AskModel,
    Denied,
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
    UseTools,
    Validate,
)
from thoughtgate.engines.plan import refused
from thoughtgate.runs.hands import RunHands

S = TypeVar("S")

FAULT = "a fault of the gateway; see its log"
"""Why a run ended that a bug ended, for whoever asked for it."""


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
        self._todo: deque[AskModel | UseTools | Validate] = deque()
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
        if task.plan is not None and task.plan.faults:  # an engine that does not lint
            raise refused(task.plan.faults)
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

    async def failed(self) -> Finish | Halt:
        """Tell the engine that a bug ended its run, once no task of it is left."""
        last = await self._stopped(StopReason.INTERNAL_ERROR)
        return replace(last, detail=FAULT) if isinstance(last, Halt) else last

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
        last = await self._kept(state, effects, after)
        while self._todo:
            effect = self._todo.popleft()
            if isinstance(effect, Validate):
                self._ready.append(self._hands.validate(effect))
                continue
            denied = self._hands.reserve(effect)
            task = None if denied else create(self._hands.perform(effect))
            self._queue.append(_Asked(reply=denied, task=task))
        return last

    async def _kept(
        self, state: S, effects: Sequence[Effect], after: Event | None
    ) -> Finish | Halt | None:
        """Keep the state and what it asks for, tell the notes; return the last effect if any."""
        self._state = state
        for effect in effects:
            if isinstance(effect, (Finish, Halt)):
                self._last = effect
            elif not isinstance(effect, Note):
                self._todo.append(effect)
        await self._hands.told([one for one in effects if isinstance(one, Note)], after)
        return self._last

    async def _stopped(self, reason: StopReason) -> Finish | Halt:
        """End the run now: what is done counts, what is under way is cancelled.

        What was not begun is denied, so that the engine knows that it never happened.
        """
        if self._state is None or self._last is not None:
            return self._last or Halt(reason=reason)
        tasks = [asked.task for asked in self._queue if asked.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        while self._todo or self._ready or self._queue:
            event = self._remaining(reason)
            if event is not None and (last := await self._settled(self._state, event)) is not None:
                return last
        last = await self._settled(self._state, Interrupted(reason=reason))
        return last or Halt(reason=reason)

    def _remaining(self, reason: StopReason) -> Event | None:
        """Return the next reply at the end of a run, None for an effect that was cancelled."""
        if self._todo:
            effect = self._todo.popleft()
            if isinstance(effect, Validate):
                return self._hands.validate(effect)
            return Denied(effect=effect.id, reason=reason)
        if self._ready:
            return self._ready.popleft()
        return _done(self._queue.popleft())

    async def _settled(self, state: S, event: Event) -> Finish | Halt | None:
        """Take one event at the end of a run: verdicts are still given, nothing else is begun."""
        state, effects = self._engine.step(state, event)
        return await self._kept(state, effects, event)


def _done(asked: _Asked) -> Event | None:
    """Return the reply to an effect that is over, None for one that brought none."""
    if asked.task is None:
        return asked.reply
    silent = asked.task.cancelled() or asked.task.exception() is not None
    return None if silent else asked.task.result()
