"""The gate after every observation: on, again, or not at all.

Never advances on a failed verdict, and never sends a write again that may have happened.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from thoughtgate.core.json import digest
from thoughtgate.core.tools import Effect as EffectClass
from thoughtgate.engines.contract import (
    NoteKind,
    Outcome,
    OutcomeStatus,
    StopReason,
    Verdict,
    VerdictStatus,
)
from thoughtgate.engines.observations import as_text, cut, is_error
from thoughtgate.engines.react_state import Acting, Draft, Repair, StepState, Turn
from thoughtgate.engines.react_table import Phase
from thoughtgate.engines.react_think import act, ask, observe, validate, write_ids

_SAME_AGAIN_FAILS = frozenset({
    "invalid_arguments",
    "unknown_tool",
    "refused",
    "not_allowed",
    "upstream_denied",
})
_PROBLEMS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """One call of an action that did not pass."""

    at: int
    outcome: Outcome
    write: bool
    keyed: bool


def on_outcomes(draft: Draft, step_id: str, outcomes: Sequence[Outcome]) -> None:
    """Take the outcomes of the open calls of a step."""
    step = draft.state.at(step_id)
    acting = _acting(step)
    kept = list(acting.outcomes)
    writes = dict(draft.state.writes)
    names = write_ids(step, acting.calls)
    for at, outcome in zip(acting.open, outcomes, strict=True):
        call = acting.calls[at]
        observe(draft, step, outcome, call.tool)
        if step.in_doubt and outcome.status is OutcomeStatus.NOT_SENT:
            # what never left says nothing of what was sent before it
            outcome = replace(outcome, status=OutcomeStatus.UNKNOWN)
        kept[at] = outcome
        if call.effect is EffectClass.WRITE and _happened(draft, call.tool, outcome):
            writes |= dict.fromkeys(names[at], outcome)
    draft.change(writes=writes)
    in_doubt = any(
        call.effect is EffectClass.WRITE and made is not None and _is_unknown(made)
        for call, made in zip(acting.calls, kept, strict=True)
    )
    draft.put(step_id, acting=replace(acting, outcomes=tuple(kept)), in_doubt=in_doubt)
    validate(draft, step_id)


def on_verdicts(draft: Draft, step_id: str, verdicts: Sequence[Verdict]) -> None:
    """Take the verdicts on an action's observations."""
    step = draft.state.at(step_id)
    acting = _acting(step)
    todo = [at for at, good in enumerate(acting.good) if not good]
    good = list(acting.good)
    for at, verdict in zip(todo, verdicts, strict=True):
        outcome = acting.outcomes[at]
        fine = outcome is not None and outcome.status is OutcomeStatus.OK
        good[at] = fine and verdict.status is not VerdictStatus.FAILED
    problems = [problem for verdict in verdicts for problem in verdict.problems][:_PROBLEMS]
    status = _status(verdicts, all(good))
    acting = replace(acting, good=tuple(good))
    step = draft.put(step_id, acting=acting, checked=status.value)
    data = {"status": status.value, "problems": problems}
    draft.tell(NoteKind.VALIDATION, step, "; ".join(problems), data)
    if status is VerdictStatus.FAILED:
        _failed(draft, step, tuple(problems))
    else:
        _passed(draft, step, status)


def _status(verdicts: Sequence[Verdict], all_good: bool) -> VerdictStatus:
    if not all_good:
        return VerdictStatus.FAILED
    if verdicts and all(one.status is VerdictStatus.PASSED for one in verdicts):
        return VerdictStatus.PASSED
    return VerdictStatus.SKIPPED


def _passed(draft: Draft, step: StepState, status: VerdictStatus) -> None:
    acting = _acting(step)
    turns = step.turns
    if not step.given and acting.calls[0].tool:
        turns = (*turns, _turn(acting, (), 0))
    # a fan-out that a model makes call by call grows, and ends when the model says so
    by_hand = step.step.each is not None and step.released
    before = (step.result or ()) if by_hand else ()
    step = draft.put(
        step.step.id,
        result=(*before, *acting.observations),
        turns=turns,
        failures=(),
        fresh=True,
        acting=None,
    )
    draft.move(step.step.id, Phase.REASONING)
    checked = step.step.check is not None and status is VerdictStatus.PASSED
    if not by_hand and (step.given or step.released or checked or step.summary):
        draft.move(step.step.id, Phase.COMPLETED)
    elif not _looping(draft, step, acting):
        ask(draft, step.step.id)


def _failed(draft: Draft, step: StepState, problems: tuple[str, ...]) -> None:
    failed = _failures(draft, _acting(step))
    last = step.attempt > draft.state.limits.max_retries or draft.state.stop is not None
    if reason := _write_stops(failed, last=last):
        draft.halt_step(step.step.id, reason, _why(failed, problems))
    elif step.attempt > draft.state.limits.max_retries:
        draft.move(step.step.id, Phase.RETRY)
        draft.halt_step(step.step.id, StopReason.MAX_RETRIES, _why(failed, problems))
    elif step.in_doubt:
        _again(draft, step, failed)  # under the same key, whoever found the arguments
    elif not _can_reason(draft, step, failed):
        _again_or_halt(draft, step, failed, problems)
    elif step.given and _transient(failed):
        _again(draft, step, failed)
    else:
        _anew(draft, step, problems)


