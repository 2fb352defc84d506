"""Reasoning and acting in one step: from a Thought to calls, or to the step's own answer.

Never looks at results; that is `react_check`. What is more than a read is only made in a step that
names its tool, because the plan was made before any tool's text was read.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from thoughtgate.core.json import JsonObject, digest
from thoughtgate.core.models import ModelResponse
from thoughtgate.core.tools import Effect as EffectClass
from thoughtgate.engines.contract import (
    AskModel,
    EngineTool,
    Invocation,
    NoteKind,
    Outcome,
    OutcomeStatus,
    StopReason,
    Subject,
    UseTools,
    Validate,
)
from thoughtgate.engines.names import suggestion
from thoughtgate.engines.observations import as_text, cut, failure
from thoughtgate.engines.prompts import step_request
from thoughtgate.engines.react_state import Acting, Awaits, Draft, Repair, StepState
from thoughtgate.engines.react_table import Phase
from thoughtgate.engines.references import Item, ReferenceMissed, resolve
from thoughtgate.engines.replies import Action, Answer, Empty, read

_ECHO = 400


def begin(draft: Draft, step_id: str) -> None:
    """Start a step: take the plan's arguments, or ask the model."""
    step = draft.move(step_id, Phase.REASONING)
    if step.given:
        _take_plan(draft, step)
    else:
        ask(draft, step_id)


def ask(draft: Draft, step_id: str) -> None:
    """Ask the model what to do in a step that is reasoning."""
    if draft.state.stop is not None:
        return
    step = draft.state.at(step_id)
    effect = draft.number(Awaits.THOUGHT, step_id)
    draft.effects.append(
        AskModel(
            id=effect,
            request=step_request(draft.state, step),
            step=step_id,
            attempt=step.attempt,
        )
    )


def on_reply(draft: Draft, step_id: str, response: ModelResponse) -> None:
    """Take the model's reply in a step."""
    step = draft.state.at(step_id)
    reply = read(response, plain_answers=draft.state.limits.native_tools)
    if isinstance(reply, Empty):
        _empty(draft, step)
    elif isinstance(reply, Action):
        _act_on(draft, step, reply)
    elif not isinstance(reply, Answer):
        _repair(draft, step, Repair(reason=reply.reason, echo=reply.echo))
    elif step.step.tool and step.result is None:
        reason = f"this step needs an observation: call {step.step.tool} first"
        _repair(draft, step, Repair(reason=reason, echo=cut(reply.text, _ECHO)))
    else:
        _conclude(draft, step, reply)


def act(draft: Draft, step_id: str, acting: Acting) -> None:
    """Make the open calls of an action, from reasoning or from retry.

    Writes that were made before are not made again: their recorded outcome stands in.
    """
    state = draft.state
    if state.stop is not None:
        return
    if state.at(step_id).fresh:
        if state.cycles >= state.limits.max_steps:
            draft.stop(StopReason.MAX_STEPS, f"{state.limits.max_steps} steps were taken")
            return
        draft.change(cycles=state.cycles + 1)
    acting = _reused(draft, step_id, acting)
    if _writes_anew(draft, step_id, acting):
        reason = "it wrote before with other arguments; a person must say whether to write again"
        draft.halt_step(step_id, StopReason.AWAITING_INPUT, reason)
        return
    step = draft.put(step_id, acting=acting, fresh=False, repairs=(), empty=False)
    draft.move(step_id, Phase.ACTING)
    if not acting.open:
        validate(draft, step_id)
        return
    effect = draft.number(Awaits.TOOLS, step_id)
    calls = tuple(_keyed(acting.calls[at], f"{effect}.{at}") for at in acting.open)
    kept = dict(enumerate(acting.calls)) | dict(zip(acting.open, calls, strict=True))
    draft.put(step_id, acting=replace(acting, calls=tuple(kept.values())))
    for call in calls:
        data = {"tool": call.tool, "arguments": call.arguments, "effect": call.effect.value}
        draft.tell(NoteKind.ACTION, step, call.tool, data)
    draft.effects.append(UseTools(id=effect, step=step_id, calls=calls, attempt=step.attempt))


