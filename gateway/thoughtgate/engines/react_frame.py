"""Around the steps of a ReAct run: making the plan, anchors, the answer, and the end.

Never touches a tool. What is asked of the model here is asked without tools.
"""

from collections.abc import Callable, Sequence
from math import ceil

from thoughtgate.core.errors import ConfigError, Malformed
from thoughtgate.core.json import JsonValue
from thoughtgate.core.models import ModelResponse
from thoughtgate.engines.contract import (
    AskModel,
    Finish,
    Halt,
    NoteKind,
    StopReason,
    Subject,
    Validate,
    Verdict,
    VerdictStatus,
)
from thoughtgate.engines.json_text import Unreadable
from thoughtgate.engines.observations import as_text, cut
from thoughtgate.engines.plan import Plan, PlanSource, plan_from_json
from thoughtgate.engines.plan_lint import lint
from thoughtgate.engines.prompts import answer_request, closing_request, extracted, plan_request
from thoughtgate.engines.react_state import Awaits, Draft, Repair, StepState
from thoughtgate.engines.react_table import Phase
from thoughtgate.engines.react_think import begin
from thoughtgate.engines.references import ReferenceMissed, resolve
from thoughtgate.engines.replies import Answer, Empty, read_answer, read_object
from thoughtgate.wire.strict import dumps, parse

_AT_THE_LIMIT = frozenset({
    StopReason.MAX_STEPS,
    StopReason.MAX_RETRIES,
    StopReason.LOOP_DETECTED,
})


def ask_plan(draft: Draft) -> None:
    """Ask the planner."""
    effect = draft.number(Awaits.PLAN)
    draft.effects.append(AskModel(id=effect, request=plan_request(draft.state)))


def ask_answer(draft: Draft) -> None:
    """Ask for the final answer, without tools."""
    effect = draft.number(Awaits.ANSWER)
    draft.effects.append(AskModel(id=effect, request=answer_request(draft.state)))


def on_plan(draft: Draft, response: ModelResponse) -> None:
    """Take the planner's reply: a plan that passes the lint, or a bounded new try."""
    if not response.text.strip():
        _empty(draft, ask_plan)
        return
    try:
        plan = plan_from_json(read_object(response), PlanSource.PLANNER)
        reasons = lint(plan, draft.state.task, draft.state.limits)
        failure = StopReason.VALIDATION_FAILED
    except Unreadable as error:
        reasons, failure = (str(error),), StopReason.PARSE_FAILURE
    except ConfigError as error:
        reasons, failure = tuple(error.data["reasons"]), StopReason.VALIDATION_FAILED
    if not reasons:
        take_plan(draft, plan)
    elif len(draft.state.repairs) >= draft.state.limits.max_repairs:
        draft.stop(failure, f"no usable plan: {'; '.join(reasons)}")
    else:
        repair = Repair(reason=f"the plan is refused: {'; '.join(reasons)}", echo=response.text)
        draft.change(repairs=(*draft.state.repairs, repair))
        ask_plan(draft)


def take_plan(draft: Draft, plan: Plan) -> None:
    """Adopt a plan that passed the lint."""
    draft.change(
        plan=plan,
        steps=tuple(StepState(step=step, needs=step.needs) for step in plan.steps),
        repairs=(),
        empty=False,
    )
    data = {"source": plan.source.value, "plan": plan.as_json()}
    draft.tell(NoteKind.PLAN, None, plan.goal, data)


def settle(draft: Draft) -> None:
    """Do what the state as a whole asks for: end, review, start steps, or answer."""
    state = draft.state
    if state.ended is not None:
        return
    if state.stop is None and not _anchored(draft):
        _schedule(draft)
    state = draft.state
    if state.pending:
        return
    if state.stop is not None:
        _close(draft)
    elif state.steps and all(one.machine.phase is Phase.COMPLETED for one in state.steps):
        _answer(draft)


def on_anchor(draft: Draft, verdicts: Sequence[Verdict]) -> None:
    """Take the review of the results so far; a bad one goes back to the last good anchor."""
    status = verdicts[0].status if verdicts else VerdictStatus.SKIPPED
    problems = [problem for one in verdicts for problem in one.problems]
    draft.tell(NoteKind.ANCHOR, None, status.value, {"status": status, "problems": problems})
    done = frozenset(
        one.step.id for one in draft.state.steps if one.machine.phase is Phase.COMPLETED
    )
    if status is not VerdictStatus.FAILED:
        draft.change(good=done)
    elif draft.state.rollbacks >= draft.state.limits.max_retries:
        draft.stop(StopReason.VALIDATION_FAILED, "; ".join(problems))
    else:
        _roll_back(draft, done)


def on_answer(draft: Draft, response: ModelResponse) -> None:
    """Take the model's final answer to the final gate."""
    reply = read_answer(response)
    if isinstance(reply, Empty):
        _empty(draft, ask_answer)
    elif isinstance(reply, Answer):
        draft.tell(NoteKind.THOUGHT, None, reply.thought or "the answer", {"source": "model"})
        _gate(draft, reply.text)
    elif len(draft.state.repairs) >= draft.state.limits.max_repairs:
        draft.stop(StopReason.PARSE_FAILURE, reply.reason)
    else:
        repair = Repair(reason=reply.reason, echo=reply.echo)
        draft.change(repairs=(*draft.state.repairs, repair))
        ask_answer(draft)


