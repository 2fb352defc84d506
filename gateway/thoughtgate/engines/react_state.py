"""The state of a ReAct run, and one transition of it under construction.

Never decides what comes next: `Draft` only keeps state, effects and the table in step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.engines.contract import (
    Effect,
    EngineTool,
    Finish,
    Halt,
    Invocation,
    Limits,
    Note,
    NoteKind,
    Outcome,
    StopReason,
    Task,
)
from thoughtgate.engines.plan import Plan, PlanSource, Step
from thoughtgate.engines.react_table import Machine, Phase, run_phase
from thoughtgate.engines.references import INPUTS, Sourced


class Awaits(StrEnum):
    """What a pending effect is for."""

    PLAN = "plan"
    THOUGHT = "thought"
    TOOLS = "tools"
    CHECK = "check"
    ANCHOR = "anchor"
    ANSWER = "answer"
    GATE = "gate"
    CLOSING = "closing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """An effect without a reply yet."""

    awaits: Awaits
    step: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One Thought, Action and Observation that the model chose."""

    thought: str
    tool: str
    arguments: JsonObject
    observation: JsonValue
    problems: tuple[str, ...] = ()
    use_id: str = ""
    known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A reply that could not be used, and why, for the model's next try."""

    reason: str
    echo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """The calls of one action. `outcomes` is None where a call is still to be made."""

    calls: tuple[Invocation, ...]
    outcomes: tuple[Outcome | None, ...]
    good: tuple[bool, ...]
    thought: str = ""
    use_id: str = ""
    known: bool = True

    @property
    def open(self) -> tuple[int, ...]:
        """Return the positions of the calls without an outcome."""
        return tuple(at for at, outcome in enumerate(self.outcomes) if outcome is None)

    @property
    def observations(self) -> tuple[JsonValue, ...]:
        """Return the observations made so far."""
        return tuple(outcome.observation for outcome in self.outcomes if outcome is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepState:
    """Where one step stands.

    `needs` are the steps that must be complete first, read from the plan once; `attempt` counts
    from 1 and grows by retries only; `fresh` says that the next action is a new
    step of the run, not another attempt; `released` that the plan's arguments were given up, so
    that the model reasons; `result` is what other steps may refer to.
    """

    step: Step
    needs: frozenset[str] = frozenset()
    machine: Machine = field(default_factory=Machine)
    attempt: int = 1
    fresh: bool = True
    released: bool = False
    acting: Acting | None = None
    turns: tuple[Turn, ...] = ()
    failures: tuple[Turn, ...] = ()
    repairs: tuple[Repair, ...] = ()
    empty: bool = False
    result: tuple[JsonValue, ...] | None = None
    summary: str = ""
    checked: str = ""
    reason: str = ""
    in_doubt: bool = False

    @property
    def given(self) -> bool:
        """Say whether the plan's own arguments are used."""
        return self.step.arguments is not None and not self.released


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactState:
    """A whole run.

    `count` numbers effects; `cycles` counts actions that were not retries; `writes` holds the
    outcome of every write that may have happened, by its identity; `seen` counts (tool,
    arguments, result) for the loop guard; `repairs`, `empty` and `tries` belong to the dialogue
    about the plan or the answer; `good` are the ids that the last good anchor covers.
    """

    task: Task
    limits: Limits
    plan: Plan | None = None
    steps: tuple[StepState, ...] = ()
    count: int = 0
    pending: Mapping[str, Pending] = field(default_factory=dict)
    cycles: int = 0
    writes: Mapping[str, Outcome] = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)
    repairs: tuple[Repair, ...] = ()
    empty: bool = False
    tries: int = 0
    squeeze: int = 0
    anchors: int = 0
    rollbacks: int = 0
    good: frozenset[str] = frozenset()
    answer: str = ""
    stop: StopReason | None = None
    detail: str = ""
    ended: Phase | None = None

    @property
    def tools(self) -> dict[str, EngineTool]:
        """Return the run's tools by name."""
        return {tool.name: tool for tool in self.task.tools}

    @property
    def phase(self) -> Phase:
        """Return the phase of the run: that of its steps, reasoning before and after them."""
        if self.ended is not None:
            return self.ended
        phase = run_phase(tuple(one.machine.phase for one in self.steps))
        return Phase.REASONING if phase in {Phase.IDLE, Phase.COMPLETED} else phase

    @property
    def planned_by_model(self) -> bool:
        """Say whether a planner made the plan; then a model may also revise its arguments."""
        made = self.plan is not None and self.plan.source is PlanSource.PLANNER
        return made and self.task.has_model

    def at(self, step_id: str) -> StepState:
        """Return one step."""
        return next(one for one in self.steps if one.step.id == step_id)

    def sources(self) -> dict[str, Sourced]:
        """Return what references may point into: completed steps and the run's inputs."""
        defaults = self.plan.inputs if self.plan else {}
        found = {INPUTS: Sourced(values=({**defaults, **self.task.inputs},))}
        for one in self.steps:
            if one.result is not None and one.machine.phase is Phase.COMPLETED:
                found[one.step.id] = Sourced(values=one.result, fanned=one.step.each is not None)
        return found


