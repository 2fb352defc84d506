"""A worker's end of the line to the parent: orders, and the connections of clients.

Never blocks: the loop serves clients meanwhile.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress

from thoughtgate.app.crew.orders import Order, Told


class Line:
    """A worker's end. When the parent is lost, that is the order to stop."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._end.setblocking(False)
        self._heard = {order: asyncio.Event() for order in Order}
        self._take: Callable[[socket.socket], None] | None = None
        self._act: dict[Order, Callable[[], None]] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(end.fileno(), self._read)

    def close(self) -> None:
        """Hear no more; connections that were not taken are closed by the system."""
        if self._end.fileno() >= 0:
            self._loop.remove_reader(self._end.fileno())
            self._end.close()

    @property
    def stopping(self) -> bool:
        """Tell whether the order to stop has come."""
        return self._heard[Order.STOP].is_set()

    async def until(self, order: Order) -> None:
        """Return when an order has come, or that to stop."""
        waits = [asyncio.ensure_future(self._heard[one].wait()) for one in (order, Order.STOP)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def follow(
        self,
        *,
        take: Callable[[socket.socket], None],
        reload: Callable[[], None],
        stop: Callable[[], None],
    ) -> None:
        """Call these for orders from now on; each order to stop counts."""
        self._take = take
        self._act = {Order.RELOAD: reload, Order.STOP: stop}
        if self.stopping:
            stop()

    def tell(self, told: Told) -> None:
        """Say something to the parent; a lost one is noticed elsewhere."""
        with suppress(OSError):
            self._end.send(told)

    def _read(self) -> None:
        """Take what has come: one byte at a time, as a descriptor belongs to its own."""
        while True:
            try:
                data, descriptors, _, _ = socket.recv_fds(self._end, 1, 1)
            except BlockingIOError:
                return
            except OSError:
                data, descriptors = b"", []
            if not data:
                self._loop.remove_reader(self._end.fileno())
                if not self.stopping:
                    self._obey(Order.STOP)
                return
            self._handle(Order(data), descriptors)

    def _handle(self, order: Order, descriptors: list[int]) -> None:
        if order is not Order.TAKE:
            self._obey(order)
            return
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # no child shall have it, and none has it yet
            if self._take is None:
                os.close(descriptor)
            else:
                self._take(socket.socket(fileno=descriptor))

    def _obey(self, order: Order) -> None:
        if order is Order.ANSWER:
            self.tell(Told.HERE)
            return
        self._heard[order].set()
        act = self._act.get(order)
        if act is not None:
            act()
