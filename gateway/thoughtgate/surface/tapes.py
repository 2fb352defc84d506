"""What was sent on the streams of sessions, kept for a while: a client that lost one goes on there.

Never holds more than its bounds: the oldest tapes that have ended go first, then a tape's oldest
events.
"""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Final

from thoughtgate.wire.sse import encode_event, encode_priming

KEEP: Final = 60.0
"""Seconds for which a tape is kept after its end."""

MOST_TAPES: Final = 64
"""Tapes of one session."""

MOST_EVENTS: Final = 256
"""Events of one tape."""

MOST_EACH: Final = 4 * 1024 * 1024
"""Bytes of one session's tapes."""

MOST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of all tapes."""

RETRY_MS: Final = 1_000
"""How long a client shall wait before it comes back."""


class Tape:
    """The events of one stream; whoever began to `follow` it last gets the rest of it."""

    __slots__ = ("_events", "_fit", "_last", "_news", "ended", "followers", "name", "size")

    def __init__(self, name: str, fit: Callable[["Tape", int], None]) -> None:
        self.name = name
        self.size = 0
        self.ended = False
        self.followers = 0
        self._fit = fit
        self._events: list[tuple[int, bytes]] = []
        self._last = 0
        self._news: asyncio.Event | None = None

    def prime(self) -> bytes:
        """Return the event that a stream begins with: an id to come back with."""
        return encode_priming(f"{self.name}.{self._last}", RETRY_MS)

    def record(self, data: bytes) -> bytes:
        """Return the event that carries a message, which is kept."""
        self._last += 1
        event = encode_event(data, id=f"{self.name}.{self._last}")
        if not self.ended:
            self._events.append((self._last, event))
            self.size += len(event)
            self._fit(self, len(event))
            if len(self._events) > MOST_EVENTS:
                self.shorten()
            self._stir()
        return event

    def shorten(self) -> bool:
        """Forget the oldest event; False when there is none."""
        if not self._events:
            return False
        _, event = self._events.pop(0)
        self.size -= len(event)
        self._fit(self, -len(event))
        return True

    def since(self, number: int) -> list[tuple[int, bytes]]:
        """Return the later events that are still there, with their numbers."""
        return [(at, event) for at, event in self._events if at > number]

    def end(self) -> None:
        """Note that nothing more comes."""
        self.ended = True
        self._stir()

    def follow(self) -> int:
        """Become the one who gets the rest; returns the number of the follower."""
        self.followers += 1
        self._stir()
        return self.followers

    async def after(
        self, number: int, follower: int, seconds: float
    ) -> list[tuple[int, bytes]] | None:
        """Return later events, none after a silence, None at the end or when replaced."""
        while follower == self.followers:
            found = self.since(number)
            if found or self.ended:
                return found or None
            news = self._news = self._news or asyncio.Event()
            try:
                async with asyncio.timeout(seconds):
                    await news.wait()
            except TimeoutError:
                return []
        return None

    def _stir(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None


class Shelf:
    """The tapes of all sessions; `clock` gives seconds that never run back."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._sessions: dict[str, dict[str, Tape]] = {}
        self._ended: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._size = 0

    def begin(self, session_id: str, prefix: str = "") -> Tape | None:
        """Return a new tape for a stream of a session, None when it has too many already.

        `prefix` begins its name, and so the ids of its events.
        """
        self._tidy()
        tapes = self._sessions.setdefault(session_id, {})
        if len(tapes) >= MOST_TAPES and not self._drop_oldest(session_id):
            return None
        tape = Tape(prefix + secrets.token_urlsafe(9), partial(self._fit, session_id))
        tapes[tape.name] = tape
        return tape

    def find(self, session_id: str, event_id: str) -> tuple[Tape, int] | None:
        """Return the tape that an event is on, and the event's number."""
        self._tidy()
        name, dot, number = event_id.rpartition(".")
        tape = self._sessions.get(session_id, {}).get(name)
        if tape is None or not dot or not (number.isascii() and number.isdigit()):
            return None
        return tape, int(number[:12])

    def end(self, session_id: str, tape: Tape) -> None:
        """End a tape; it is kept for a while."""
        tape.end()
        if self._sessions.get(session_id, {}).get(tape.name) is tape:
            self._ended[session_id, tape.name] = self._clock() + KEEP

    def forget(self, session_id: str) -> None:
        """End and drop every tape of a session that is gone."""
        for tape in self._sessions.pop(session_id, {}).values():
            tape.end()
            self._size -= tape.size
            self._ended.pop((session_id, tape.name), None)

    def __len__(self) -> int:
        """Return how many sessions have tapes here."""
        return len(self._sessions)

    @property
    def size(self) -> int:
        """Return how many bytes are kept."""
        return self._size

    def _tidy(self) -> None:
        now = self._clock()
        while self._ended:
            key, until = next(iter(self._ended.items()))
            if until > now:
                return
            self._drop(*key)

    def _fit(self, session_id: str, tape: Tape, grown: int) -> None:
        """Count what a tape grew by, and bring its session and the whole within their bytes."""
        tapes = self._sessions.get(session_id, {})
        if tapes.get(tape.name) is not tape:
            return  # the session is gone: its tapes count no more
        self._size += grown
        if grown < 0:
            return
        while sum(one.size for one in tapes.values()) > MOST_EACH:
            if not (self._drop_oldest(session_id) or tape.shorten()):
                break
        while self._size > MOST_BYTES and (self._drop_ended() or tape.shorten()):
            pass

    def _drop_ended(self) -> bool:
        """Drop the tape that ended first, of whatever session."""
        if not self._ended:
            return False
        self._drop(*next(iter(self._ended)))
        return True

    def _drop_oldest(self, session_id: str) -> bool:
        for name, tape in self._sessions.get(session_id, {}).items():
            if tape.ended:
                self._drop(session_id, name)
                return True
        return False

    def _drop(self, session_id: str, name: str) -> None:
        self._ended.pop((session_id, name), None)
        tapes = self._sessions.get(session_id, {})
        tape = tapes.pop(name, None)
        if tape is not None:
            self._size -= tape.size
            tape.size = 0
        if not tapes:  # it may have begun after the end of its session
            self._sessions.pop(session_id, None)