def validate(draft: Draft, step_id: str) -> None:
    """Ask for a verdict on the outcomes of an action that are not known to be good."""
    step = draft.move(step_id, Phase.VALIDATING)
    acting = step.acting
    if acting is None:
        raise TypeError(step_id)
    effect = draft.number(Awaits.CHECK, step_id)
    todo = [at for at, good in enumerate(acting.good) if not good]
    outcomes = [(acting.calls[at].tool, acting.outcomes[at]) for at in todo]
    draft.effects.append(
        Validate(
            id=effect,
            what=Subject.OBSERVATION,
            values=tuple(one.observation for _, one in outcomes if one is not None),
            tools=tuple(tool if acting.known else "" for tool, _ in outcomes),
            check=step.step.check,
            step=step_id,
            attempt=step.attempt,
        )
    )


def observe(draft: Draft, step: StepState, outcome: Outcome, tool: str) -> None:
    """Tell an observation."""
    data = {"tool": tool, "status": outcome.status.value, "observation": outcome.observation}
    text = cut(as_text(outcome.observation), draft.state.limits.observation_chars)
    draft.tell(NoteKind.OBSERVATION, step, text, data)


def write_ids(step: StepState, calls: Sequence[Invocation]) -> list[tuple[str, ...]]:
    """Return, per call, the names of the write that it is, the first its own; none for a read.

    What a model asks for is one write per run. What the plan asks for is one per step, and as many
    as its `each` asks for; a model that asks for it again means the one that was made.
    """
    seen: Counter[str] = Counter()
    names: list[tuple[str, ...]] = []
    for call in calls:
        if call.effect is not EffectClass.WRITE:
            names.append(())
            continue
        name = digest([call.tool, call.arguments])
        seen[name] += 1
        planned = f"{step.step.id}/{seen[name]}/{name}"
        names.append((planned, name) if step.given else (name,))
    return names


def _take_plan(draft: Draft, step: StepState) -> None:
    goal = step.step.goal or f"use {step.step.tool}"
    draft.tell(NoteKind.THOUGHT, step, goal, {"source": "plan"})
    try:
        arguments = _planned_arguments(draft, step)
    except ReferenceMissed as error:
        _missed(draft, step, str(error))
        return
    tool = draft.state.tools[step.step.tool]
    calls = tuple(_invocation(tool, one) for one in arguments)
    act(draft, step.step.id, _acting(calls, thought=goal))


def _planned_arguments(draft: Draft, step: StepState) -> list[JsonObject]:
    sources = draft.state.sources()
    if step.step.each is None:
        found = [resolve(step.step.arguments, sources)]
    else:
        items = resolve(step.step.each, sources)
        if not isinstance(items, list):
            raise ReferenceMissed(why="each needs a list")
        found = [resolve(step.step.arguments, sources, Item(value=item)) for item in items]
    if not all(isinstance(one, Mapping) for one in found):
        raise ReferenceMissed(why="the arguments refer to something that is no object")
    return found


def _missed(draft: Draft, step: StepState, reason: str) -> None:
    draft.tell(NoteKind.VALIDATION, step, reason, {"status": "failed", "problems": [reason]})
    draft.put(step.step.id, checked="failed")
    if not draft.state.planned_by_model:
        draft.halt_step(step.step.id, StopReason.VALIDATION_FAILED, reason)
        return
    repair = Repair(reason=f"the planned arguments cannot be used: {reason}")
    draft.put(step.step.id, released=True, repairs=(repair,))
    ask(draft, step.step.id)


def _act_on(draft: Draft, step: StepState, action: Action) -> None:
    thought = action.thought or f"use {action.name}"
    draft.tell(NoteKind.THOUGHT, step, thought, {"source": "model"})
    tools = draft.state.tools
    tool = tools.get(action.name)
    refusal = ""
    if tool is None:
        refusal = f"unknown tool {action.name[:80]}; {suggestion(action.name, tools)}"
    elif tool.effect is not EffectClass.READ and tool.name != step.step.tool:
        refusal = f"{tool.name} changes something and is not the tool of this step; it was not run"
    if tool is not None and not refusal:
        acting = _acting((_invocation(tool, action.arguments),), thought, action.use_id)
        act(draft, step.step.id, acting)
        return
    _refuse(draft, step, action, refusal)


