"""A gateway over a scripted server, with spans and audit rows in lists."""

from dataclasses import dataclass, field, replace

import pytest

from thoughtgate.calls.gateway import Gateway
from thoughtgate.calls.path import Equipment
from thoughtgate.catalog import admit
from thoughtgate.core.calls import Result
from thoughtgate.core.domains import Domain
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.tools import Effect
from thoughtgate.testing.recorder import ListAuditLog, ListRecorder
from thoughtgate.testing.sender import ScriptedSender
from thoughtgate.testing.values import make_call, make_definition, make_listing, make_server

FLIGHT = make_definition(
    "book",
    inputSchema={
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "seat": {"type": "integer"},
            "meal": {"type": ["string", "null"]},
            "agency": {"type": "string", "enum": ["top-secret-agency"]},
        },
        "required": ["to"],
        "additionalProperties": False,
    },
)
WEATHER = make_definition(
    "weather",
    outputSchema={
        "type": "object",
        "properties": {"degrees": {"type": "number"}},
        "required": ["degrees"],
    },
)


@dataclass(slots=True)
class Bench:
    """A gateway and all that stands around it."""

    sender: ScriptedSender = field(default_factory=ScriptedSender)
    recorder: ListRecorder = field(default_factory=ListRecorder)
    audit: ListAuditLog = field(default_factory=ListAuditLog)
    domains: tuple[Domain, ...] = (Domain(name="default"),)
    extra: dict[str, JsonValue] = field(default_factory=dict)
    _gateway: Gateway | None = None

    @property
    def gateway(self) -> Gateway:
        """Return the gateway, made when it is first asked for."""
        if self._gateway is None:
            equipment = Equipment(sender=self.sender, audit=self.audit, recorder=self.recorder)
            self._gateway = Gateway(replace(equipment, **self.extra), domains=self.domains)
        return self._gateway

    def offer(
        self,
        server: str,
        *tools: JsonValue,
        effects: dict[str, Effect] | None = None,
        **fields: JsonValue,
    ) -> None:
        """Let a server offer these tools and no others."""
        entry = make_server(server, **fields)
        part = admit(
            make_listing(server, *tools),
            server=entry,
            effects=effects or {},
            reject=lambda schema: None,
        )
        self.gateway.update(part, entry)

    async def call(
        self, name: str, arguments: JsonObject | None = None, **fields: JsonValue
    ) -> Result:
        """Call a tool as a client of the default domain."""
        return await self.gateway.call(make_call(name, arguments, **fields))


@pytest.fixture
def bench() -> Bench:
    return Bench()
