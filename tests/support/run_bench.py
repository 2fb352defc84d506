"""Runs over a real gateway: the whole path of every call, with tools that compute in memory."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from thoughtgate.calls.gateway import Gateway
from thoughtgate.calls.path import Equipment
from thoughtgate.catalog import admit
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.domains import Domain
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.tools import Effect
from thoughtgate.engines.contract import NoteKind
from thoughtgate.engines.react import React
from thoughtgate.runs.orders import RunOrder, RunReport, StepEvent
from thoughtgate.runs.runner import Runner, RunnerSettings
from thoughtgate.testing.recorder import ListAuditLog, ListRecorder
from thoughtgate.testing.sender import Answer, ScriptedSender
from thoughtgate.testing.values import make_definition, make_listing, make_server
from thoughtgate.wire.results import make_result

LOGS: Mapping[str, tuple[str, ...]] = {
    "a.log": ("Timeout", "DiskFull", "Timeout"),
    "b.log": ("连接被拒绝", "Timeout"),
    "c.log": (),
}

_STRINGS: JsonObject = {"type": "array", "items": {"type": "string"}}


def _object(required: Mapping[str, JsonValue]) -> JsonObject:
    return {
        "type": "object",
        "properties": dict(required),
        "required": list(required),
        "additionalProperties": False,
    }


TOOLS: Mapping[str, tuple[Effect, JsonObject]] = {
    "find": (
        Effect.READ,
        make_definition("find", inputSchema=_object({}), outputSchema=_object({"files": _STRINGS})),
    ),
    "classify": (
        Effect.READ,
        make_definition(
            "classify",
            inputSchema=_object({"path": {"type": "string"}}),
            outputSchema=_object({"types": _STRINGS}),
        ),
    ),
    "count": (
        Effect.READ,
        make_definition(
            "count",
            inputSchema=_object({"types": _STRINGS}),
            outputSchema=_object({"counts": {"type": "object"}}),
        ),
    ),
    "send": (
        Effect.WRITE,
        make_definition("send", inputSchema=_object({"text": {"type": "string"}})),
    ),
}


def result(structured: JsonValue) -> Result:
    """Return a result with structured content."""
    return Result(raw=make_result(text="ok", structured=structured))


def failed(text: str) -> Result:
    """Return a result that says it failed."""
    return Result(raw=make_result(text=text, is_error=True), is_error=True)


@dataclass(slots=True)
class RunBench:
    """A gateway with four tools over `LOGS`, and a runner on its path."""

    sender: ScriptedSender = field(default_factory=ScriptedSender)
    recorder: ListRecorder = field(default_factory=ListRecorder)
    audit: ListAuditLog = field(default_factory=ListAuditLog)
    settings: RunnerSettings = field(default_factory=RunnerSettings)
    engine: React = field(default_factory=React)
    capture: int = 0
    events: list[StepEvent] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    gateway: Gateway = field(init=False)
    runner: Runner = field(init=False)

    def __post_init__(self) -> None:
        """Build the gateway and the runner."""
        answers: dict[str, Answer] = {
            "find": result({"files": list(LOGS)}),
            "classify": self._classify,
            "count": self._count,
            "send": self._send,
        }
        self.sender.answers |= answers
        equipment = Equipment(
            sender=self.sender, audit=self.audit, recorder=self.recorder, capture=self.capture
        )
        self.gateway = Gateway(equipment, domains=(Domain(name="default", engine="react"),))
        server = make_server("logs")
        part = admit(
            make_listing("logs", *(definition for _, definition in TOOLS.values())),
            server=server,
            effects={name: effect for name, (effect, _) in TOOLS.items()},
            reject=lambda _: None,
        )
        self.gateway.update(part, server)
        self.runner = Runner(
            call=self.gateway.call,
            view=self.gateway.view,
            engines={"react": self.engine},
            settings=replace(self.settings, capture=self.capture),
            recorder=self.recorder,
            sleep=self._sleep,
        )

    async def run(self, **fields: JsonValue) -> RunReport:
        """Make a run in the default domain."""
        order = RunOrder(**{"goal": "count the errors", "domain": "default", **fields})
        return await self.runner.run(order, self.events.append)

    def told(self, kind: NoteKind) -> list[str]:
        """Return the texts of the events of one kind."""
        return [event.note.text for event in self.events if event.note.kind is kind]

    def sent(self) -> list[str]:
        """Return the own names of the tools that were called."""
        return [call.tool.name for call in self.sender.sent]

    async def _classify(self, call: Call) -> Result:
        return result({"types": list(LOGS[call.arguments["path"]])})

    async def _count(self, call: Call) -> Result:
        return result({"counts": dict(Counter(call.arguments["types"]))})

    async def _send(self, call: Call) -> Result:
        self.messages.append(call.arguments["text"])
        return result({"sent": True})

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


class Gatekeeper:
    """A tool that says when it was reached and answers when it is let."""

    def __init__(self, answer: Callable[[Call], Result]) -> None:
        self._answer = answer
        self.reached = asyncio.Event()
        self.let = asyncio.Event()
        self.cancelled = False

    async def __call__(self, call: Call) -> Result:
        """Answer once it is let."""
        self.reached.set()
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return self._answer(call)
