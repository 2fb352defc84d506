"""On which connections of a server each listener is known: one of thousands, mostly.

Never keeps a listener alive, and forgets it when it leaves.
"""

from thoughtgate.core.calls import Listener
from thoughtgate.upstream.supervisor import Supervised


class Known:
    """The connections by listener, the one used last at the end."""

    def __init__(self) -> None:
        self._places: dict[int, list[Supervised]] = {}

    def __len__(self) -> int:
        """Return how many listeners are known."""
        return len(self._places)

    def note(self, listener: Listener, connection: Supervised) -> None:
        """Note that a listener may hear something on a connection."""
        before = self._places.get(id(listener), [])
        if not before or before[-1] is not connection:
            kept = [one for one in before if one is not connection and one.home.subscriptions]
            self._places[id(listener)] = [*kept, connection]

    def forget(self, listener: Listener) -> list[Supervised]:
        """Forget a listener that leaves; return where it was known."""
        return self._places.pop(id(listener), [])
