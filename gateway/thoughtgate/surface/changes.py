"""Who waits for changes of which domain's tools.

Never holds a message: a bell that rang twice before anybody listened rings once.
"""

import asyncio
from enum import Enum

from thoughtgate.surface.ports import Gateway


class Wake(Enum):
    """Why a waiter woke up."""

    CHANGED = "changed"
    SILENCE = "silence"
    LEFT = "left"
    CLOSED = "closed"


class Bell:
    """One waiter's sign; it remembers one change, and for good that it was closed."""

    __slots__ = ("_changed", "_closed", "_event", "_left", "domain")

    def __init__(self, domain: str) -> None:
        self.domain = domain
        self._changed = False
        self._closed = False
        self._left = False
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Note that the domain's tools changed."""
        self._changed = True
        self._event.set()

    def close(self) -> None:
        """Note that there is nothing more to wait for."""
        self._closed = True
        self._event.set()

    def leave(self) -> None:
        """Send the one who waits away; a change is kept for the next one."""
        self._left = True
        self._event.set()

    async def wait(self, seconds: float | None) -> Wake:
        """Return at the next change, at the end, or after `seconds` of silence."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return Wake.SILENCE
        if self._closed:
            return Wake.CLOSED
        self._event.clear()
        if self._left:
            self._left = False
            return Wake.LEFT
        changed, self._changed = self._changed, False
        return Wake.CHANGED if changed else Wake.SILENCE

    def pass_on(self, other: "Bell") -> None:
        """Give a change that nobody has heard yet to another waiter."""
        if self._changed:
            self._changed = False
            other.ring()


class Changes:
    """Rings the bells of a domain when the gateway says that its view changed."""

    def __init__(self, gateway: Gateway) -> None:
        self._bells: dict[str, set[Bell]] = {}
        self._closed = False
        self._unwatch = gateway.watch(self._changed)

    def join(self, domain: str) -> Bell:
        """Return a new bell that rings for a domain; it is closed when everything is."""
        bell = Bell(domain)
        if self._closed:
            bell.close()
        self._bells.setdefault(domain, set()).add(bell)
        return bell

    def leave(self, bell: Bell) -> None:
        """Close a bell and forget it."""
        bell.close()
        bells = self._bells.get(bell.domain, set())
        bells.discard(bell)
        if not bells:
            self._bells.pop(bell.domain, None)

    def close(self) -> None:
        """Close every bell, which ends every stream, and stop watching."""
        if self._closed:
            return
        self._closed = True
        self._unwatch()
        for bells in self._bells.values():
            for bell in bells:
                bell.close()
        self._bells.clear()

    def _changed(self, domains: frozenset[str]) -> None:
        for domain in domains:
            for bell in self._bells.get(domain, ()):
                bell.ring()
