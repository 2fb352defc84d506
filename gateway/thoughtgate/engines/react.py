"""The ReAct engine: plan first, then steps that reason, act and are validated.

Never does I/O. One event in, a new state and effects out; what may follow what in a step is the
table in `react_table`.
"""

from collections.abc import Mapping

from thoughtgate.core.errors import ConfigError, OutOfOrder
from thoughtgate.core.tools import Effect as EffectClass
from thoughtgate.engines.contract import (
    Denied,
    Effects,
    Event,
    Halt,
    Interrupted,
    Limits,
    ModelFailed,
    ModelReplied,
    StepReport,
    StopReason,
    Task,
    ToolsReplied,
    Validated,
)
from thoughtgate.engines.plan import refused
from thoughtgate.engines.plan_lint import lint
from thoughtgate.engines.prompts import extracted
from thoughtgate.engines.react_check import on_outcomes, on_verdicts
from thoughtgate.engines.react_frame import (
    ask_answer,
    ask_plan,
    closing_text,
    on_anchor,
    on_answer,
    on_closing,
    on_gate,
    on_plan,
    settle,
    take_plan,
)
from thoughtgate.engines.react_state import Awaits, Draft, Pending, ReactState, StepState
from thoughtgate.engines.react_table import Phase
from thoughtgate.engines.react_think import ask, on_reply

_SQUEEZES = 2


class React:
    """ReAct with a plan. Holds nothing: all that it knows is in the state."""

    @property
    def name(self) -> str:
        """Return the engine's name."""
        return "react"

    def start(self, task: Task, limits: Limits) -> tuple[ReactState, Effects]:
        """Begin a run: lint the given plan, or ask for one.

        Raises:
            ConfigError: The plan is refused, or there is neither a plan nor a model.
        """
        draft = Draft(ReactState(task=task, limits=limits))
        if task.plan is not None:
            if reasons := lint(task.plan, task, limits):
                raise refused(reasons)
            take_plan(draft, task.plan)
        elif task.has_model:
            ask_plan(draft)
        else:
            raise ConfigError(message="a run without a plan needs a model; give one of the two")
        settle(draft)
        return draft.done(Phase.IDLE)

    def step(self, state: ReactState, event: Event) -> tuple[ReactState, Effects]:
        """Take one event.

        Raises:
            OutOfOrder: The event answers nothing that is pending, or the run is over.
        """
        draft = Draft(state)
        if state.ended is not None:
            raise OutOfOrder(state=state.ended.value, event=type(event).__name__)
        if isinstance(event, Interrupted):
            _interrupt(draft, event.reason)
            return draft.done(state.phase)
        pending = state.pending.get(event.effect)
        if pending is None or not isinstance(event, _REPLIES[pending.awaits]):
            raise OutOfOrder(state=str(pending), event=type(event).__name__)
        rest = {key: value for key, value in state.pending.items() if key != event.effect}
        draft.change(pending=rest)
        _take(draft, pending, event)
        settle(draft)
        return draft.done(state.phase)

    def report(self, state: ReactState) -> tuple[StepReport, ...]:
        """Return the steps in plan order, as they stand."""
        return tuple(_report(one) for one in state.steps)


_MODEL = (ModelReplied, ModelFailed, Denied)
_REPLIES: Mapping[Awaits, tuple[type[Event], ...]] = {
    Awaits.PLAN: _MODEL,
    Awaits.THOUGHT: _MODEL,
    Awaits.ANSWER: _MODEL,
    Awaits.CLOSING: _MODEL,
    Awaits.TOOLS: (ToolsReplied, Denied),
    Awaits.CHECK: (Validated,),
    Awaits.ANCHOR: (Validated,),
    Awaits.GATE: (Validated,),
}


def _take(draft: Draft, pending: Pending, event: Event) -> None:
    if isinstance(event, ModelReplied):
        _replied(draft, pending, event)
    elif isinstance(event, ModelFailed):
        _failed(draft, pending, event)
    elif isinstance(event, ToolsReplied):
        on_outcomes(draft, pending.step, event.outcomes)
    elif isinstance(event, Denied):
        _denied(draft, pending, event)
    elif isinstance(event, Validated):
        _validated(draft, pending, event)


def _replied(draft: Draft, pending: Pending, event: ModelReplied) -> None:
    if pending.awaits is Awaits.CLOSING:
        on_closing(draft, closing_text(event.response))
    elif pending.awaits is Awaits.THOUGHT:
        on_reply(draft, pending.step, event.response)
    elif pending.awaits is Awaits.PLAN:
        on_plan(draft, event.response)
    else:
        on_answer(draft, event.response)


def _validated(draft: Draft, pending: Pending, event: Validated) -> None:
    if pending.awaits is Awaits.CHECK:
        on_verdicts(draft, pending.step, event.verdicts)
    elif pending.awaits is Awaits.ANCHOR:
        on_anchor(draft, event.verdicts)
    else:
        on_gate(draft, event.verdicts)


def _failed(draft: Draft, pending: Pending, event: ModelFailed) -> None:
    if pending.awaits is Awaits.CLOSING:
        on_closing(draft, "")
    elif not event.overflow:
        draft.stop(StopReason.MODEL_ERROR, event.message)
    elif draft.state.squeeze >= _SQUEEZES:
        draft.stop(StopReason.CONTEXT_OVERFLOW, event.message)
    else:
        draft.change(squeeze=draft.state.squeeze + 1)
        again = {Awaits.PLAN: ask_plan, Awaits.ANSWER: ask_answer}.get(pending.awaits)
        if again is None:
            ask(draft, pending.step)
        else:
            again(draft)


def _denied(draft: Draft, pending: Pending, event: Denied) -> None:
    if pending.awaits is Awaits.CLOSING:
        on_closing(draft, "")
    else:
        draft.stop(event.reason, event.detail)


def _interrupt(draft: Draft, reason: StopReason) -> None:
    """End at once. A write that was under way is in doubt: nobody will hear how it went."""
    for pending in draft.state.pending.values():
        if pending.awaits is Awaits.TOOLS:
            _doubt(draft, draft.state.at(pending.step))
    answer, stop = extracted(draft.state), draft.state.stop
    why = stop if stop and reason is StopReason.DEADLINE else reason
    draft.end(Halt(reason=why, answer=answer, detail=draft.state.detail))


def _doubt(draft: Draft, step: StepState) -> None:
    acting = step.acting
    if acting and any(acting.calls[at].effect is EffectClass.WRITE for at in acting.open):
        draft.put(step.step.id, in_doubt=True, reason="a write was under way")


def _report(one: StepState) -> StepReport:
    observations = one.result
    if observations is None and one.acting is not None:
        observations = one.acting.observations
    if observations is None and one.failures:
        observations = (one.failures[-1].observation,)
    state = one.machine.phase
    return StepReport(
        id=one.step.id,
        goal=one.step.goal,
        state=state.value,
        tool=one.step.tool or (one.turns[-1].tool if one.turns else ""),
        attempts=one.attempt if state is not Phase.IDLE else 0,
        checked=one.checked,
        observations=observations or (),
        summary=one.summary,
        reason=one.reason,
        in_doubt=one.in_doubt,
    )
