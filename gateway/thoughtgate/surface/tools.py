"""Listing and calling tools, for clients of either era over any transport.

Never knows how bytes travel or which era asks: that is given as functions.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from thoughtgate.core.calls import (
    Call,
    Notice,
    NoticeKind,
    Principal,
    Question,
    Session,
    ToolName,
)
from thoughtgate.core.errors import GateError, NotAsked
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.core.traces import SpanContext
from thoughtgate.surface.errors import result_for_models
from thoughtgate.surface.ports import Gateway
from thoughtgate.views import View
from thoughtgate.wire.messages import MessageId
from thoughtgate.wire.methods import (
    encode_notice,
    invalid_params,
    loud_enough,
    read_cursor,
    read_tool_call,
)
from thoughtgate.wire.strict import dumps

Emit = Callable[[bytes], Awaitable[None]]
"""Sends one notification to the caller; returns when there is room for the next."""

WriteList = Callable[[bytes, str | None], bytes]
"""Makes an era's list result of a JSON array and the next cursor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks, where, and which log messages they want."""

    domain: str
    principal: Principal
    session: Session
    log_level: str | None


class Relay:
    """A call's listener: turns notices into the caller's notifications, in order."""

    __slots__ = ("_emit", "_level", "_token")

    def __init__(self, emit: Emit, token: MessageId | None, level: str | None) -> None:
        self._emit = emit
        self._token = token
        self._level = level

    async def notify(self, notice: Notice) -> None:
        """Send one notice, unless the caller did not ask for its kind or level."""
        if notice.kind is NoticeKind.LOG and not loud_enough(notice.params, self._level):
            return
        frame = encode_notice(notice, self._token)
        if frame is not None:
            await self._emit(frame)

    async def ask(self, question: Question) -> bytes:
        """Refuse: nothing that a server could ask for has been declared for this caller."""
        raise NotAsked(message=f"this client does not answer {question.method}")


class ToolDesk:
    """Answers `tools/list` and `tools/call` from the gateway's views and path."""

    def __init__(
        self, gateway: Gateway, *, page_size: int = 100, call_timeout: float = 120.0
    ) -> None:
        self._gateway = gateway
        self._page_size = page_size
        self._call_timeout = call_timeout
        self._pages: dict[tuple[str, Era], _Pages] = {}
        self._prefix = secrets.token_hex(8)
        self._numbers = count(1)

    def view(self, domain: str) -> View:
        """Return what a domain shows now.

        Raises:
            UnknownTarget: No such domain.
        """
        return self._gateway.view(domain)

    def page(self, domain: str, params: JsonObject, write: WriteList, era: Era) -> bytes:
        """Return one page of a domain's tools; pages are encoded once per revision and era.

        Raises:
            UnknownTarget: No such domain.
            BadMessage: A cursor that we did not give, or gave before the list changed.
        """
        cursor, view = read_cursor(params), self._gateway.view(domain)
        pages = self._pages.get((domain, era))
        if pages is None or pages.revision != view.revision:
            shown = [entry.shown_to(era) for entry in view.entries]
            pages = _write_pages(view.revision, shown, self._page_size, write)
            self._pages[domain, era] = pages
        page = pages.results.get(cursor)
        if page is None:
            raise invalid_params(message="the cursor is unknown or stale; list from the start")
        return page

    async def call(
        self, params: JsonObject, asker: Asker, emit: Emit, trace: SpanContext | None
    ) -> bytes:
        """Return a tool's result; `trace` is the parent when `_meta` names none.

        Raises:
            GateError: What is an error of the protocol rather than a result.
        """
        asked = read_tool_call(params)
        token, level = asked.meta.progress_token, asker.log_level
        call = Call(
            id=f"{self._prefix}-{next(self._numbers)}",
            target=ToolName(domain=asker.domain, name=asked.name),
            arguments=asked.arguments,
            principal=asker.principal,
            session=asker.session,
            domain=asker.domain,
            deadline=asyncio.get_running_loop().time() + self._call_timeout,
            listener=Relay(emit, token, level),
            meta=asked.meta.kept,
            trace=asked.meta.trace or trace,
            log_level=level,
            wants_progress=token is not None,
        )
        try:
            return (await self._gateway.call(call)).raw
        except GateError as error:
            shown = result_for_models(error)
            if shown is None:
                raise
            return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pages:
    revision: str
    results: Mapping[str | None, bytes]


def _write_pages(revision: str, shown: Sequence[JsonObject], size: int, write: WriteList) -> _Pages:
    """Write every page; a cursor is bound to the revision, so a stale one is not found."""
    seal = revision.rpartition(":")[2][:16]
    starts = range(0, max(len(shown), 1), size)
    cursors = [None, *(f"{seal}-{start}" for start in starts[1:]), None]
    return _Pages(
        revision=revision,
        results={
            cursors[number]: write(_array(shown[start : start + size]), cursors[number + 1])
            for number, start in enumerate(starts)
        },
    )


def _array(shown: Iterable[JsonObject]) -> bytes:
    return b"[%b]" % b",".join(map(dumps, shown))
