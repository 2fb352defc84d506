"""What the clients of the handshake era do right now: running requests, waiting streams.

Who is connected is kept in `sessions`; here is only what ends with the process.
"""

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from thoughtgate.core.calls import Principal, Session
from thoughtgate.core.json import JsonObject
from thoughtgate.sessions import Connected, Sessions
from thoughtgate.surface.asking import Asks
from thoughtgate.surface.comebacks import LARGEST, Comebacks
from thoughtgate.surface.mailbox import Changes, Mailbox
from thoughtgate.surface.ports import Gateway
from thoughtgate.surface.relay import Peer
from thoughtgate.surface.tapes import Shelf, Tape
from thoughtgate.wire.handshake import Hello
from thoughtgate.wire.ids import InFlight
from thoughtgate.wire.strict import dumps

if TYPE_CHECKING:
    import asyncio

_log = logging.getLogger(__name__)

DEFAULT_LEVEL = "info"
"""The lowest log level sent to a client that never called `logging/setLevel`."""

KINDS = 256
"""Kinds of clients that are remembered; more of them only share less."""


class Running:
    """A request that a task answers; it can be given up once, from outside the task."""

    __slots__ = ("_task", "given_up")

    def __init__(self, task: "asyncio.Task[Any] | None") -> None:
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
    """The live side of one session.

    `tape` holds what its GET streams have told, `subscribed` are the resources that it follows.
    There may be thousands: what most of them do not need is not made for each.
    """

    session: Session
    mailbox: Mailbox
    peer: Peer
    asks: Asks
    running: InFlight[Running] = field(default_factory=InFlight)
    tape: Tape | None = None
    subscribed: dict[str, None] = field(default_factory=dict)


class Clients:
    """The sessions of clients, each with its live side; both end together."""

    def __init__(
        self, gateway: Gateway, sessions: Sessions, changes: Changes, comebacks: Comebacks
    ) -> None:
        self.sessions = sessions
        self.shelf = Shelf()
        self._gateway = gateway
        self._changes = changes
        self._comebacks = comebacks
        self._live: dict[str, Live] = {}
        self._said = _Said()
        self._closed = False
        self._unwatch = sessions.watch(self._ended)

    def open(self, hello: Hello, principal: Principal, domain: str) -> Connected:
        """Open a session for a client that said hello.

        Raises:
            Overloaded: Too many sessions are open.
        """
        return self._open(
            self._comebacks.new_id(hello, principal, domain), hello, principal, domain
        )

    def find(
        self, session_id: str, principal: Principal, domain: str
    ) -> tuple[Connected, Live] | None:
        """Return a session; another principal's or domain's looks like one that does not exist.

        Raises:
            Overloaded: It is one of an earlier process, and too many sessions are open.
        """
        connected = self.sessions.find(session_id, principal)
        live = self._live.get(session_id)
        if live is None:
            returned = self._comebacks.open(session_id, principal, domain)
            if returned is None:
                return None
            connected = self._open(session_id, returned, principal, domain)
            live = self._live[session_id]
        if connected is None or connected.domain != domain:
            return None
        return connected, live

    def end(self, client: Connected) -> None:
        """End a session as its client wishes: for good, whatever process comes after this one."""
        self._comebacks.bury(client.id)
        self.sessions.close(client.id, client.principal)

    def set_log_level(self, client: Connected, live: Live, level: str) -> None:
        """Remember which log messages a client wants, in its calls and outside of them."""
        live.peer.level = level
        self.sessions.set_log_level(client.id, client.principal, level)

    def tell(self, client: Connected, method: str, params: JsonObject) -> None:
        """Pass a client's notification on to the servers that it has connections to."""
        self._gateway.tell(client.id, method, params)

    def close(self) -> None:
        """Stop watching the sessions; they themselves stay."""
        if not self._closed:
            self._closed = True
            self._unwatch()
            for live in self._live.values():
                live.asks.close()

    def _open(self, id_: str, hello: Hello, principal: Principal, domain: str) -> Connected:
        client, capabilities = self._said.once(hello)
        connected = self.sessions.open(
            Connected(
                id=id_,
                principal=principal,
                domain=domain,
                version=hello.version,
                client=client,
                capabilities=capabilities,
            )
        )
        mailbox, asks = self._changes.join(domain), Asks(capabilities)
        peer = Peer(mailbox, asks, lambda: self._gateway.view(domain), DEFAULT_LEVEL)
        self._live[id_] = Live(connected.session(peer), mailbox, peer, asks)
        return connected

    def _ended(self, connected: Connected) -> None:
        self._comebacks.end(connected.id)
        live = self._live.pop(connected.id, None)
        if live is None:
            return
        if live.mailbox.dropped or live.asks.strays:
            _log.warning(
                "a session has ended: %d messages found no reader, %d answers no question",
                live.mailbox.dropped,
                live.asks.strays,
            )
        self._changes.leave(live.mailbox)
        for running in live.running.values():
            running.give_up()
        live.asks.close()
        self.shelf.forget(connected.id)
        self._gateway.leave(live.peer)
        self._gateway.leave_session(connected.id)


class _Said:
    """What clients say of themselves, once for all that say the same; mostly few kinds are here."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[JsonObject, JsonObject]] = {}

    def once(self, hello: Hello) -> tuple[JsonObject, JsonObject]:
        """Return the client and its capabilities; who says much shares nothing."""
        both = (hello.client, hello.capabilities)
        written = dumps(both)
        if len(written) > LARGEST:
            return both
        if len(self._known) >= KINDS:
            self._known.pop(next(iter(self._known)))
        return self._known.setdefault(written, both)
