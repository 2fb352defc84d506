"""The runner: makes runs, one driver each, and is the last to hear of what goes wrong in one.

Never decides what a run does next; engines do. A bug in a run ends that run, not the gateway.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex
from typing import Any

from thoughtgate.core.errors import ConfigError, Refused
from thoughtgate.core.ports import Next, Recorder
from thoughtgate.engines.contract import (
    Engine,
    Finish,
    Halt,
    Limits,
    Note,
    NoteKind,
    StopReason,
    Task,
)
from thoughtgate.runs.budget import Budget
from thoughtgate.runs.drive import FAULT, Drive
from thoughtgate.runs.hands import Kit, RunHands
from thoughtgate.runs.orders import Observer, RunOrder, RunReport
from thoughtgate.runs.spans import OpenSpan, Spans
from thoughtgate.runs.telling import Telling
from thoughtgate.runs.tools import Toolset, toolset
from thoughtgate.telemetry import names
from thoughtgate.views import View

logger = logging.getLogger(__name__)

_PARTING = 1.0
"""Seconds that an observer gets to hear of the end of a cancelled run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """Limits of this gateway for every run.

    `hidden` are tools, as (server, name), that runs do not see: those that start runs. `fan_out`
    bounds the tool calls that one run has under way; `capture` is how many bytes of content a
    span keeps, 0 for none; `retry_delay` is the wait before a second attempt, doubling.
    """

    hidden: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    max_depth: int = 3
    fan_out: int = 8
    capture: int = 0
    retry_delay: float = 0.2


