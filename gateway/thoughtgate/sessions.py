"""Who is connected: the sessions of the handshake era, as plain bounded state.

Never reads a clock of its own and never tells one principal of another's session: a session that
belongs to somebody else looks like one that does not exist.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import TracebackType

from thoughtgate.core.calls import Listener, Principal, Session
from thoughtgate.core.errors import Overloaded
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era

_ID_BYTES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """One session. `capabilities` and `client` are the client's objects as they came.

    `id` is unguessable and made of visible ASCII, empty before the session is open; `log_level` is
    None until the client sets one.
    """

    id: str = ""
    principal: Principal
    domain: str
    version: str
    client: JsonObject = field(default_factory=dict)
    capabilities: JsonObject = field(default_factory=dict)
    log_level: str | None = None

    def session(self, peer: Listener | None) -> Session:
        """Return what a call carries of it; `peer` is the client outside of calls."""
        return Session(
            id=self.id,
            era=Era.HANDSHAKE,
            version=self.version,
            client=self.client,
            capabilities=self.capabilities,
            peer=peer,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """How many sessions there may be, and how long they may rest, in seconds.

    A session that rested for `idle_timeout` ends. When `cap` sessions are open, one that rested
    for `grace` makes room for a new one; if there is none, nobody new comes in.
    """

    cap: int = 10_000
    idle_timeout: float = 1800.0
    grace: float = 60.0


@dataclass(slots=True)
class _Seat:
    """The part of a session that changes. `held` counts its running calls and open streams."""

    connected: Connected
    used: float
    held: int = 0


class Sessions:
    """The open sessions, least recently used first. `clock` gives seconds that never run back."""

    def __init__(
        self, *, clock: Callable[[], float], limits: SessionLimits = SessionLimits()
    ) -> None:
        self._clock = clock
        self._limits = limits
        self._seats: OrderedDict[str, _Seat] = OrderedDict()
        self._watchers: list[Callable[[Connected], None]] = []

    def __len__(self) -> int:
        """Return how many sessions are open."""
        return len(self._seats)

    def open(self, newcomer: Connected) -> Connected:
        """Open a session, under a random id when the newcomer brings none.

        Raises:
            Overloaded: Too many sessions are open, and all of them are in use.
        """
        self.expire()
        if len(self._seats) >= self._limits.cap and not self._make_room():
            raise Overloaded(message="too many sessions are open; close one, or try again later")
        connected = newcomer
        if not newcomer.id:
            connected = replace(newcomer, id=secrets.token_urlsafe(_ID_BYTES))
        self._seats[connected.id] = _Seat(connected=connected, used=self._clock())
        return connected

    def find(self, session_id: str, principal: Principal) -> Connected | None:
        """Return the session, which counts as a use; None when the principal has none such."""
        seat = self._seat(session_id, principal)
        return None if seat is None else seat.connected

    def set_log_level(self, session_id: str, principal: Principal, level: str) -> None:
        """Remember which log messages the client wants; ignored when it has no such session."""
        seat = self._seat(session_id, principal)
        if seat is not None:
            seat.connected = replace(seat.connected, log_level=level)

    def close(self, session_id: str, principal: Principal) -> bool:
        """End a session; False when this principal has none of that id."""
        if self._seat(session_id, principal) is None:
            return False
        self._end(session_id)
        return True

    def holding(self, session_id: str, principal: Principal) -> "Holding":
        """Keep a session from resting while a call runs or a stream is open."""
        return Holding(self, self._seat(session_id, principal))

    def used(self, connected: Connected) -> None:
        """Note that a session is used; nothing when it is there no more."""
        self._seat(connected.id, connected.principal)

    def expire(self) -> None:
        """End the sessions that rested too long. Costs nothing for those that did not."""
        deadline = self._clock() - self._limits.idle_timeout
        for session_id in list(self._resting(deadline)):
            self._end(session_id)

    def watch(self, callback: Callable[[Connected], None]) -> Callable[[], None]:
        """Call back whenever a session ended, for whatever reason; returns how to stop that."""
        self._watchers.append(callback)
        return lambda: self._watchers.remove(callback)

    def _seat(self, session_id: str, principal: Principal) -> _Seat | None:
        seat = self._seats.get(session_id)
        if seat is None or seat.connected.principal.id != principal.id:
            return None
        now = self._clock()
        if not seat.held and seat.used <= now - self._limits.idle_timeout:
            self._end(session_id)
            return None
        seat.used = now
        self._seats.move_to_end(session_id)
        return seat

    def _resting(self, deadline: float) -> Iterator[str]:
        for session_id, seat in self._seats.items():
            if seat.used > deadline:
                return
            if not seat.held:
                yield session_id

    def _make_room(self) -> bool:
        longest = next(self._resting(self._clock() - self._limits.grace), None)
        if longest is None:
            return False
        self._end(longest)
        return True

    def _end(self, session_id: str) -> None:
        seat = self._seats.pop(session_id)
        for callback in list(self._watchers):
            callback(seat.connected)


class Holding:
    """Holds a session, if there is one, for the length of a block."""

    __slots__ = ("_seat", "_sessions")

    def __init__(self, sessions: Sessions, seat: _Seat | None) -> None:
        self._sessions = sessions
        self._seat = seat

    def __enter__(self) -> None:
        """Begin to hold."""
        if self._seat is not None:
            self._seat.held += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Hold no longer; it was used until now."""
        if self._seat is not None:
            self._seat.held -= 1
            self._sessions.used(self._seat.connected)
