"""The caller of one call while it runs, and the client of a session at any other time.

Never sends what the client did not ask for: log messages below its level, progress without token.
"""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from thoughtgate.core.calls import Listener, Notice, NoticeKind, Question
from thoughtgate.core.errors import GateError, NotAsked
from thoughtgate.core.traces import SpanContext
from thoughtgate.surface.asking import Asks, Emit
from thoughtgate.surface.mailbox import Mailbox
from thoughtgate.views import View
from thoughtgate.wire.messages import MessageId
from thoughtgate.wire.methods import RESOURCE_UPDATED, encode_notice, loud_enough

WAIT: Final = 5.0
"""Seconds that a question may wait for the client to open a stream."""

Look = Callable[[], View]
"""Returns what the client's domain shows now."""


class Asking(Protocol):
    """Asks one caller, by messages of its era or by results."""

    async def ask(self, question: Question, emit: Emit, owner: object) -> bytes:
        """Return the caller's answer; see `Listener.ask`. `owner` is who asks."""
        ...

    async def retract(self, owner: object) -> None:
        """Take back every question of one asker whose call is over."""
        ...


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """How a caller is reached: `emit` sends a message, `asks` is None when it cannot be asked.

    `trace` is the parent span when the request itself names none; `lasting` takes what a
    subscription brings, for as long as that lasts.
    """

    emit: Emit
    asks: Asking | None = None
    trace: SpanContext | None = None
    lasting: Listener | None = None


class Relay(msgspec.Struct, eq=False):
    """A call's listener: turns notices and questions into messages to the caller, in order."""

    _line: Line
    _token: MessageId | None
    _level: str | None
    _look: Look
    asked: bool = False

    async def notify(self, notice: Notice) -> None:
        """Send one notice, unless the caller did not ask for its kind or level."""
        if notice.kind is NoticeKind.LOG and not loud_enough(notice.params, self._level):
            return
        frame = encode_notice(shown(notice, self._look), self._token)
        if frame is not None:
            await self._line.emit(frame)

    async def ask(self, question: Question) -> bytes:
        """Return the caller's answer.

        Raises:
            CallerReplied: It answered with an error.
            NotAsked: It cannot be asked this, or did not answer in time.
        """
        if self._line.asks is None:
            raise NotAsked(message=f"this client cannot be asked for {question.method[:80]}")
        self.asked = True
        return await self._line.asks.ask(question, self._line.emit, self)

    async def close(self) -> None:
        """Take back what was asked and is not answered yet."""
        if self.asked and self._line.asks is not None:
            await self._line.asks.retract(self)


class Peer:
    """A session's client outside of its calls; `level` is the lowest log level that it wants."""

    __slots__ = ("_asks", "_look", "_mailbox", "level")

    def __init__(self, mailbox: Mailbox, asks: Asks, look: Look, level: str | None) -> None:
        self.level = level
        self._mailbox = mailbox
        self._asks = asks
        self._look = look

    async def notify(self, notice: Notice) -> None:
        """Put one notice where the client's stream takes it."""
        if notice.kind is NoticeKind.LOG and not loud_enough(notice.params, self.level):
            return
        frame = encode_notice(shown(notice, self._look), None)
        if frame is not None:
            self._mailbox.post(frame)

    async def ask(self, question: Question) -> bytes:
        """Return the client's answer.

        Raises:
            CallerReplied: It answered with an error.
            NotAsked: It has no stream open, cannot be asked this, or did not answer in time.
        """
        if not await self._mailbox.attended(WAIT):
            raise NotAsked(message=f"the client has no stream open to be asked {question.method}")
        return await self._asks.ask(question, self._post, self)

    async def _post(self, frame: bytes) -> None:
        self._mailbox.post(frame)


def shown(notice: Notice, look: Look) -> Notice:
    """Return a notice with the URI of a resource as this client knows it."""
    uri = notice.params.get("uri")
    if notice.method != RESOURCE_UPDATED or type(uri) is not str:
        return notice
    try:
        offered = look().offered
    except GateError:  # the domain is gone: nobody knows it by another name
        return notice
    params = {**notice.params, "uri": offered.shown_uri(notice.server, uri)}
    return Notice(kind=notice.kind, params=params, method=notice.method, server=notice.server)
