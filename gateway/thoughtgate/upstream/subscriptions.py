"""Who wants to hear of which resources on one connection.

Never asks the server for anything: it says when that is to be done.
"""

from collections import Counter

from thoughtgate.core.calls import Listener
from thoughtgate.core.errors import Overloaded

MAX_SUBSCRIPTIONS = 10_000
"""URIs that one connection subscribes to."""

MAX_URI = 4_096
"""Characters of the longest URI that is remembered."""

MAX_TOGETHER = 1_048_576
"""Characters of all of them: a stateless server is sent the whole list with each change."""

_ENDS = ("/", "?", "#")


class Subscriptions:
    """URIs with their listeners. A listener is itself, whatever it says of being equal."""

    def __init__(self) -> None:
        self._listeners: dict[str, dict[int, Listener]] = {}
        self._uris: dict[int, set[str]] = {}
        self._lengths: Counter[int] = Counter()
        self._size = 0

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
            self._check(uri)
            self._listeners[uri] = known = {}
            self._lengths[len(uri)] += 1
            self._size += len(uri)
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
            self._lengths[len(uri)] -= 1
            if not self._lengths[len(uri)]:
                del self._lengths[len(uri)]
            self._size -= len(uri)
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
        for length in self._lengths:  # a server may send a URI of nothing but ends
            if length < len(uri) and (uri[length] in _ENDS or uri[length - 1 : length] in _ENDS):
                found |= self._listeners.get(uri[:length], {})
        return list(found.values())

    def _check(self, uri: str) -> None:
        """Refuse a URI for which there is no room."""
        many = len(self._listeners) >= MAX_SUBSCRIPTIONS
        if many or len(uri) > MAX_URI or self._size + len(uri) > MAX_TOGETHER:
            raise Overloaded(
                message=f"at most {MAX_SUBSCRIPTIONS} resources of up to {MAX_URI} characters, and"
                f" {MAX_TOGETHER} together, can be subscribed to; unsubscribe from some first"
            )
