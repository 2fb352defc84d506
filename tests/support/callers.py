"""Clients as an upstream sees them: what they can, what they answer, what they were told."""

import asyncio
import json
from dataclasses import replace
from typing import Any

from tests.support.upstreams import Rig, make_call
from tests.support.waiting import within
from thoughtgate.core.calls import LOCAL, Call, Notice, Principal, Question, Session
from thoughtgate.core.errors import GateError, NotAsked
from thoughtgate.core.servers import Era
from thoughtgate.core.tools import Item, Kind

ABLE: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {"listChanged": True}}


class Client:
    """One client with a session of its own; `answers` are by method, errors are raised."""

    def __init__(
        self,
        id_: str = "s1",
        *,
        able: dict[str, Any] | None = None,
        answers: dict[str, Any] | None = None,
        principal: Principal = LOCAL,
        reachable: bool = True,
        **session: Any,
    ) -> None:
        self.questions: list[Question] = []
        self.notices: list[Notice] = []
        self.gate: asyncio.Event | None = None
        self.taken_back = 0
        self._answers = answers or {}
        self._principal = principal
        fields: dict[str, Any] = {"era": Era.HANDSHAKE, "version": "2025-11-25", **session}
        self.session = Session(
            id=id_,
            client={"name": "c"},
            capabilities=ABLE if able is None else able,
            peer=self if reachable else None,
            **fields,
        )

    async def notify(self, notice: Notice) -> None:
        self.notices.append(notice)

    async def ask(self, question: Question) -> bytes:
        self.questions.append(question)
        if self.gate is not None:
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.taken_back += 1
                raise
        answer = self._answers.get(question.method, NotAsked(message="nobody is at home"))
        if isinstance(answer, GateError):
            raise answer
        return json.dumps(answer).encode()

    @property
    def told(self) -> list[tuple[str, Any]]:
        """Return the notifications under their own method."""
        return [(notice.method, notice.params) for notice in self.notices]

    def make(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        timeout: float = 5.0,
        **fields: Any,
    ) -> Call:
        mine: dict[str, Any] = {
            "session": self.session, "principal": self._principal, "listener": self
        }  # fmt: skip
        return replace(make_call(name, arguments, timeout=timeout), **{**mine, **fields})

    async def call(
        self, made: Rig, name: str, arguments: dict[str, Any] | None = None, **fields: Any
    ) -> Any:
        """Call a tool and return the structured content of its result."""
        result = await within(made.upstreams.send(self.make(name, arguments, **fields)))
        return json.loads(result.raw).get("structuredContent")

    async def ask_for(
        self, made: Rig, kind: Kind, name: str, arguments: dict[str, Any] | None = None, **more: Any
    ) -> Any:
        """Ask for something else than a tool and return the result."""
        target = Item(kind=kind, server="peer", name=name)
        call = self.make("", arguments, target=target, **more)
        return json.loads((await within(made.upstreams.send(call))).raw)
