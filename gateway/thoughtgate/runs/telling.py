"""How a run tells what happens: events to its observer, spans to the recorder.

Never changes the run: an observer that is slow slows it down, one that fails ends it.
"""

import asyncio
from collections.abc import Iterable, Sequence
from inspect import isawaitable

from thoughtgate.engines.contract import (
    AskModel,
    Event,
    Note,
    NoteKind,
    Subject,
    Validate,
)
from thoughtgate.runs.orders import Observer, RunReport, StepEvent
from thoughtgate.runs.spans import OpenSpan, Spans
from thoughtgate.telemetry import names

_KINDS = {
    "plan": names.KIND_PLAN,
    "reason": names.KIND_THOUGHT,
    "answer": names.KIND_ANSWER,
    "close": names.KIND_ANSWER,
}


class Telling:
    """The voice of one run: its events, and the spans of its Thoughts and Observations."""

    def __init__(
        self, *, run_id: str, engine: str, spans: Spans, root: OpenSpan, observer: Observer | None
    ) -> None:
        self._run_id = run_id
        self._engine = engine
        self._spans = spans
        self._root = root
        self._observer = observer
        self._open: dict[str, OpenSpan] = {}
        self._seq = 0
        self._turn = asyncio.Lock()

    async def told(self, notes: Sequence[Note], after: Event | None) -> None:
        """Take the notes of one transition: end the span that it answers, then tell them."""
        if span := self._open.pop(getattr(after, "effect", ""), None):
            for note in notes:
                self._describe(span, note)
            self._spans.end(span, error=_error(span, notes))
        for note in notes:
            self._at_once(note)
            await self.tell(note)

    async def tell(self, note: Note, report: RunReport | None = None) -> None:
        """Tell one note, after those before it."""
        if self._observer is None:
            return
        async with self._turn:
            self._seq += 1
            event = StepEvent(run_id=self._run_id, seq=self._seq, note=note, report=report)
            waiting = self._observer(event)
            if isawaitable(waiting):
                await waiting

    def thinking(self, effect: AskModel) -> OpenSpan:
        """Begin the span of a Thought, which contains its chat."""
        kind = _KINDS.get(effect.request.purpose, names.KIND_THOUGHT)
        name = names.plan_span(self._engine) if kind == names.KIND_PLAN else ""
        span = self._begin(name or names.step_span(kind, effect.step), kind, effect)
        span.attributes[names.THOUGHT_SOURCE] = names.SOURCE_MODEL
        return span

    def judging(self, effect: Validate) -> None:
        """Begin the span of an Observation or an anchor, which covers validation."""
        if effect.what is Subject.ANSWER:
            return
        anchor = effect.what is Subject.ANCHOR
        kind = names.KIND_ANCHOR if anchor else names.KIND_OBSERVATION
        span = self._begin(names.step_span(kind, effect.step), kind, effect)
        values = effect.values
        shown = values[0] if len(values) == 1 else list(values)
        self._spans.keep(span, names.OUTPUT_VALUE, shown)

    def give_up(self) -> None:
        """End the spans whose effects will have no reply any more."""
        for span in self._open.values():
            self._spans.end(span, cancelled=True)
        self._open.clear()

    def _begin(self, name: str, kind: str, effect: AskModel | Validate) -> OpenSpan:
        attributes: dict[str, object] = {
            names.KIND: kind,
            names.OPENINFERENCE_KIND: names.KIND_CHAIN,
            names.RUN_ID: self._run_id,
            names.EFFECT_ID: effect.id,
        }
        if kind == names.KIND_PLAN:
            attributes[names.GEN_AI_OPERATION] = names.OPERATION_PLAN
        if kind in {names.KIND_OBSERVATION, names.KIND_ANCHOR}:
            attributes[names.OPENINFERENCE_KIND] = names.KIND_EVALUATOR
        if effect.step:
            attributes |= {names.STEP_ID: effect.step, names.ATTEMPT: effect.attempt}
        span = self._spans.begin(name, self._root.context, attributes)
        self._open[effect.id] = span
        return span

    def _describe(self, span: OpenSpan, note: Note) -> None:
        """Put what a note says on the span that it ends."""
        if note.kind in {NoteKind.VALIDATION, NoteKind.ANCHOR}:
            span.attributes[names.VALIDATION] = note.data["status"]
            if problems := note.data.get("problems"):
                span.attributes[names.VALIDATION_PROBLEMS] = list(problems)
        elif note.kind is NoteKind.THOUGHT and note.data.get("source") == names.SOURCE_MODEL:
            self._spans.keep(span, names.OUTPUT_VALUE, note.text)
        elif note.kind is NoteKind.PLAN:
            self._spans.keep(span, names.OUTPUT_VALUE, note.data["plan"])

    def _at_once(self, note: Note) -> None:
        """Record what took no time: a Thought that the plan had, a plan that was given."""
        attributes: dict[str, object] = {
            names.OPENINFERENCE_KIND: names.KIND_CHAIN,
            names.RUN_ID: self._run_id,
            names.THOUGHT_SOURCE: names.SOURCE_PLAN,
        }
        if note.kind is NoteKind.THOUGHT and note.data.get("source") == names.SOURCE_PLAN:
            attributes |= {
                names.KIND: names.KIND_THOUGHT,
                names.STEP_ID: note.step,
                names.ATTEMPT: note.attempt,
            }
            name, content = names.step_span(names.KIND_THOUGHT, note.step), note.text
        elif note.kind is NoteKind.PLAN and note.data.get("source") == "given":
            attributes |= {
                names.KIND: names.KIND_PLAN,
                names.GEN_AI_OPERATION: names.OPERATION_PLAN,
            }
            name, content = names.plan_span(self._engine), note.data["plan"]
        elif note.kind is NoteKind.VALIDATION and not note.step:
            self._describe(self._root, note)
            return
        else:
            return
        span = self._spans.begin(name, self._root.context, attributes)
        self._spans.keep(span, names.OUTPUT_VALUE, content)
        self._spans.end(span)


def _error(span: OpenSpan, notes: Iterable[Note]) -> str | None:
    """Return the description of a failed validation, None for anything else."""
    if span.attributes.get(names.VALIDATION) != names.VALIDATION_FAILED:
        return None
    return next((note.text for note in notes if note.kind is NoteKind.VALIDATION), "")
