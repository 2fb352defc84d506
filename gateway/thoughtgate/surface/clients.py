"""What the clients of the handshake era do right now: running requests, waiting streams.

Who is connected is kept in `sessions`; here is only what ends with the process.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from thoughtgate.core.calls import Principal
from thoughtgate.sessions import Connected, Sessions
from thoughtgate.surface.changes import Bell, Changes
from thoughtgate.wire.handshake import Hello
from thoughtgate.wire.ids import InFlight

if TYPE_CHECKING:
    import asyncio


class Running:
    """A request that a task answers; it can be given up once, from outside the task."""

    __slots__ = ("_task", "given_up")

    def __init__(self, task: "asyncio.Task[None] | None") -> None:
        self._task = task
        self.given_up = False

    def give_up(self) -> None:
        """Cancel the work: its outcome is unused, and nothing is sent for it."""
        if not self.given_up and self._task is not None:
            self.given_up = True
            self._task.cancel()

    def settle(self) -> None:
        """Take back the cancellation once it was caught, so that the task can go on."""
        if self._task is not None:
            self._task.uncancel()


@dataclass(slots=True)
class Live:
    """The live side of one session. `bell` rings for its open stream, or keeps a change for it."""

    bell: Bell
    running: InFlight[Running] = field(default_factory=InFlight)


class Clients:
    """The sessions of clients, each with its live side; both end together."""

    def __init__(self, sessions: Sessions, changes: Changes) -> None:
        self.sessions = sessions
        self._changes = changes
        self._live: dict[str, Live] = {}
        self._closed = False
        self._unwatch = sessions.watch(self._ended)

    def open(self, hello: Hello, principal: Principal, domain: str) -> Connected:
        """Open a session for a client that said hello.

        Raises:
            Overloaded: Too many sessions are open.
        """
        connected = self.sessions.open(
            principal,
            domain=domain,
            version=hello.version,
            client=hello.client,
            capabilities=hello.capabilities,
        )
        self._live[connected.id] = Live(self._changes.join(domain))
        return connected

    def find(
        self, session_id: str, principal: Principal, domain: str
    ) -> tuple[Connected, Live] | None:
        """Return a session; another principal's or domain's looks like one that does not exist."""
        connected = self.sessions.find(session_id, principal)
        live = self._live.get(session_id)
        if connected is None or live is None or connected.domain != domain:
            return None
        return connected, live

    def new_bell(self, live: Live) -> Bell:
        """Return a fresh bell for the session's next stream; the stream before it ends.

        A change that no stream has told yet rings at once.
        """
        old = live.bell
        live.bell = self._changes.join(old.domain)
        old.pass_on(live.bell)
        self._changes.leave(old)
        return live.bell

    def close(self) -> None:
        """Stop watching the sessions; they themselves stay."""
        if not self._closed:
            self._closed = True
            self._unwatch()

    def _ended(self, connected: Connected) -> None:
        live = self._live.pop(connected.id, None)
        if live is not None:
            self._changes.leave(live.bell)
            for running in live.running.values():
                running.give_up()
