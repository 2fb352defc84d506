"""What outlives a link: for whom it is open, what is declared for them, what they follow.

Never sends anything to the server: links do.
"""

from thoughtgate.core.calls import Listener, Notice, NoticeKind, Session
from thoughtgate.core.json import JsonObject
from thoughtgate.upstream.outlets import Outlets
from thoughtgate.upstream.ports import Counts
from thoughtgate.upstream.subscriptions import Subscriptions
from thoughtgate.wire import handshake


class Traits:
    """What a server turned out to be like, on whichever of its connections.

    `streams`: it may have streams of its own notifications; `piped`: all that it says on one
    connection comes through one pipe, which does not say to which call it belongs.
    """

    def __init__(self, *, piped: bool = False) -> None:
        self.streams = True
        self.piped = piped


class Home:
    """One connection's people. A private one belongs to a session, or to those of one principal.

    `capabilities` and `version` are declared and offered in the handshake of every link that is
    opened for it.
    """

    def __init__(
        self,
        server: str,
        *,
        capabilities: JsonObject | None = None,
        version: str = handshake.LATEST,
        private: bool = False,
        traits: Traits | None = None,
    ) -> None:
        self.server = server
        self.capabilities: JsonObject = declared(capabilities or {})
        self.version = version
        self.private = private
        self.traits = traits or Traits()
        self.subscriptions = Subscriptions()
        self.outlets = Outlets()
        self.clients: dict[str, Listener] = {}

    @property
    def client(self) -> Listener | None:
        """Return the one to ask outside of any call: whoever came last."""
        return next(reversed(self.clients.values()), None)

    def join(self, session: Session) -> None:
        """Remember how a session is reached outside of its calls."""
        if session.peer is not None and self.clients.get(session.id) is not session.peer:
            self.clients[session.id] = session.peer

    def tell(self, notice: Notice, counts: Counts) -> None:
        """Deliver a notification that belongs to no call; on a shared connection to nobody."""
        self._deliver(list(self.clients.values()), notice, counts)

    def updated(self, notice: Notice, counts: Counts) -> None:
        """Deliver the news of a changed resource to those who follow it."""
        uri = notice.params.get("uri")
        following = self.subscriptions.of(uri) if type(uri) is str else []
        self._deliver(following or list(self.clients.values()), notice, counts)

    def leave(self, listener: Listener) -> tuple[str, ...]:
        """Forget a listener; return the URIs that nobody follows any more."""
        self.outlets.drop(listener)
        return self.subscriptions.leave(listener)

    def _deliver(self, listeners: list[Listener], notice: Notice, counts: Counts) -> None:
        if not listeners:
            counts.unplaced += 1
        for listener in listeners:
            if not self.outlets.put(listener, notice):
                counts.overflow += 1


def other(server: str, method: str, params: JsonObject) -> Notice:
    """Return a notification that is relayed under its own method."""
    return Notice(kind=NoticeKind.OTHER, params=params, method=method, server=server)


def declared(capabilities: JsonObject) -> JsonObject:
    """Return what is declared for a client: all of its own but what nobody would answer.

    `tasks` is the experiment of 2025-11-25, in which a server may poll its client.
    """
    if "tasks" not in capabilities:
        return capabilities
    return {name: value for name, value in capabilities.items() if name != "tasks"}
