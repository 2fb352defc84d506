"""Plays a ReAct engine without a runner: effects in, scripted replies out, in order of asking."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.models import FinishReason, ModelRequest, ModelResponse, ToolUse
from thoughtgate.core.tools import Effect as EffectClass
from thoughtgate.engines.contract import (
    AskModel,
    Effect,
    EngineTool,
    Event,
    Finish,
    Halt,
    Invocation,
    Limits,
    ModelFailed,
    ModelReplied,
    Note,
    NoteKind,
    Outcome,
    OutcomeStatus,
    StepReport,
    Task,
    ToolsReplied,
    UseTools,
    Validate,
    Validated,
    Verdict,
    VerdictStatus,
)
from thoughtgate.engines.observations import failure, is_error
from thoughtgate.engines.plan import Plan, plan_from_json
from thoughtgate.engines.react import React
from thoughtgate.engines.react_state import ReactState

Says = str | ModelResponse | ModelFailed | Callable[[ModelRequest], str]
Does = Callable[[Invocation], Outcome]
Judges = Callable[[Validate, JsonValue], Verdict]

FIND = EngineTool(
    name="logs__find",
    description="Find files",
    parameters={
        "type": "object",
        "properties": {"dir": {"type": "string"}},
        "additionalProperties": False,
    },
    effect=EffectClass.READ,
)
READ = EngineTool(
    name="logs__read",
    description="Read a file",
    parameters={"type": "object", "required": ["path"]},
    effect=EffectClass.READ,
)
SEND = EngineTool(
    name="notify__send",
    description="Send a message",
    parameters={"type": "object", "required": ["text"]},
    effect=EffectClass.WRITE,
)
TOOLS = (FIND, READ, SEND)


def ok(structured: JsonValue = None, text: str = "fine") -> Outcome:
    """Return a good outcome."""
    observation: JsonObject = {
        "content": [{"type": "text", "text": text}],
        **({} if structured is None else {"structuredContent": structured}),
    }
    return Outcome(status=OutcomeStatus.OK, observation=observation)


def bad(status: OutcomeStatus = OutcomeStatus.TOOL_ERROR, code: str = "tool_error") -> Outcome:
    """Return a bad outcome."""
    return Outcome(status=status, observation=failure("it went wrong"), code=code)


def action(tool: str, arguments: str = "{}", thought: str = "next") -> str:
    """Return a text reply that asks for a tool."""
    return f"Thought: {thought}\nAction: {tool}\nAction Input: {arguments}"


def native(tool: str, arguments: str = "{}", use_id: str = "call_0") -> ModelResponse:
    """Return a reply with a native tool call."""
    use = ToolUse(id=use_id, name=tool, arguments=arguments)
    return ModelResponse(text="", uses=(use,), finish=FinishReason.TOOL_CALLS)


def answer(text: str) -> str:
    """Return a text reply that answers."""
    return f"Thought: done\nFinal Answer: {text}"


def plan(*steps: JsonObject, **fields: JsonValue) -> Plan:
    """Return a given plan."""
    return plan_from_json({"steps": list(steps), **fields})


def judged(effect: Validate, value: JsonValue) -> Verdict:
    """Judge as a runner without schemas: errors fail, all else is skipped."""
    if is_error(value):
        return Verdict(status=VerdictStatus.FAILED, problems=("the call failed",))
    return Verdict(status=VerdictStatus.SKIPPED)


@dataclass(slots=True, kw_only=True)
class Play:
    """One run: who answers, and what came of it."""

    says: Iterable[Says] = ()
    does: Does = field(default=lambda _: ok())
    judges: Judges = judged
    effects: list[Effect] = field(default_factory=list)
    calls: list[Invocation] = field(default_factory=list)
    requests: list[ModelRequest] = field(default_factory=list)
    state: ReactState | None = None

    def run(self, task: Task, limits: Limits | None = None) -> Finish | Halt:
        """Play to the end and return the last effect."""
        engine, script = React(), iter(self.says)
        state, effects = engine.start(task, limits or Limits())
        queue = deque(effects)
        while queue:
            effect = queue.popleft()
            self.effects.append(effect)
            if not isinstance(effect, (Note, Finish, Halt)):
                state, effects = engine.step(state, self._reply(effect, script))
                queue.extend(effects)
        self.state = state
        last = self.effects[-1]
        assert isinstance(last, (Finish, Halt)), last
        return last

    def _reply(self, effect: AskModel | UseTools | Validate, script: Iterable[Says]) -> Event:
        if isinstance(effect, UseTools):
            self.calls += effect.calls
            outcomes = tuple(self.does(call) for call in effect.calls)
            return ToolsReplied(effect=effect.id, outcomes=outcomes)
        if isinstance(effect, Validate):
            verdicts = tuple(self.judges(effect, value) for value in effect.values)
            return Validated(effect=effect.id, verdicts=verdicts)
        self.requests.append(effect.request)
        says = next(iter(script), None)
        assert says is not None, f"the script ends before {effect.request.purpose}"
        if isinstance(says, ModelFailed):
            return ModelFailed(effect=effect.id, message=says.message, overflow=says.overflow)
        if callable(says):
            says = says(effect.request)
        if isinstance(says, str):
            says = ModelResponse(text=says, finish=FinishReason.STOP)
        return ModelReplied(effect=effect.id, response=says)

    @property
    def report(self) -> dict[str, StepReport]:
        """Return the steps by id."""
        assert self.state is not None
        return {step.id: step for step in React().report(self.state)}

    def notes(self, kind: NoteKind) -> list[Note]:
        """Return the notes of one kind."""
        return [one for one in self.effects if isinstance(one, Note) and one.kind is kind]

    def prompt(self, at: int = -1) -> str:
        """Return the text of one question, system and all turns."""
        return "\n".join(message.text for message in self.requests[at].messages)
