"""The porter: accepts connections for all workers and hands each to one.

Never waits for a client that is slow to speak, and never reads what it says: it only looks.
"""

import errno
import selectors
import socket
import time
from collections.abc import Callable

from thoughtgate.app.crew.peek import ANY, MOST, Wish, wish
from thoughtgate.app.listening import listen

QUIET = 0.1
"""Seconds in which a new connection may say nothing and is kept: nobody could serve it yet."""

HALF = 0.005
"""Seconds in which the rest of a head may follow."""

KEPT = 512
"""Connections that are looked at at once; beyond, they go to any worker unseen."""

_AT_ONCE = 64
_REST = 0.2
"""Seconds without accepting when the system has no room."""

Give = Callable[[socket.socket, int | None], bool]
"""Hands a connection over, to a certain worker if it is there; False when nobody takes it now."""


class Porter:
    """Keeps connections until it is known where they go; `give` hands them over."""

    def __init__(
        self,
        listening: socket.socket,
        selector: selectors.BaseSelector,
        count: int,
        give: Give,
        kept: int = KEPT,
    ) -> None:
        self._listening = listening
        self._selector = selector
        self._count = count
        self._give = give
        self._most = kept
        self._kept: dict[socket.socket, float] = {}
        self._half: dict[socket.socket, float] = {}
        self._unwanted: list[tuple[socket.socket, int | None]] = []
        self._rests_until = 0.0
        self._open = False

    def open(self) -> None:
        """Begin to listen and accept: nobody can connect before.

        Raises:
            ConfigError: Another program listens there by now.
        """
        listen(self._listening)
        self._listening.setblocking(False)
        self._open = True
        self._selector.register(self._listening, selectors.EVENT_READ, self.accept)

    def close(self) -> None:
        """Accept no more, and drop who has not said anything."""
        if self._open:
            self._open = False
            if not self._rests_until:
                self._selector.unregister(self._listening)
        self._listening.close()
        for client in list(self._kept):
            self._selector.unregister(client)
            client.close()
        for client in [*self._half, *(client for client, _ in self._unwanted)]:
            client.close()
        self._kept.clear()
        self._half.clear()
        self._unwanted.clear()

    def patience(self) -> float | None:
        """Return in how many seconds `tick` has something to do, None for never."""
        times = [*self._kept.values(), *self._half.values()]
        if self._rests_until:
            times.append(self._rests_until)
        if self._unwanted:
            times.append(time.monotonic() + HALF)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def tick(self) -> None:
        """Do what its time has come for."""
        now = time.monotonic()
        for client in [one for one, until in self._half.items() if until <= now]:
            del self._half[client]
            self._hand(client, self._looked(client).worker)
        for client in [one for one, until in self._kept.items() if until <= now]:
            self._forget(client)
            self._hand(client, None)
        unwanted, self._unwanted = self._unwanted, []
        for client, worker in unwanted:
            self._hand(client, worker)
        if self._rests_until and self._rests_until <= now and self._open:
            self._rests_until = 0.0
            self._selector.register(self._listening, selectors.EVENT_READ, self.accept)

    def accept(self) -> None:
        """Take who has come."""
        for _ in range(_AT_ONCE):
            if not self._open or self._rests_until:
                return
            try:
                client, _ = self._listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}:
                    self._rest()
                continue
            client.setblocking(False)
            self._receive(client)

    def _rest(self) -> None:
        self._selector.unregister(self._listening)
        self._rests_until = time.monotonic() + _REST

    def _receive(self, client: socket.socket) -> None:
        if len(self._kept) + len(self._half) >= self._most:
            self._hand(client, None)
            return
        try:
            found = wish(client.recv(MOST, socket.MSG_PEEK), self._count)
        except BlockingIOError:
            self._kept[client] = time.monotonic() + QUIET
            self._selector.register(client, selectors.EVENT_READ, lambda: self._spoke(client))
            return
        except OSError:
            client.close()
            return
        self._decide(client, found)

    def _spoke(self, client: socket.socket) -> None:
        self._forget(client)
        self._decide(client, self._looked(client))

    def _decide(self, client: socket.socket, found: Wish) -> None:
        if found.sure:
            self._hand(client, found.worker)
        else:  # it is not waited for by the selector, which would find it ready all the time
            self._half[client] = time.monotonic() + HALF

    def _looked(self, client: socket.socket) -> Wish:
        try:
            return wish(client.recv(MOST, socket.MSG_PEEK), self._count)
        except OSError:  # the worker notices as well
            return ANY

    def _forget(self, client: socket.socket) -> None:
        del self._kept[client]
        self._selector.unregister(client)

    def _hand(self, client: socket.socket, worker: int | None) -> None:
        if self._give(client, worker):
            client.close()
        elif len(self._unwanted) < self._most:
            self._unwanted.append((client, worker))
        else:
            client.close()
