"""One request to the fake server while it is served, and how the server was told to behave.

Never decides what a tool does.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.testing.faults import CALLS, Faults
from thoughtgate.wire import handshake
from thoughtgate.wire.messages import (
    BadMessage,
    Failure,
    MessageId,
    Reply,
    Request,
    decode,
    encode_failure,
    encode_notification,
    encode_reply,
)
from thoughtgate.wire.strict import dumps


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """How the server behaves as a whole.

    `pages` tools stand on each page of a list (0: all on one); `loop` repeats a cursor; `deaf`
    answers nothing, `silent_probe` only `server/discover`; `endless` never ends its list;
    `only_initialize` ends the process at any other first request; `journal` is a file that gets
    the name of every tool that is called.
    """

    eras: frozenset[Era] = frozenset(Era)
    pages: int = 0
    loop: bool = False
    deaf: bool = False
    silent_probe: bool = False
    endless: bool = False
    only_initialize: bool = False
    journal: str = ""
    offers: bool = False
    broken_prompts: bool = False
    no_following: bool = False


class Ill(Protocol):
    """What only a server that misbehaves does with what carries its messages."""

    async def event(self, event: bytes) -> None:
        """Send what is no message on a stream of events; a blank line where there is none."""
        ...

    async def refuse(self, status: int, location: str = "") -> bool:
        """Answer with an HTTP status; say no where there is none."""
        ...

    async def freeze(self) -> None:
        """Neither read nor write any more, and stay open."""
        ...

    async def end(self, code: int | None = None) -> bool:
        """End an answer without a result, or by a `code` the connection; say no where it cannot."""
        ...


class Out(Ill, Protocol):
    """Where a turn's messages go; `lasting` when it stays open after the reply.

    `session` is the session that it belongs to, empty where there is none.
    """

    lasting: bool
    session: str

    async def send(self, data: bytes) -> None:
        """Send one message."""
        ...

    def framed(self, data: bytes) -> bytes:
        """Return a message's bytes as they would be sent now; who calls it sends them."""
        ...

    async def raw(self, *parts: bytes) -> None:
        """Send bytes as they are, each part in a write of its own."""
        ...

    def cut(self, code: int) -> None:
        """Break off: end the process with an exit code or a negated signal, cut a connection."""
        ...


class Talk(Protocol):
    """The server, as it speaks of its own accord."""

    async def ask(self, method: str, out: Out, params: JsonObject) -> JsonObject:
        """Send a request of the server's own and return what came back."""
        ...

    async def ask_only(self, method: str, out: Out) -> MessageId:
        """Send a request of the server's own and return its id."""
        ...

    async def standing(self, session: str) -> Out:
        """Return where a session hears what belongs to no call, as soon as it listens."""
        ...

    async def announce(self, out: Out, method: str, params: JsonObject) -> None:
        """Send a notification that belongs to no call."""
        ...


class Host(Talk, Protocol):
    """The server, as its tools see it; `seen` is every message that came.

    `memory` and `greetings` are by session, `later` are answers to questions outside of calls,
    which `background` tasks ask. `sessions` are those that are known over HTTP.
    """

    script: Script
    faults: Faults
    sessions: set[str]
    seen: list[JsonObject]
    memory: dict[str, JsonObject]
    greetings: dict[str, JsonObject]
    later: list[JsonObject]
    background: set[asyncio.Task[None]]

    async def change(self) -> None:
        """Offer one more tool and say so."""
        ...

    async def tell_changed(self) -> None:
        """Say that the tools changed."""
        ...

    async def update(self, uri: str, follows: str) -> None:
        """Tell of a changed resource whoever follows it, or `follows` when that is given."""
        ...


@dataclass(slots=True, kw_only=True)
class Turn:
    """One request while it is served."""

    server: Host
    request: Request
    era: Era
    out: Out
    headers: Mapping[str, str] = field(default_factory=dict)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[Any] | None = field(default_factory=asyncio.current_task)

    @property
    def session(self) -> str:
        """Return the session that the request came in."""
        return self.headers.get(handshake.SESSION_HEADER, "") or self.out.session

    @property
    def tool(self) -> str:
        """Return the tool that is called, empty when none is."""
        return str(self.request.params.get("name")) if self.request.method == CALLS else ""

    @property
    def arguments(self) -> JsonObject:
        """Return the arguments of the tool."""
        arguments = self.request.params.get("arguments")
        return arguments if isinstance(arguments, dict) else {}

    @property
    def meta(self) -> JsonObject:
        """Return the request's `_meta`."""
        meta = self.request.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    async def reply(self, result: Mapping[str, Any]) -> None:
        """Send a result, with the marks of its era."""
        marked = dict(result)
        if self.era is Era.STATELESS:
            marked.setdefault("resultType", "complete")
        await self.out.send(encode_reply(self.request.id, dumps(marked)))

    async def fail(self, code: int, message: str, data: object = None) -> None:
        """Send an error."""
        await self.out.send(encode_failure(self.request.id, code, message, data))

    async def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification on the request's stream."""
        await self.out.send(encode_notification(method, params))

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request of the server's own and return what came back."""
        return await self.server.ask(method, self.out, params)


def reply_of(data: bytes) -> Reply | Failure | None:
    """Return the message when it is a reply; a broken one counts as one."""
    try:
        message = decode(data)
    except BadMessage:
        return Reply(id=0, result=b"{}", value={})
    return message if isinstance(message, Reply | Failure) else None
