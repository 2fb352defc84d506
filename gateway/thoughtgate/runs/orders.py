"""What a run is asked to do, what it tells while it runs, and what it leaves behind.

Never does anything: plain values between `app`, `cli`, `surface` and the runner.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from thoughtgate.core.calls import LOCAL, Principal, Session
from thoughtgate.core.json import JsonObject
from thoughtgate.core.ports import ModelClient
from thoughtgate.core.servers import Era
from thoughtgate.core.traces import SpanContext
from thoughtgate.engines.contract import Limits, Note, StepReport, StopReason
from thoughtgate.engines.plan import Plan
from thoughtgate.runs.budget import BudgetLimits, Cost

RUN_SESSION = Session(
    id="", era=Era.STATELESS, version="2026-07-28", client={"name": "thoughtgate"}, origin="run"
)
"""The session of a run that no client's call stands around."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """One run to make.

    `domain` is where its tools come from; `plan` None lets a planner make one, for which `model`
    is needed; `inputs` are what the plan refers to as `inputs#/…`; `depth` counts the calls that
    stand around the run, `parent_run` is the run that one of them belongs to; `parent` is the
    span to hang below; `deadline` is on the event loop's clock.
    """

    goal: str
    domain: str
    plan: Plan | None = None
    inputs: JsonObject = field(default_factory=dict)
    model: ModelClient | None = None
    engine: str = "react"
    limits: Limits = field(default_factory=Limits)
    budget: BudgetLimits = field(default_factory=BudgetLimits)
    principal: Principal = LOCAL
    session: Session = RUN_SESSION
    deadline: float = float("inf")
    depth: int = 0
    parent_run: str = ""
    parent: SpanContext | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """How a run went. `partial` says that `answer` is not the whole answer."""

    run_id: str
    stop_reason: StopReason
    answer: str
    steps: tuple[StepReport, ...]
    spent: Cost
    detail: str = ""
    trace_id: int = 0

    @property
    def partial(self) -> bool:
        """Say whether the run ended before its plan did."""
        return self.stop_reason is not StopReason.FINAL_ANSWER

    @property
    def status(self) -> str:
        """Return `completed`, `halted` or `cancelled`."""
        if self.stop_reason is StopReason.CANCELLED:
            return "cancelled"
        return "halted" if self.partial else "completed"

    def as_json(self) -> JsonObject:
        """Return the report in the shape that clients see."""
        return {
            "run_id": self.run_id,
            "status": self.status,
            "stop_reason": self.stop_reason.value,
            "answer": self.answer,
            "partial": self.partial,
            "detail": self.detail,
            "steps": [_step(step) for step in self.steps],
            "spent": self.spent.as_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvent:
    """A note of the run `run_id`, numbered from 1 in the order of telling."""

    run_id: str
    seq: int
    note: Note
    report: RunReport | None = None


Observer = Callable[[StepEvent], Awaitable[None] | None]
"""Takes the events of a run, in order; the run waits for an awaitable one."""


def _step(step: StepReport) -> JsonObject:
    shown = {
        "id": step.id,
        "goal": step.goal,
        "tool": step.tool,
        "state": step.state,
        "attempts": step.attempts,
        "checked": step.checked,
        "summary": step.summary,
        "reason": step.reason,
        "in_doubt": step.in_doubt,
    }
    return {key: value for key, value in shown.items() if value != "" and value is not False}
