"""The porter: who comes is handed over unread, and nobody waits for a slow one."""

import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from thoughtgate.app.crew.porter import KEPT, Porter

GUARD = 5.0


@dataclass
class Workers:
    """Takes what is handed over, as long as there is somebody."""

    there: bool = True
    got: list[tuple[socket.socket, int | None]] = field(default_factory=list)

    def give(self, client: socket.socket, worker: int | None) -> bool:
        if self.there:
            self.got.append((client.dup(), worker))
        return self.there

    def wishes(self) -> list[int | None]:
        return [worker for _, worker in self.got]


@dataclass
class Place:
    porter: Porter
    selector: selectors.BaseSelector
    workers: Workers
    address: tuple[str, int]
    clients: list[socket.socket] = field(default_factory=list)

    def connect(self, said: bytes = b"") -> socket.socket:
        client = socket.create_connection(self.address, timeout=GUARD)
        client.sendall(said)
        self.clients.append(client)
        return client

    def turn(self, number: int) -> None:
        """Go on until so many were handed over."""
        end = time.monotonic() + GUARD
        while len(self.workers.got) < number:
            assert time.monotonic() < end
            self.once()

    def once(self) -> None:
        for key, _ in self.selector.select(self.porter.patience() or 0):
            key.data()
        self.porter.tick()


@contextmanager
def place(kept: int = KEPT) -> Iterator[Place]:
    with selectors.DefaultSelector() as selector, socket.create_server(("127.0.0.1", 0)) as server:
        workers = Workers()
        porter = Porter(server, selector, 3, workers.give, kept)
        porter.open()
        made = Place(porter, selector, workers, server.getsockname())
        with closing(porter):
            try:
                yield made
            finally:
                for client in [*made.clients, *(client for client, _ in workers.got)]:
                    client.close()


def test_a_head_that_is_there_is_looked_at_and_left() -> None:
    head = b"POST /mcp HTTP/1.1\r\nmcp-session-id: 2.abc\r\n\r\nbody"
    with place() as here:
        here.connect(head)
        here.turn(1)
        [(client, worker)] = here.workers.got
        assert worker == 2
        client.settimeout(GUARD)
        assert client.recv(1000) == head


def test_those_who_say_nothing_hold_nobody_up() -> None:
    with place() as here:
        for _ in range(5):
            here.connect()
        here.connect(b"GET /api/v1/status HTTP/1.1\r\n")
        here.turn(1)
        assert here.workers.wishes() == [0]
        here.turn(6)
        assert here.workers.wishes()[1:] == [None] * 5


def test_half_a_head_is_not_waited_for() -> None:
    with place() as here:
        slow = here.connect(b"POST /mcp HTTP/1.1\r\n")
        here.connect(b"POST /mcp HTTP/1.1\r\n")
        slow.sendall(b"mcp-session-id: 1.abc\r\n")
        here.turn(2)
        assert sorted(here.workers.wishes(), key=str) == [1, None]


def test_a_client_that_is_gone_already_is_a_worker_s_to_notice() -> None:
    with place() as here:
        here.connect(b"POST /mcp HTTP/1.1\r\n").close()
        here.connect().close()
        here.turn(2)
        assert here.workers.wishes() == [None, None]


def test_connections_wait_while_no_worker_takes_them() -> None:
    with place() as here:
        here.workers.there = False
        here.connect(b"GET /mcp HTTP/1.1\r\nmcp-session-id: 1.a\r\n\r\n")
        while here.porter.patience() is None:
            here.once()
        here.once()
        here.workers.there = True
        here.turn(1)
        assert here.workers.wishes() == [1]
        assert here.porter.patience() is None


def test_beyond_a_number_of_silent_ones_nobody_is_kept() -> None:
    with place(kept=2) as here:
        names = [here.connect().getsockname() for _ in range(4)]
        here.turn(2)
        assert [client.getpeername() for client, _ in here.workers.got] == names[2:]
        here.turn(4)


def test_a_closed_porter_drops_who_has_said_nothing() -> None:
    with place() as here:
        client = here.connect()
        here.once()
        here.porter.close()
        assert client.recv(10) == b""
        assert here.porter.patience() is None
        assert here.workers.got == []
