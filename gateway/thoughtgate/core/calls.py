"""A call, who makes it, and what comes back.

Never knows how bytes travel: `surface` decodes into these values and back.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.core.tools import Tool
from thoughtgate.core.traces import SpanContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who is asking. `id` is stable and opaque; `name` is for people."""

    id: str
    name: str = ""
    scopes: frozenset[str] = frozenset()


LOCAL = Principal(id="local", name="local user")
"""The one principal of a gateway on loopback without authentication."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A client's connection as a call sees it.

    `id` is empty in the stateless era. `version` is the protocol revision. `client` is the
    client's `clientInfo` object. `origin` says which face it came through: `mcp`, `cli`, `run`.
    """

    id: str
    era: Era
    version: str
    client: JsonObject
    origin: str = "mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolName:
    """A tool as a client names it, before it is resolved in its domain."""

    domain: str
    name: str


class Source(StrEnum):
    """Who chose the arguments."""

    CLIENT = "client"
    ENGINE = "engine"


class NoticeKind(StrEnum):
    """What a notification during a call is about."""

    PROGRESS = "progress"
    LOG = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notification that belongs to one call.

    `params` is the notification's `params` object as it came, without `progressToken`.
    """

    kind: NoticeKind
    params: JsonObject


class Listener(Protocol):
    """Takes the notifications of one call, in order, while it runs."""

    async def notify(self, notice: Notice) -> None:
        """Deliver one notification; returns when the client's side has room again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of one tool.

    `id` is ours and unique; `target` becomes a `Tool` when the call is resolved, and then
    `advertised` keeps the name that the client used; `arguments` is a JSON object; `deadline` is
    on the event loop's clock, in seconds; `meta` is the request's `_meta` without the keys that
    belong to a hop (`io.modelcontextprotocol/*`, `progressToken`, trace context); `trace` is the
    span that the next hop shall have as parent, None when nobody traces; `log_level` is the
    lowest level of log messages that the caller wants, None for none; `wants_progress` says that
    the caller gave a progress token; `listener` takes notifications while the call runs; `depth`
    counts how many calls stand around this one; `idempotency_key` is sent to servers that take one.
    """

    id: str
    target: ToolName | Tool
    arguments: JsonObject
    principal: Principal
    session: Session
    domain: str
    deadline: float
    listener: Listener
    meta: JsonObject
    advertised: str = ""
    trace: SpanContext | None = None
    log_level: str | None = None
    wants_progress: bool = False
    source: Source = Source.CLIENT
    depth: int = 0
    run_id: str = ""
    idempotency_key: str = ""

    @property
    def tool(self) -> Tool:
        """Return the resolved tool; only stages below `resolved` may ask."""
        if isinstance(self.target, Tool):
            return self.target
        raise TypeError(self.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool returned: the MCP result object.

    `raw` is the object's JSON as UTF-8 bytes, exactly as the server sent it (strictly checked);
    look inside with `thoughtgate.wire`. `notes` are remarks of our own stages, such as
    `repaired:/x` or `invalid_result`, for audit and trace.
    """

    raw: bytes
    is_error: bool = False
    notes: tuple[str, ...] = ()
