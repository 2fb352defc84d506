"""The tool `reason`: a client hands a task to the engine of its domain.

Never a second path: the run's own calls go through the same stages as the call that started it.
"""

from collections.abc import Callable
from dataclasses import replace

from thoughtgate.core.calls import Call, Listener, Notice, NoticeKind, Result
from thoughtgate.core.domains import Domain
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.json import JsonObject
from thoughtgate.core.ports import ModelClient
from thoughtgate.engines.contract import Limits, NoteKind, VerdictStatus
from thoughtgate.engines.observations import cut
from thoughtgate.engines.plan import Plan, plan_from_json, plan_from_text
from thoughtgate.runs.budget import BudgetLimits
from thoughtgate.runs.orders import Observer, RunOrder, RunReport, StepEvent
from thoughtgate.runs.runner import Runner
from thoughtgate.views import View
from thoughtgate.wire.results import make_result

REASON = "reason"
_MESSAGE = 300
_FOR_PEOPLE = frozenset({NoteKind.THOUGHT, NoteKind.OBSERVATION, NoteKind.PROGRESS})

_STEP_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "state": {"type": "string"},
        "tool": {"type": "string"},
        "attempts": {"type": "integer", "minimum": 0},
        "checked": {"type": "string", "enum": ["passed", "failed", "skipped"]},
        "reason": {"type": "string"},
        "in_doubt": {"type": "boolean"},
    },
    "required": ["id", "state"],
}


def definition(ceiling: Limits) -> JsonObject:
    """Return the tool object; `ceiling` is the most that a caller may ask for."""
    return {
        "name": REASON,
        "title": "Reason about a task",
        "description": (
            "Carries out a task of several steps with the tools of this domain: makes a plan or "
            "takes the one given, calls the tools step by step, checks every observation, and "
            "answers. A run that ends early returns what was found so far, marked partial."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "task": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 20_000,
                    "description": "What shall be done, with all that is known about it",
                },
                "plan": {
                    "type": ["object", "string"],
                    "description": "The steps, as an object or as TOML or JSON text; by default a "
                    "planner makes it",
                },
                "inputs": {
                    "type": "object",
                    "description": 'Values that the plan refers to as {"$from": "inputs#/name"}',
                },
                "max_steps": {"type": "integer", "minimum": 1, "maximum": ceiling.max_steps},
                "max_retries": {"type": "integer", "minimum": 0, "maximum": ceiling.max_retries},
            },
            "required": ["task"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "run_id": {"type": "string"},
                "status": {"type": "string", "enum": ["completed", "halted", "cancelled"]},
                "stop_reason": {"type": "string"},
                "answer": {"type": "string"},
                "partial": {"type": "boolean"},
                "detail": {"type": "string"},
                "steps": {"type": "array", "items": _STEP_SCHEMA},
                "spent": {"type": "object"},
            },
            "required": ["run_id", "status", "stop_reason", "answer", "partial", "steps"],
        },
    }


class Reason:
    """Carries out calls of `reason`.

    `model` returns the model client of a domain, or None: then only plans whose arguments are
    all given can be run.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        view: Callable[[str], View],
        model: Callable[[Domain], ModelClient | None],
        ceiling: Limits,
        budget: BudgetLimits,
    ) -> None:
        self._runner = runner
        self._view = view
        self._model = model
        self._ceiling = ceiling
        self._budget = budget

    async def __call__(self, call: Call) -> Result:
        """Run the task in the caller's domain; cancelling the call cancels the run.

        Raises:
            UnknownTarget: The caller's domain is gone.
            Refused: Runs stand inside runs too deep.
        """
        try:
            order = self._order(call)
            report = await self._runner.run(order, _progress(call))
        except ConfigError as error:
            return _refused(error)
        return _result(report)

    def _order(self, call: Call) -> RunOrder:
        arguments = call.arguments
        domain = self._view(call.domain).domain
        limits = self._ceiling
        return RunOrder(
            goal=arguments["task"],
            domain=call.domain,
            plan=_plan(arguments.get("plan")),
            inputs=arguments.get("inputs", {}),
            model=self._model(domain),
            engine=domain.engine or "react",
            limits=replace(
                limits,
                max_steps=min(arguments.get("max_steps", limits.max_steps), limits.max_steps),
                max_retries=min(
                    arguments.get("max_retries", limits.max_retries), limits.max_retries
                ),
            ),
            budget=self._budget,
            principal=call.principal,
            session=replace(call.session, origin="run"),
            deadline=call.deadline,
            depth=call.depth,
            parent_run=call.run_id,
            parent=call.trace,
        )


def _plan(given: object) -> Plan | None:
    if given is None:
        return None
    return plan_from_text(given) if isinstance(given, str) else plan_from_json(given)


def _refused(error: ConfigError) -> Result:
    shown = {"reasons": [error.message], **error.data, "error": error.code}
    raw = make_result(
        text=error.message, structured={**shown, "message": error.message}, is_error=True
    )
    return Result(raw=raw, is_error=True)


def _result(report: RunReport) -> Result:
    """Return the report as a tool's result; a run that brought nothing at all is an error."""
    text = report.answer
    if report.partial:
        said = f"{report.stop_reason.value}: {report.detail}" if report.detail else ""
        text = f"Partial result ({said or report.stop_reason.value}).\n{text}".rstrip()
    failed = report.partial and not report.answer
    raw = make_result(text=text, structured=report.as_json(), is_error=failed)
    return Result(raw=raw, is_error=failed)


def _progress(call: Call) -> Observer | None:
    return _Progress(call.listener) if call.wants_progress else None


class _Progress:
    """Turns what a run tells into the call's notifications of progress."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._count = 0

    async def __call__(self, event: StepEvent) -> None:
        """Tell one event, if it is one for people; progress counts them."""
        message = progress_message(event)
        if message:
            self._count += 1
            params = {"progress": self._count, "message": message}
            await self._listener.notify(Notice(kind=NoticeKind.PROGRESS, params=params))


def progress_message(event: StepEvent) -> str:
    """Return one line for people about an event, empty for events that are not for them."""
    note = event.note
    at = f" {note.step}" if note.step else ""
    again = f" (attempt {note.attempt})" if note.attempt > 1 else ""
    if note.kind is NoteKind.PLAN:
        steps = note.data["plan"]["steps"]
        return f"Plan: {', '.join(step['id'] for step in steps)}"
    if note.kind is NoteKind.VALIDATION and note.data["status"] == VerdictStatus.FAILED:
        return f"Validation{at} failed{again}: {cut(note.text, _MESSAGE)}"
    if note.kind is NoteKind.ACTION:
        return f"Action{at}{again}: {note.text}"
    if note.kind in _FOR_PEOPLE:
        text = " ".join(note.text.split())
        return f"{note.kind.value.capitalize()}{at}{again}: {cut(text, _MESSAGE)}"
    return ""
