"""What a gate asks of a connection, whatever protocol it speaks. Never an implementation."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from thoughtgate_client.values import JsonObject, Progress, Tool, ToolResult

Report = Callable[[Progress], Awaitable[None]]
"""Takes one message of progress; the next is read when it has returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list of tools; `cursor` asks for the next one, None at the end."""

    tools: tuple[Tool, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A call: `seconds` is how long somebody waits for it, `meta` what else is said to the tool."""

    name: str
    arguments: dict[str, Any]
    seconds: float
    report: Report | None = None
    meta: JsonObject = field(default_factory=dict)


class Carrier(Protocol):
    """An open connection to one endpoint. Cancelling the awaiting task cancels what was asked."""

    @property
    def protocol_version(self) -> str:
        """The protocol that both sides agreed on."""
        ...

    @property
    def instructions(self) -> str:
        """What the server says about its use, empty when nothing."""
        ...

    async def page(self, cursor: str | None) -> Page:
        """Return one page of tools, the first without a cursor.

        Raises:
            GateError: It could not be had.
        """
        ...

    async def call(self, wanted: Wanted) -> ToolResult:
        """Call a tool and return its result, failed or not.

        Raises:
            GateError: There is no usable result.
        """
        ...
