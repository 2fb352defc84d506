"""Which request is which: ids of one connection mapped to what waits for them.

Never reuses an id: a late answer to an abandoned request must not find a newer one.
"""

from typing import Generic, TypeVar

from thoughtgate.core.json import JsonValue
from thoughtgate.wire.messages import MessageId

T = TypeVar("T")


class Pending(Generic[T]):
    """The requests that we sent on one connection: our own numbers, each with what waits for it.

    The same number serves as the request's progress token, so progress finds its call.
    """

    def __init__(self) -> None:
        self._last = 0
        self._waiting: dict[MessageId, T] = {}

    def add(self, waiter: T) -> int:
        """Return a fresh id under which `waiter` is found."""
        self._last += 1
        self._waiting[self._last] = waiter
        return self._last

    def get(self, id_or_token: JsonValue) -> T | None:
        """Return what waits under an id or progress token, None when nothing does.

        Some servers send integers back as strings; a string of our own digits is understood.
        """
        return self._waiting.get(_number(id_or_token))

    def pop(self, id_: JsonValue) -> T | None:
        """Remove and return what waits under an id, None when nothing does."""
        return self._waiting.pop(_number(id_), None)

    def drain(self) -> list[T]:
        """Remove and return everything that waits, oldest first."""
        waiting = list(self._waiting.values())
        self._waiting.clear()
        return waiting

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._waiting)


class InFlight(Generic[T]):
    """The requests that a peer sent us on one connection, by the peer's own ids."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running: dict[tuple[type, MessageId], T] = {}

    def add(self, id_: MessageId, running: T) -> bool:
        """Remember a request; False when its id is in flight already (it is not replaced)."""
        key = (type(id_), id_)
        if key in self._running:
            return False
        self._running[key] = running
        return True

    def get(self, id_: JsonValue) -> T | None:
        """Return what runs under an id, None when nothing does or the id is not one."""
        return self._running.get((type(id_), id_)) if isinstance(id_, str | int) else None

    def discard(self, id_: MessageId) -> None:
        """Forget a finished request."""
        self._running.pop((type(id_), id_), None)

    def values(self) -> list[T]:
        """Return everything that runs, oldest first."""
        return list(self._running.values())

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._running)


def _number(value: JsonValue) -> int:
    if type(value) is int:
        return value
    if type(value) is str and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return 0
