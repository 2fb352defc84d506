"""A call, who makes it, and what comes back.

Never knows how bytes travel: `surface` decodes into these values and back.
"""

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.core.tools import Item, Kind, Tool
from thoughtgate.core.traces import SpanContext

_FOUND = (Tool, Item)
_LABEL = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who is asking. `id` is stable and opaque; `name` is for people."""

    id: str
    name: str = ""
    scopes: frozenset[str] = frozenset()


LOCAL = Principal(id="local", name="local user")
"""The one principal of a gateway on loopback without authentication."""


class NoticeKind(StrEnum):
    """What a notification is about; `other` ones are relayed under their own method."""

    PROGRESS = "progress"
    LOG = "log"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notification of a server's, for one caller.

    `params` is the notification's `params` object as it came, without `progressToken`. `method`
    and `server`, who sent it, are given for `other` ones.
    """

    kind: NoticeKind
    params: JsonObject
    method: str = ""
    server: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a server asks the caller for: elicitation, sampling or roots.

    `method` is a request of the handshake era, such as `elicitation/create`; the stateless era
    asks for the same by the same names. `server` is who asks.
    """

    method: str
    params: JsonObject
    server: str = ""


class Listener(Protocol):
    """The caller's side while a call runs, or for as long as a session lasts."""

    async def notify(self, notice: Notice) -> None:
        """Deliver one notification, in order; returns when the caller's side has room again."""
        ...

    async def ask(self, question: Question) -> bytes:
        """Return the caller's answer: the JSON of the result object, strictly checked.

        Cancelling the awaiting task takes the question back.

        Raises:
            CallerReplied: The caller answered with an error, to be relayed as it is.
            NotAsked: This caller cannot be asked, or did not answer in time.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A client's connection as a call sees it.

    `id` is empty in the stateless era. `version` is the protocol revision. `client` is the
    client's `clientInfo` object, `capabilities` what it declared, extensions too: nothing else is
    declared upstream for it. `origin` says which face it came through: `mcp`, `grpc`, `cli`, `run`.
    `peer` is the client outside of any call, None where it cannot be reached then. `label` stands
    for the session in rows and spans: whoever reads those must not be able to take the session up,
    as its id would let them.
    """

    id: str
    era: Era
    version: str
    client: JsonObject
    origin: str = "mcp"
    capabilities: JsonObject = field(default_factory=dict)
    peer: Listener | None = field(default=None, compare=False, repr=False)
    label: str = field(default="", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Make the label, once for all calls of the session."""
        if self.id:
            digest = hashlib.sha256(self.id.encode()).hexdigest()
            object.__setattr__(self, "label", digest[:_LABEL])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolName:
    """A tool as a client names it, before it is resolved in its domain."""

    domain: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemName:
    """Something else than a tool, as a client names it: a prompt's name, a URI, a method."""

    domain: str
    kind: Kind
    name: str


class Source(StrEnum):
    """Who chose the arguments."""

    CLIENT = "client"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A call that a server answered by asking for input, with the answers, to be sent again.

    `state` is the server's own `requestState`, None when it gave none; `answers` are result
    objects by the server's keys (`inputResponses`).
    """

    answers: JsonObject
    state: str | None = None


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a tool, or one request for another item of a server.

    `id` is ours and unique; `target` becomes a `Tool` or an `Item` when the call is resolved, and
    then `advertised` keeps the name that the client used; `arguments` is a JSON object, its shape
    given by the kind of target (see `Kind`); `deadline` is on the event loop's clock, in seconds,
    and does not count the time in which the caller is asked something; `meta` is the request's
    `_meta` without the keys that belong to a hop (`io.modelcontextprotocol/*`, `progressToken`,
    trace context); `extra` are members of the params that we do not know, relayed as they are;
    `trace` is the span that the next hop shall have as parent, None when nobody traces; `log_level`
    is the lowest level of log messages that the caller wants, None for none; `wants_progress` says
    that the caller gave a progress token; `listener` is the caller while the call runs; `depth`
    counts how many calls stand around this one; `idempotency_key` is sent to servers that take
    one; `retry` is given when the server has asked for input before; `meant` is what the target
    stands for in its domain, once a stage above `resolved` has looked it up.

    It has no slots: `calls.altered` copies it whole, several times for each call.
    """

    id: str
    target: ToolName | ItemName | Tool | Item
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
    extra: JsonObject = field(default_factory=dict)
    retry: Retry | None = None
    meant: Tool | Item | None = None

    @property
    def tool(self) -> Tool:
        """Return the resolved tool; only stages below `resolved` may ask, and only for tools."""
        if isinstance(self.target, Tool):
            return self.target
        raise TypeError(self.target)

    @property
    def found(self) -> Tool | Item:
        """Return what the call was resolved to; only stages below `resolved` may ask."""
        if isinstance(self.target, _FOUND):
            return self.target
        raise TypeError(self.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a server returned: the MCP result object.

    `raw` is the object's JSON as UTF-8 bytes, exactly as the server sent it (strictly checked);
    look inside with `thoughtgate.wire`. `final` is False for an `input_required` result, which
    asks the caller for something. `notes` are remarks of our own stages, such as `repaired:/x` or
    `invalid_result`, for audit and trace. `parsed` is what the sender has read, and what it spells.
    """

    raw: bytes
    is_error: bool = False
    final: bool = True
    notes: tuple[str, ...] = ()
    parsed: tuple[bytes, JsonObject] | None = field(default=None, compare=False, repr=False)

    @property
    def value(self) -> JsonObject | None:
        """Return what `raw` spells, None when nobody has read it, or it is another one by now."""
        return self.parsed[1] if self.parsed is not None and self.parsed[0] is self.raw else None