def on_gate(draft: Draft, verdicts: Sequence[Verdict]) -> None:
    """Take the verdict on the answer: finish, or back to reasoning, bounded."""
    state = draft.state
    status = verdicts[0].status
    problems = [problem for one in verdicts for problem in one.problems]
    data = {"status": status.value, "problems": problems, "subject": "answer"}
    draft.tell(NoteKind.VALIDATION, None, "; ".join(problems), data)
    if status is not VerdictStatus.FAILED:
        draft.end(Finish(answer=state.answer))
    elif not _model_answers(draft) or state.tries >= state.limits.max_retries:
        draft.stop(StopReason.VALIDATION_FAILED, f"the answer: {'; '.join(problems)}")
    else:
        repair = Repair(reason="; ".join(problems), echo=cut(state.answer, 2_000))
        draft.change(tries=state.tries + 1, repairs=(repair,))
        ask_answer(draft)


def on_closing(draft: Draft, text: str) -> None:
    """End a run that was cut short with what the model could still say, else with the facts."""
    state = draft.state
    answer = text or extracted(state)
    draft.end(Halt(reason=state.stop or StopReason.MAX_STEPS, answer=answer, detail=state.detail))


def closing_text(response: ModelResponse) -> str:
    """Return the closing answer in a reply, empty when it is something else."""
    reply = read_answer(response)
    return reply.text if isinstance(reply, Answer) else ""


def _schedule(draft: Draft) -> None:
    """Start every step whose needs are complete, in plan order, within the bound."""
    steps = draft.state.steps
    done = {one.step.id for one in steps if one.machine.phase is Phase.COMPLETED}
    idle = [one for one in steps if one.machine.phase is Phase.IDLE]
    busy = sum(not one.machine.ended for one in steps) - len(idle)
    for one in idle:
        if busy >= draft.state.limits.max_parallel or draft.state.stop is not None:
            return
        if one.needs <= done:
            begin(draft, one.step.id)
            busy += 1


def _anchored(draft: Draft) -> bool:
    """Say whether an anchor holds the run; it is reviewed once all that was started is over."""
    state = draft.state
    if any(one.awaits is Awaits.ANCHOR for one in state.pending.values()):
        return True
    results = [one.result for one in state.steps if one.machine.phase is Phase.COMPLETED]
    count = len(state.steps)
    marks = sorted({ceil(count / 3), ceil(2 * count / 3)}) if count else []
    if state.anchors >= len(marks) or len(results) < marks[state.anchors]:
        return False
    if state.pending:
        return True
    draft.change(anchors=state.anchors + 1)
    effect = draft.number(Awaits.ANCHOR)
    values = [list(result or ()) for result in results]
    draft.effects.append(Validate(id=effect, what=Subject.ANCHOR, values=(values,)))
    return True


def _roll_back(draft: Draft, done: frozenset[str]) -> None:
    """Begin again all that was done since the last good anchor; writes made stay made."""
    undone = done - draft.state.good
    steps = draft.state.steps
    draft.change(
        steps=tuple(
            StepState(step=one.step, needs=one.needs) if one.step.id in undone else one
            for one in steps
        ),
        rollbacks=draft.state.rollbacks + 1,
        anchors=draft.state.anchors - 1,
        cycles=draft.state.cycles - len(undone),
    )
    for name in sorted(undone):
        draft.tell(NoteKind.STATE, draft.state.at(name), data={"from": "completed", "to": "idle"})


def _answer(draft: Draft) -> None:
    state = draft.state
    if _model_answers(draft):
        ask_answer(draft)
        return
    template = state.plan.answer if state.plan else None
    if template is None:
        _gate(draft, "\n".join(as_text(one) for one in state.steps[-1].result or ()))
        return
    try:
        value = resolve(template, state.sources())
    except ReferenceMissed as error:
        draft.stop(StopReason.VALIDATION_FAILED, f"the answer: {error}")
        settle(draft)
        return
    _gate(draft, value if isinstance(value, str) else dumps(value).decode())


def _model_answers(draft: Draft) -> bool:
    state = draft.state
    return state.task.has_model and (state.plan is None or state.plan.answer is None)


def _gate(draft: Draft, answer: str) -> None:
    check = draft.state.plan.answer_check if draft.state.plan else None
    draft.change(answer=answer)
    effect = draft.number(Awaits.GATE)
    value = answer if check is None else _as_value(answer)
    draft.effects.append(Validate(id=effect, what=Subject.ANSWER, values=(value,), check=check))


def _as_value(answer: str) -> JsonValue:
    try:
        return parse(answer.strip().encode())
    except (Malformed, UnicodeEncodeError):
        return answer


def _close(draft: Draft) -> None:
    state = draft.state
    worth = any(one.result is not None for one in state.steps)
    if state.task.has_model and state.stop in _AT_THE_LIMIT and worth:
        effect = draft.number(Awaits.CLOSING)
        draft.effects.append(AskModel(id=effect, request=closing_request(state)))
        return
    on_closing(draft, "")


def _empty(draft: Draft, again: Callable[[Draft], None]) -> None:
    if draft.state.empty:
        draft.stop(StopReason.EMPTY_RESPONSE, "the model said nothing, twice")
        return
    draft.change(empty=True)
    again(draft)