class Runner:
    """Makes runs on one event loop. `call` is the path that clients' calls take, too."""

    def __init__(
        self,
        *,
        call: Next,
        view: Callable[[str], View],
        engines: Mapping[str, Engine[Any]],
        settings: RunnerSettings,
        recorder: Recorder | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._call = call
        self._view = view
        self._engines = engines
        self._settings = settings
        self._recorder = recorder
        self._sleep = sleep
        self._budgets: dict[str, Budget] = {}

    async def run(self, order: RunOrder, observer: Observer | None = None) -> RunReport:
        """Make one run and return how it went; a run that halts is a report, not an error.

        Raises:
            ConfigError: The plan is refused, or the engine is unknown; nothing was spent.
            Refused: Runs stand inside runs too deep.
            UnknownTarget: There is no such domain.
        """
        engine = self._engines.get(order.engine)
        if engine is None:
            raise ConfigError(message=f"there is no engine {order.engine[:40]}")
        if order.depth > self._settings.max_depth:
            raise Refused(message=f"runs are nested deeper than {self._settings.max_depth}")
        view = self._view(order.domain)
        tools = toolset(view, self._settings.hidden)
        run_id = f"run-{token_hex(8)}"
        budget = Budget(order.budget, self._budgets.get(order.parent_run))
        self._budgets[run_id] = budget
        try:
            kit = self._kit(order, run_id, tools, budget, observer)
            return await _Run(kit, engine, view.instructions).report()
        finally:
            del self._budgets[run_id]

    def _kit(
        self,
        order: RunOrder,
        run_id: str,
        tools: Toolset,
        budget: Budget,
        observer: Observer | None,
    ) -> "_Prepared":
        settings = self._settings
        spans = Spans(self._recorder, capture=settings.capture)
        root = spans.begin(names.agent_span(order.engine), order.parent, _about(order, run_id))
        spans.keep(root, names.INPUT_VALUE, order.goal)
        telling = Telling(
            run_id=run_id, engine=order.engine, spans=spans, root=root, observer=observer
        )
        now = asyncio.get_running_loop().time()
        kit = Kit(
            run_id=run_id,
            order=order,
            tools=tools,
            call=self._call,
            budget=budget,
            spans=spans,
            telling=telling,
            root=root.context,
            deadline=min(order.deadline, now + order.budget.seconds),
            fan_out=settings.fan_out,
            retry_delay=settings.retry_delay,
            sleep=self._sleep,
        )
        return _Prepared(kit=kit, root=root)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    kit: Kit
    root: OpenSpan


class _Run:
    """One run from its order to its report."""

    def __init__(self, prepared: _Prepared, engine: Engine[Any], instructions: str) -> None:
        self._kit = prepared.kit
        self._root = prepared.root
        self._engine = engine
        self._instructions = instructions
        self._drive = Drive(
            engine=engine, hands=RunHands(prepared.kit), deadline=prepared.kit.deadline
        )

    async def report(self) -> RunReport:
        """Drive the run and return its report; a cancelled run is told, then raised."""
        order = self._kit.order
        task = Task(
            goal=order.goal,
            tools=self._kit.tools.tools,
            plan=order.plan,
            inputs=order.inputs,
            has_model=order.model is not None,
            instructions=self._instructions,
        )
        try:
            last = await self._driven(task, order.limits)
        except asyncio.CancelledError:
            await self._part()
            raise
        except ConfigError as error:
            self._kit.spans.end(self._root, error=error.code)
            raise
        return await self._end(last)

    async def _driven(self, task: Task, limits: Limits) -> Finish | Halt:
        """Drive to the end; a bug is the end, and the engine still says what is in doubt."""
        for way in (partial(self._drive.run, task, limits), self._drive.failed):
            try:
                return await way()
            except ConfigError:
                raise
            except Exception:
                logger.exception("run failed", extra={"run_id": self._kit.run_id})
        return Halt(reason=StopReason.INTERNAL_ERROR, detail=FAULT)

    async def _part(self) -> None:
        """Tell the end of a cancelled run to an observer that still listens."""
        try:
            async with asyncio.timeout(_PARTING):
                await self._end(await self._drive.cancelled())
        except TimeoutError:
            logger.warning("nobody heard the end of a run", extra={"run_id": self._kit.run_id})

    async def _end(self, last: Finish | Halt) -> RunReport:
        kit = self._kit
        kit.telling.give_up()
        state = self._drive.state
        report = RunReport(
            run_id=kit.run_id,
            stop_reason=last.reason if isinstance(last, Halt) else StopReason.FINAL_ANSWER,
            answer=last.answer,
            steps=() if state is None else self._engine.report(state),
            spent=kit.budget.spent,
            detail=last.detail if isinstance(last, Halt) else "",
            trace_id=kit.root.trace_id,
        )
        self._close_root(report)
        note = Note(kind=NoteKind.FINISHED, text=report.answer, data=report.as_json())
        await kit.telling.tell(note, report)
        return report

    def _close_root(self, report: RunReport) -> None:
        root, spent = self._root, report.spent
        root.attributes[names.STOP_REASON] = report.stop_reason.value
        root.attributes[names.PARTIAL] = report.partial
        if spent.model_calls:
            root.attributes[names.GEN_AI_INPUT_TOKENS] = spent.input_tokens
            root.attributes[names.GEN_AI_OUTPUT_TOKENS] = spent.output_tokens
        self._kit.spans.keep(root, names.OUTPUT_VALUE, report.answer)
        cancelled = report.stop_reason is StopReason.CANCELLED
        failed = report.partial and not cancelled
        error = report.stop_reason.value if failed else None
        self._kit.spans.end(root, error=error, cancelled=cancelled)


def _about(order: RunOrder, run_id: str) -> dict[str, object]:
    return {
        names.KIND: names.KIND_RUN,
        names.OPENINFERENCE_KIND: names.KIND_AGENT,
        names.GEN_AI_OPERATION: names.OPERATION_INVOKE_AGENT,
        names.GEN_AI_AGENT_NAME: order.engine,
        names.ENGINE: order.engine,
        names.RUN_ID: run_id,
        names.DOMAIN: order.domain,
        names.PRINCIPAL: order.principal.id,
    }
