"""What every reasoning engine is: a pure state machine between effects and events.

Never does I/O and never knows time: `thoughtgate.runs` executes the effects and feeds the replies
back in the order in which they were asked. A new kind of effect or event is a new class here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.models import ModelRequest, ModelResponse
from thoughtgate.core.tools import Effect as EffectClass

if TYPE_CHECKING:
    from thoughtgate.engines.plan import Plan


class StopReason(StrEnum):
    """Why a run ended. Only the first is a complete answer."""

    FINAL_ANSWER = "final_answer"
    MAX_STEPS = "max_steps"
    MAX_RETRIES = "max_retries"
    BUDGET = "budget"
    DEADLINE = "deadline"
    LOOP_DETECTED = "loop_detected"
    NO_CANDIDATES = "no_candidates"
    EMPTY_RESPONSE = "empty_response"
    PARSE_FAILURE = "parse_failure"
    VALIDATION_FAILED = "validation_failed"
    CONTEXT_OVERFLOW = "context_overflow"
    CANCELLED = "cancelled"
    AWAITING_INPUT = "awaiting_input"
    IN_DOUBT = "in_doubt"
    MODEL_ERROR = "model_error"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTool:
    """A tool as an engine sees it.

    `parameters` is the input schema that the domain shows; `output` the output schema or None;
    `honours_key` says that the server deduplicates by idempotency key, so that a write whose
    outcome is unknown may be sent again under the same key.
    """

    name: str
    description: str
    parameters: JsonObject
    effect: EffectClass = EffectClass.WRITE
    output: JsonObject | None = None
    honours_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a run shall do. `plan` None means that a planner makes one; then a model is needed."""

    goal: str
    tools: tuple[EngineTool, ...]
    plan: "Plan | None" = None
    inputs: JsonObject = field(default_factory=dict)
    has_model: bool = False
    instructions: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far a run may go.

    `max_retries` counts extra attempts per step, which never eat steps; `max_repairs` re-asks of
    one unreadable reply; `loop_limit` is how often one call may bring one result; characters are
    code points; `native_tools` offers tools through the model's own interface, else in the prompt.
    """

    max_steps: int = 12
    max_retries: int = 3
    max_repairs: int = 2
    max_parallel: int = 4
    loop_limit: int = 3
    observation_chars: int = 4_000
    context_chars: int = 32_000
    max_tokens: int = 2_048
    native_tools: bool = True


# ---- effects: what an engine wants done ------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AskModel:
    """Ask the model. `step` is empty for the planner and the answer."""

    id: str
    request: ModelRequest
    step: str = ""
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One tool call. `key` identifies a write through all its attempts; empty for reads."""

    tool: str
    arguments: JsonObject
    effect: EffectClass
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseTools:
    """Make these calls, concurrently; one reply holds all outcomes in this order."""

    id: str
    step: str
    calls: tuple[Invocation, ...]
    attempt: int = 1


class Subject(StrEnum):
    """What is validated."""

    OBSERVATION = "observation"
    ANCHOR = "anchor"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Validate:
    """Hold values against what is known of them.

    `tools` names, per value, the tool whose output schema applies (empty string: none); `check`
    is a JSON Schema for each whole value, None when there is none.
    """

    id: str
    what: Subject
    values: tuple[JsonValue, ...]
    tools: tuple[str, ...] = ()
    check: JsonObject | bool | None = None
    step: str = ""
    attempt: int = 1


class NoteKind(StrEnum):
    """What a note is about."""

    PLAN = "plan"
    THOUGHT = "thought"
    ACTION = "action"
    OBSERVATION = "observation"
    VALIDATION = "validation"
    ANCHOR = "anchor"
    STATE = "state"
    PROGRESS = "progress"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A fact for observers, traces and the journal. It has no reply."""

    kind: NoteKind
    step: str = ""
    attempt: int = 1
    text: str = ""
    data: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The run is complete."""

    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """The run ends early. `answer` is what can be said all the same; `detail` says why it ends."""

    reason: StopReason
    answer: str = ""
    detail: str = ""


Effect: TypeAlias = AskModel | UseTools | Validate | Note | Finish | Halt
Effects: TypeAlias = tuple[Effect, ...]


# ---- events: the replies, each with the id of its effect -------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReplied:
    """The model answered."""

    effect: str
    response: ModelResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed:
    """The model could not be asked, for good. `overflow`: the request was too long for it."""

    effect: str
    message: str
    overflow: bool = False


class OutcomeStatus(StrEnum):
    """What is known of a call."""

    OK = "ok"
    TOOL_ERROR = "tool_error"
    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one call went.

    `observation` is the JSON object {content, structuredContent, isError, …} of the result; for a
    call without one it is made of the error. `not_sent`: it provably had no effect; `unknown`: it
    may have had one; `invalid`: it had, and its result breaks the tool's own output schema.
    """

    status: OutcomeStatus
    observation: JsonObject
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsReplied:
    """All calls of a `UseTools` are over."""

    effect: str
    outcomes: tuple[Outcome, ...]


class VerdictStatus(StrEnum):
    """What validation found; `skipped` when there was nothing to hold the value against."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The finding on one value; `problems` are sentences for models and people."""

    status: VerdictStatus
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """One verdict per value of a `Validate`, in its order."""

    effect: str
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """The effect was not started: a budget is spent."""

    effect: str
    reason: StopReason = StopReason.BUDGET
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """The run is stopped from outside; no reply to a pending effect will come any more."""

    reason: StopReason


Event: TypeAlias = ModelReplied | ModelFailed | ToolsReplied | Validated | Denied | Interrupted


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One step as the run left it.

    `observations` holds one object per call in order, kept for completed steps and, where one was
    made, for the last failed attempt; `checked` is the last verdict, empty if there was none.
    """

    id: str
    goal: str
    state: str
    tool: str = ""
    attempts: int = 1
    checked: str = ""
    observations: tuple[JsonValue, ...] = ()
    summary: str = ""
    reason: str = ""
    in_doubt: bool = False


S = TypeVar("S")


class Engine(Protocol[S]):
    """A reasoning engine. Same events, same effects: no clock, no random, no identity."""

    @property
    def name(self) -> str:
        """Return the name that domains and clients use."""
        ...

    def start(self, task: Task, limits: Limits) -> tuple[S, Effects]:
        """Begin a run.

        Raises:
            ConfigError: The plan is refused; `data["reasons"]` lists every reason.
        """
        ...

    def step(self, state: S, event: Event) -> tuple[S, Effects]:
        """Take one event.

        Raises:
            OutOfOrder: The event answers nothing that is pending.
        """
        ...

    def report(self, state: S) -> tuple[StepReport, ...]:
        """Return the steps in plan order, as they stand."""
        ...


ByName: TypeAlias = Mapping[str, EngineTool]
