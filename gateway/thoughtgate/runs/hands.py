"""What a run does to the world: asks the model, calls tools through the path of every call.

Never calls a tool outside the run's set, and never begins what its budget does not hold.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from thoughtgate.core.calls import Call, Notice, NoticeKind, Question, Source, ToolName
from thoughtgate.core.errors import ModelError, NotAsked
from thoughtgate.core.json import JsonValue
from thoughtgate.core.models import Message, ModelRequest, ModelResponse
from thoughtgate.core.ports import Next
from thoughtgate.core.tools import Effect as EffectClass
from thoughtgate.core.traces import SpanContext, SpanKind
from thoughtgate.engines.contract import (
    AskModel,
    Denied,
    Event,
    Invocation,
    ModelFailed,
    ModelReplied,
    Note,
    NoteKind,
    Outcome,
    OutcomeStatus,
    ToolsReplied,
    UseTools,
    Validate,
    Validated,
)
from thoughtgate.engines.observations import failure
from thoughtgate.runs.budget import Budget, Cost
from thoughtgate.runs.orders import RunOrder
from thoughtgate.runs.outcomes import outcome_of
from thoughtgate.runs.spans import OpenSpan, Spans
from thoughtgate.runs.telling import Telling
from thoughtgate.runs.tools import Toolset
from thoughtgate.runs.validation import verdicts
from thoughtgate.telemetry import names

_LONGEST_PAUSE = 5.0
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """What one run works with."""

    run_id: str
    order: RunOrder
    tools: Toolset
    call: Next
    budget: Budget
    spans: Spans
    telling: Telling
    root: SpanContext
    deadline: float
    fan_out: int
    retry_delay: float
    sleep: Callable[[float], Awaitable[None]]


class RunHands:
    """The hands of one run."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._room = asyncio.Semaphore(kit.fan_out)
        self._models = asyncio.Semaphore(kit.order.limits.max_parallel)

    def reserve(self, effect: AskModel | UseTools) -> Denied | None:
        """Take the price of the whole effect, or nothing."""
        refused = self._kit.budget.reserve(_price(effect))
        if not refused:
            return None
        return Denied(effect=effect.id, detail=f"the budget for {refused} is spent")

    async def perform(self, effect: AskModel | UseTools) -> Event:
        """Carry out an effect."""
        if isinstance(effect, AskModel):
            span = self._kit.telling.thinking(effect)
            async with self._models:
                return await self._ask(effect, span)
        if effect.attempt > 1:
            pause = self._kit.retry_delay * 2 ** (effect.attempt - 2)
            await self._kit.sleep(min(pause, _LONGEST_PAUSE))
        made = [self._make(effect, at, one) for at, one in enumerate(effect.calls)]
        return ToolsReplied(effect=effect.id, outcomes=tuple(await _together(made)))

    def validate(self, effect: Validate) -> Event:
        """Return the verdicts."""
        self._kit.telling.judging(effect)
        return Validated(effect=effect.id, verdicts=verdicts(effect, self._kit.tools.true))

    async def told(self, effects: Sequence[Note], after: Event | None) -> None:
        """Pass on the notes of one transition."""
        await self._kit.telling.told(effects, after)

    async def _ask(self, effect: AskModel, thought: OpenSpan) -> Event:
        kit = self._kit
        model = kit.order.model
        if model is None:
            return ModelFailed(effect=effect.id, message="no model is configured")
        span = kit.spans.begin(names.OPERATION_CHAT, thought.context, {}, SpanKind.CLIENT)
        try:
            response = await model.complete(effect.request)
        except ModelError as error:
            kit.spans.end(span, error=error.message)
            kit.budget.settle(_price(effect), Cost(model_calls=1))
            overflow = error.data.get("kind") == "context_overflow"
            return ModelFailed(effect=effect.id, message=error.message, overflow=overflow)
        except asyncio.CancelledError:
            kit.spans.end(span, cancelled=True)
            raise
        kit.budget.settle(_price(effect), _actual(effect, response))
        self._chat(span, effect.request, response)
        return ModelReplied(effect=effect.id, response=response)

    async def _make(self, effect: UseTools, at: int, one: Invocation) -> Outcome:
        kit = self._kit
        if one.tool not in kit.tools.true:
            said = failure("this tool is not in the run's set; it was not called")
            return Outcome(status=OutcomeStatus.NOT_SENT, observation=said, code="unknown_tool")
        async with self._room:
            span = kit.spans.begin(
                names.execute_tool_span(one.tool), kit.root, self._action(effect, at, one)
            )
            kit.spans.keep(span, names.GEN_AI_TOOL_ARGUMENTS, one.arguments)
            kit.spans.keep(span, names.INPUT_VALUE, one.arguments)
            try:
                outcome = await outcome_of(self._call(effect, at, one, span.context), kit.call)
            except asyncio.CancelledError:
                kit.spans.end(span, cancelled=True)
                raise
            if outcome.status is not OutcomeStatus.OK:
                span.attributes[names.ERROR_TYPE] = outcome.code
            kit.spans.keep(span, names.GEN_AI_TOOL_RESULT, outcome.observation)
            kit.spans.keep(span, names.OUTPUT_VALUE, outcome.observation)
            kit.spans.end(span, error=None if outcome.status is OutcomeStatus.OK else outcome.code)
            return outcome

    def _call(self, effect: UseTools, at: int, one: Invocation, trace: SpanContext) -> Call:
        kit, order = self._kit, self._kit.order
        return Call(
            id=f"{kit.run_id}.{effect.id}.{at}",
            target=ToolName(domain=order.domain, name=one.tool),
            arguments=one.arguments,
            principal=order.principal,
            session=order.session,
            domain=order.domain,
            deadline=kit.deadline,
            listener=_Progress(kit.telling, effect.step, effect.attempt),
            meta={},
            trace=trace,
            wants_progress=True,
            source=Source.ENGINE,
            depth=order.depth + 1,
            run_id=kit.run_id,
            idempotency_key=f"{kit.run_id}.{one.key}" if _keyed(one) else "",
        )

    def _action(self, effect: UseTools, at: int, one: Invocation) -> dict[str, object]:
        tool = self._kit.tools.true[one.tool]
        attributes: dict[str, object] = {
            names.KIND: names.KIND_ACTION,
            names.OPENINFERENCE_KIND: names.KIND_TOOL,
            names.GEN_AI_OPERATION: names.OPERATION_EXECUTE_TOOL,
            names.GEN_AI_TOOL_NAME: one.tool,
            names.GEN_AI_TOOL_TYPE: names.TOOL_TYPE_FUNCTION,
            names.GEN_AI_TOOL_CALL_ID: f"{self._kit.run_id}.{effect.id}.{at}",
            names.TOOL_DIGEST: tool.digest,
            names.TOOL_EFFECT: one.effect.value,
            names.RUN_ID: self._kit.run_id,
            names.STEP_ID: effect.step,
            names.ATTEMPT: effect.attempt,
            names.EFFECT_ID: effect.id,
        }
        if len(effect.calls) > 1:
            attributes[names.EACH_INDEX] = at
        return attributes

    def _chat(self, span: OpenSpan, request: ModelRequest, response: ModelResponse) -> None:
        usage = response.usage
        known = {
            names.GEN_AI_OPERATION: names.OPERATION_CHAT,
            names.OPENINFERENCE_KIND: names.KIND_LLM,
            names.GEN_AI_REQUEST_MODEL: response.model or None,
            names.GEN_AI_RESPONSE_MODEL: response.model or None,
            names.GEN_AI_REQUEST_MAX_TOKENS: request.max_tokens,
            names.GEN_AI_REQUEST_TEMPERATURE: request.temperature,
            names.GEN_AI_REQUEST_SEED: request.seed,
            names.GEN_AI_FINISH_REASONS: [response.finish.value],
            names.GEN_AI_INPUT_TOKENS: usage.input_tokens,
            names.GEN_AI_OUTPUT_TOKENS: usage.output_tokens,
            names.RUN_ID: self._kit.run_id,
        }
        span.name = names.chat_span(response.model)
        span.attributes |= {key: value for key, value in known.items() if value is not None}
        spans = self._kit.spans
        spans.keep(span, names.GEN_AI_INPUT_MESSAGES, [_shown(one) for one in request.messages])
        spans.keep(span, names.GEN_AI_OUTPUT_MESSAGES, [_reply(response)])
        spans.keep(span, names.OUTPUT_VALUE, response.text)
        spans.end(span)