def _again_or_halt(
    draft: Draft, step: StepState, failed: Sequence[_Failed], problems: tuple[str, ...]
) -> None:
    if any(one.outcome.code in _SAME_AGAIN_FAILS for one in failed):
        draft.halt_step(step.step.id, StopReason.VALIDATION_FAILED, _why(failed, problems))
    elif any(one.write and one.outcome.status is not OutcomeStatus.NOT_SENT for one in failed):
        draft.halt_step(step.step.id, StopReason.AWAITING_INPUT, _why(failed, problems))
    else:
        _again(draft, step, failed)


def _again(draft: Draft, step: StepState, failed: Sequence[_Failed]) -> None:
    """Make the failed calls again, with the same arguments; first those in doubt, if any are."""
    acting = _acting(step)
    outcomes = list(acting.outcomes)
    for one in failed:
        if not step.in_doubt or _is_unknown(one.outcome):
            outcomes[one.at] = None
    draft.move(step.step.id, Phase.RETRY)
    draft.put(step.step.id, attempt=step.attempt + 1)
    act(draft, step.step.id, replace(acting, outcomes=tuple(outcomes)))


def _anew(draft: Draft, step: StepState, problems: tuple[str, ...]) -> None:
    """Let the model find other arguments."""
    acting = _acting(step)
    failures, repairs = step.failures, step.repairs
    if acting.calls[0].tool:
        failures = (*failures, _turn(acting, problems, acting.good.index(False)))
    else:
        repairs = (*repairs, Repair(reason=f"the result was refused: {'; '.join(problems)}"))
    draft.move(step.step.id, Phase.RETRY)
    draft.move(step.step.id, Phase.REASONING)
    step = draft.put(
        step.step.id,
        attempt=step.attempt + 1,
        released=step.step.arguments is not None,
        failures=failures,
        repairs=repairs,
        acting=None,
        summary="",
    )
    if not _looping(draft, step, acting):
        ask(draft, step.step.id)


def _looping(draft: Draft, step: StepState, acting: Acting) -> bool:
    """Count the model's call and its result; say whether the step goes in circles."""
    call = acting.calls[0]
    key = digest([step.step.id, call.tool, call.arguments, list(acting.observations)])
    count = draft.state.seen.get(key, 0) + 1
    draft.change(seen={**draft.state.seen, key: count})
    if count >= draft.state.limits.loop_limit:
        detail = f"{call.tool} gave the same result {count} times"
        draft.halt_step(step.step.id, StopReason.LOOP_DETECTED, detail)
        return True
    if count > 1:
        reason = f"{call.tool} was called with these arguments before, with this same result"
        draft.put(step.step.id, repairs=(*step.repairs, Repair(reason=reason)))
    return False


def _failures(draft: Draft, acting: Acting) -> tuple[_Failed, ...]:
    tools = draft.state.tools
    found = []
    for at, outcome in enumerate(acting.outcomes):
        if outcome is None or acting.good[at]:
            continue
        call = acting.calls[at]
        tool = tools.get(call.tool)
        write = call.effect is EffectClass.WRITE
        keyed = tool is not None and tool.honours_key
        found.append(_Failed(at=at, outcome=outcome, write=write, keyed=keyed))
    return tuple(found)


def _write_stops(failed: Sequence[_Failed], *, last: bool) -> StopReason | None:
    """Return why a failed write ends the run, None when none of the failed calls does."""
    writes = [one for one in failed if one.write]
    if any(_is_unknown(one.outcome) and (last or not one.keyed) for one in writes):
        return StopReason.IN_DOUBT
    done = {OutcomeStatus.OK, OutcomeStatus.INVALID}
    if any(one.outcome.status in done for one in writes):
        return StopReason.AWAITING_INPUT
    return None


def _can_reason(draft: Draft, step: StepState, failed: Sequence[_Failed]) -> bool:
    """Say whether a model may find other arguments.

    Not for a fan-out of which something was done: what stands in for it would drop the rest.
    """
    if not step.given:
        return True
    if not draft.state.planned_by_model:
        return False
    return step.step.each is None or (
        all(one.outcome.status is OutcomeStatus.NOT_SENT or not one.write for one in failed)
        and not any(_acting(step).good)
    )


def _transient(failed: Sequence[_Failed]) -> bool:
    """Say whether the same calls may well succeed the next time."""
    return all(
        one.outcome.status in {OutcomeStatus.UNKNOWN, OutcomeStatus.NOT_SENT}
        and one.outcome.code not in _SAME_AGAIN_FAILS
        for one in failed
    )


def _is_unknown(outcome: Outcome) -> bool:
    return outcome.status is OutcomeStatus.UNKNOWN


def _happened(draft: Draft, tool_name: str, outcome: Outcome) -> bool:
    """Say whether a write may have had its effect, so that it is never sent again."""
    if _is_unknown(outcome):
        return not draft.state.tools[tool_name].honours_key
    return outcome.status is not OutcomeStatus.NOT_SENT


def _turn(acting: Acting, problems: tuple[str, ...], at: int) -> Turn:
    call = acting.calls[at]
    return Turn(
        thought=acting.thought,
        tool=call.tool,
        arguments=call.arguments,
        observation=acting.observations[at],
        problems=problems,
        use_id=acting.use_id,
        known=acting.known,
    )


def _why(failed: Sequence[_Failed], problems: tuple[str, ...]) -> str:
    """Return the cause for people: the problems, and what the first failed call said."""
    first = failed[0].outcome.observation
    said = cut(" ".join(as_text(first).split()), 200)
    causes = [*problems[:3], said] if is_error(first) else problems
    return "; ".join(one for one in causes if one)


def _acting(step: StepState) -> Acting:
    if step.acting is None:
        raise TypeError(step.step.id)
    return step.acting