class Draft:
    """One transition under construction; lives for one call of the engine."""

    def __init__(self, state: ReactState) -> None:
        self.state = state
        self.effects: list[Effect] = []

    def change(self, **fields: Any) -> None:
        """Replace fields of the run's state."""
        self.state = replace(self.state, **fields)

    def put(self, step_id: str, **fields: Any) -> StepState:
        """Replace fields of one step and return it."""
        changed = replace(self.state.at(step_id), **fields)
        steps = [changed if one.step.id == step_id else one for one in self.state.steps]
        self.state = replace(self.state, steps=tuple(steps))
        return changed

    def move(self, step_id: str, phase: Phase) -> StepState:
        """Move one step by the table and tell it.

        Raises:
            OutOfOrder: The table does not allow the move.
        """
        before = self.state.at(step_id).machine
        changed = self.put(step_id, machine=before.to(phase))
        self.tell(NoteKind.STATE, changed, data={"from": before.phase.value, "to": phase.value})
        return changed

    def tell(
        self,
        kind: NoteKind,
        step: StepState | None,
        text: str = "",
        data: JsonObject | None = None,
    ) -> None:
        """Add a note; `step` None is about the whole run."""
        self.effects.append(
            Note(
                kind=kind,
                step=step.step.id if step else "",
                attempt=step.attempt if step else 1,
                text=text,
                data=data or {},
            )
        )

    def number(self, awaits: Awaits, step_id: str = "") -> str:
        """Return the id of a new effect whose reply is awaited."""
        count = self.state.count + 1
        effect = f"e{count}"
        pending = {**self.state.pending, effect: Pending(awaits=awaits, step=step_id)}
        self.change(count=count, pending=pending)
        return effect

    def stop(self, reason: StopReason, detail: str = "") -> None:
        """Begin to end the run: nothing new is started, what is under way is waited for.

        The first reason stands, except that a write in doubt is what a person must hear of.
        """
        if self.state.stop is None or reason is StopReason.IN_DOUBT:
            self.change(stop=reason, detail=detail)

    def halt_step(self, step_id: str, reason: StopReason, detail: str = "") -> None:
        """End one step, and with it the run."""
        self.put(step_id, reason=detail or reason.value)
        self.move(step_id, Phase.HALTED)
        self.stop(reason, f"step {step_id}: {detail}" if detail else f"step {step_id}")

    def end(self, effect: Finish | Halt) -> None:
        """End the run with its last effect; steps that were never begun stay idle."""
        ended = Phase.COMPLETED
        if isinstance(effect, Halt):
            cancelled = effect.reason is StopReason.CANCELLED
            ended = Phase.CANCELLED if cancelled else Phase.HALTED
        for one in self.state.steps:
            if not one.machine.ended and one.machine.phase is not Phase.IDLE:
                self.move(one.step.id, ended)
        self.change(pending={}, ended=ended)
        self.effects.append(effect)

    def done(self, before: Phase) -> tuple[ReactState, tuple[Effect, ...]]:
        """Return the transition; a new phase of the run is told before anything is begun."""
        after = self.state.phase
        if after is not before:
            data = {"from": before.value, "to": after.value}
            self.effects.insert(0, Note(kind=NoteKind.STATE, data=data))
        return self.state, tuple(self.effects)