class _Progress:
    """Hears a tool's progress and tells it as the run's own."""

    def __init__(self, telling: Telling, step: str, attempt: int) -> None:
        self._telling = telling
        self._step = step
        self._attempt = attempt

    async def notify(self, notice: Notice) -> None:
        """Tell one notification of progress; log messages stay with the tool."""
        if notice.kind is NoticeKind.PROGRESS:
            note = Note(
                kind=NoteKind.PROGRESS,
                step=self._step,
                attempt=self._attempt,
                text=str(notice.params.get("message", "")),
                data=notice.params,
            )
            await self._telling.tell(note)

    async def ask(self, question: Question) -> bytes:
        """Refuse: a run declares nothing that a server could ask it for."""
        raise NotAsked(message=f"a run does not answer {question.method}")


async def _together(made: "Sequence[Awaitable[Outcome]]") -> list[Outcome]:
    """Await all, in their order; when the run ends first, none of them stays behind."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_await(one)) for one in made]
    return [task.result() for task in tasks]


async def _await(one: Awaitable[Outcome]) -> Outcome:
    return await one


def _keyed(one: Invocation) -> bool:
    return bool(one.key) and one.effect is not EffectClass.READ


def _price(effect: AskModel | UseTools) -> Cost:
    if isinstance(effect, UseTools):
        return Cost(tool_calls=len(effect.calls))
    size = sum(len(message.text) for message in effect.request.messages)
    return Cost(
        model_calls=1,
        input_tokens=size // _CHARS_PER_TOKEN,
        output_tokens=effect.request.max_tokens,
    )


def _actual(effect: AskModel, response: ModelResponse) -> Cost:
    """Return what a reply cost; where the model does not say, the reserved amount stands."""
    price, usage = _price(effect), response.usage
    known = usage.input_tokens is not None and usage.output_tokens is not None
    return Cost(
        model_calls=1,
        input_tokens=price.input_tokens if usage.input_tokens is None else usage.input_tokens,
        output_tokens=price.output_tokens if usage.output_tokens is None else usage.output_tokens,
        unknown_usage=0 if known else 1,
    )


def _shown(message: Message) -> JsonValue:
    return {"role": message.role.value, "parts": [{"type": "text", "content": message.text}]}


def _reply(response: ModelResponse) -> JsonValue:
    parts: list[JsonValue] = [{"type": "text", "content": response.text}]
    for use in response.uses:
        call = {"id": use.id, "name": use.name, "arguments": use.arguments}
        parts.append({"type": "tool_call", **call})
    finish = response.finish.value
    return {"role": "assistant", "parts": parts, "finish_reason": finish}