def _refuse(draft: Draft, step: StepState, action: Action, refusal: str) -> None:
    """Answer an action that is not made: the observation is ours, and validation fails it."""
    outcome = Outcome(
        status=OutcomeStatus.NOT_SENT, observation=failure(refusal), code="not_allowed"
    )
    call = Invocation(tool=action.name[:200], arguments=action.arguments, effect=EffectClass.READ)
    acting = Acting(
        calls=(call,),
        outcomes=(outcome,),
        good=(False,),
        thought=action.thought,
        use_id=action.use_id,
        known=False,
    )
    step = draft.put(step.step.id, acting=acting, repairs=(), empty=False)
    draft.move(step.step.id, Phase.ACTING)
    observe(draft, step, outcome, call.tool)
    validate(draft, step.step.id)


def _conclude(draft: Draft, step: StepState, answer: Answer) -> None:
    draft.tell(
        NoteKind.THOUGHT, step, answer.thought or answer.text, {"source": "model", "final": True}
    )
    draft.put(step.step.id, summary=answer.text, repairs=())
    if step.result is not None:
        draft.move(step.step.id, Phase.COMPLETED)
        return
    observation = {"content": [{"type": "text", "text": answer.text}]}
    if step.step.check is None:
        draft.put(step.step.id, result=(observation,), checked=step.checked or "skipped")
        draft.move(step.step.id, Phase.COMPLETED)
        return
    outcome = Outcome(status=OutcomeStatus.OK, observation=observation)
    call = Invocation(tool="", arguments={}, effect=EffectClass.READ)
    acting = Acting(calls=(call,), outcomes=(outcome,), good=(False,), known=False)
    draft.put(step.step.id, acting=acting)
    draft.move(step.step.id, Phase.ACTING)
    validate(draft, step.step.id)


def _empty(draft: Draft, step: StepState) -> None:
    if step.empty:
        draft.halt_step(step.step.id, StopReason.EMPTY_RESPONSE, "the model said nothing, twice")
        return
    draft.put(step.step.id, empty=True)
    ask(draft, step.step.id)


def _repair(draft: Draft, step: StepState, repair: Repair) -> None:
    if len(step.repairs) >= draft.state.limits.max_repairs:
        draft.halt_step(step.step.id, StopReason.PARSE_FAILURE, repair.reason)
        return
    draft.put(step.step.id, repairs=(*step.repairs, repair))
    ask(draft, step.step.id)


def _reused(draft: Draft, step_id: str, acting: Acting) -> Acting:
    step = draft.state.at(step_id)
    if step.in_doubt:
        return acting  # only the same call under its own key can tell what became of it
    outcomes = list(acting.outcomes)
    names = write_ids(step, acting.calls)
    for at in acting.open:
        if names[at]:
            outcomes[at] = draft.state.writes.get(names[at][0])
    return replace(acting, outcomes=tuple(outcomes))


def _writes_anew(draft: Draft, step_id: str, acting: Acting) -> bool:
    """Say whether a planned step that was rolled back is about to write what it did not before."""
    step = draft.state.at(step_id)
    made = {name for name in draft.state.writes if name.startswith(f"{step_id}/")}
    if not made or not step.given or not acting.open:
        return False
    return not made <= {name for names in write_ids(step, acting.calls) for name in names}


def _keyed(call: Invocation, key: str) -> Invocation:
    if call.key or call.effect is EffectClass.READ:
        return call
    return Invocation(tool=call.tool, arguments=call.arguments, effect=call.effect, key=key)


def _invocation(tool: EngineTool, arguments: JsonObject) -> Invocation:
    return Invocation(tool=tool.name, arguments=arguments, effect=tool.effect)


def _acting(calls: tuple[Invocation, ...], thought: str, use_id: str = "") -> Acting:
    return Acting(
        calls=calls,
        outcomes=(None,) * len(calls),
        good=(False,) * len(calls),
        thought=thought,
        use_id=use_id,
    )
