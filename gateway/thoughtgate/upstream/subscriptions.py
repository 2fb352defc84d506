"""Who wants to hear of which resources on one connection.

Never asks the server for anything: it says when that is to be done.
"""

from thoughtgate.core.calls import Listener
from thoughtgate.core.errors import Overloaded

MAX_SUBSCRIPTIONS = 10_000
"""URIs that one connection subscribes to."""

MAX_URI = 4_096
"""Characters of the longest URI that is remembered."""

_ENDS = ("/", "?", "#")


class Subscriptions:
    """URIs with their listeners. A listener is itself, whatever it says of being equal."""

    def __init__(self) -> None:
        self._listeners: dict[str, dict[int, Listener]] = {}
        self._uris: dict[int, set[str]] = {}

    def __len__(self) -> int:
        """Return how many URIs are subscribed to."""
        return len(self._listeners)

    def __contains__(self, uri: str) -> bool:
        """Tell whether anybody is subscribed to exactly this URI."""
        return uri in self._listeners

    @property
    def uris(self) -> tuple[str, ...]:
        """Return what is subscribed to, in order of the first subscription."""
        return tuple(self._listeners)

    def add(self, uri: str, listener: Listener) -> bool:
        """Subscribe a listener; True when nobody was before, so that the server is to be asked.

        Raises:
            Overloaded: There are too many, or the URI is too long to be remembered.
        """
        known = self._listeners.get(uri)
        if known is None:
            if len(self._listeners) >= MAX_SUBSCRIPTIONS or len(uri) > MAX_URI:
                raise Overloaded(
                    message=f"at most {MAX_SUBSCRIPTIONS} resources of up to {MAX_URI} characters"
                    " can be subscribed to; unsubscribe from some first"
                )
            self._listeners[uri] = known = {}
        known[id(listener)] = listener
        self._uris.setdefault(id(listener), set()).add(uri)
        return len(known) == 1

    def discard(self, uri: str, listener: Listener) -> bool:
        """Unsubscribe a listener; True when nobody is left, so that the server is to be told."""
        known = self._listeners.get(uri, {})
        if known.pop(id(listener), None) is None:
            return False
        mine = self._uris[id(listener)]
        mine.discard(uri)
        if not mine:
            del self._uris[id(listener)]
        if not known:
            del self._listeners[uri]
        return not known

    def leave(self, listener: Listener) -> tuple[str, ...]:
        """Forget a listener; return the URIs that nobody is left for."""
        mine = self._uris.get(id(listener), ())
        return tuple(uri for uri in sorted(mine) if self.discard(uri, listener))

    def of(self, uri: str) -> list[Listener]:
        """Return who is to hear that `uri` changed: its own listeners, and those of what holds it.

        An updated resource may be a part of the one that was subscribed to.
        """
        found: dict[int, Listener] = dict(self._listeners.get(uri, ()))
        for end in (place for place, letter in enumerate(uri) if letter in _ENDS):
            for holder in (uri[:end], uri[: end + 1]):
                found |= self._listeners.get(holder, {})
        return list(found.values())
