"""The two ends of a worker's line: orders, connections, and what the loss of an end means."""

import asyncio
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from tests.support.waiting import until, within
from thoughtgate.app.crew.hand import LONGEST, Hand
from thoughtgate.app.crew.line import Line
from thoughtgate.app.crew.orders import Order, Told


class Worker:
    """What a worker does with its orders."""

    def __init__(self, line: Line) -> None:
        self.done: list[str] = []
        self.clients: list[socket.socket] = []
        line.follow(
            take=self.clients.append,
            reload=lambda: self.done.append("reload"),
            stop=lambda: self.done.append("stop"),
        )


@contextmanager
def lines() -> Iterator[tuple[socket.socket, Line]]:
    parent, end = socket.socketpair()
    with parent, closing(Line(end)) as line:
        yield parent, line


async def test_every_connection_comes_with_its_own_order() -> None:
    with lines() as (parent, line):
        worker = Worker(line)
        pairs = [socket.socketpair() for _ in range(3)]
        for ours, its in pairs:
            socket.send_fds(parent, [Order.TAKE], [its.fileno()])
            parent.send(Order.RELOAD)
            its.close()
            ours.send(b"x")
        await until(lambda: len(worker.clients) == 3)
        await until(lambda: worker.done == ["reload"] * 3)
        for (ours, _), client in zip(pairs, worker.clients, strict=True):
            assert client.recv(1) == b"x"
            ours.close()
            client.close()


async def test_no_child_of_a_worker_inherits_a_client() -> None:
    """It could read what others say, and would hold their connections open."""
    with lines() as (parent, line):
        worker = Worker(line)
        ours, its = socket.socketpair()
        with ours, its:
            socket.send_fds(parent, [Order.TAKE], [its.fileno()])
            await until(lambda: worker.clients)
        with worker.clients[0] as client:
            assert not client.get_inheritable()


async def test_a_lost_parent_is_the_order_to_stop() -> None:
    with lines() as (parent, line):
        worker = Worker(line)
        parent.close()
        await within(line.until(Order.LIST))
        assert worker.done == ["stop"]
        assert line.stopping


async def test_a_parent_that_is_lost_while_stopping_hurries_nobody() -> None:
    with lines() as (parent, line):
        worker = Worker(line)
        parent.send(Order.STOP)
        parent.send(Order.STOP)
        await until(lambda: worker.done == ["stop", "stop"])
        parent.close()
        await until(lambda: line.stopping)
        await asyncio.sleep(0)
        assert worker.done == ["stop", "stop"]


async def test_an_order_that_came_early_is_found_later() -> None:
    with lines() as (parent, line):
        parent.send(Order.BEGIN)
        await within(line.until(Order.BEGIN))
        parent.send(Order.STOP)
        await within(line.until(Order.LIST))
        assert Worker(line).done == ["stop"]


def echo(index: int, line: int) -> Sequence[str]:
    """Return a process that says all it has to say, and ends when told to."""
    said = b"".join(Told).decode()
    code = f"import os; os.write({line}, {said!r}.encode()); os.read({line}, 1); os._exit(7)"
    return [sys.executable, "-c", code]


async def test_a_hand_hears_its_worker_and_learns_how_it_ended() -> None:
    hand = Hand(0, echo)
    hand.begin()
    heard: set[Told] = set()

    def ready() -> bool:
        heard.update(hand.hear())
        return hand.ready

    await until(ready)
    assert heard == set(Told)
    assert hand.ended() is None
    ours, its = socket.socketpair()
    with ours, its:
        assert hand.give(its)
        codes: list[int | None] = []

        def ended() -> bool:
            codes.append(hand.ended())
            return codes[-1] is not None

        await until(ended)
        assert codes[-1] == 7
        assert not hand.give(its)
    assert (hand.pid, hand.line, hand.ready) == (0, None, False)


async def test_an_order_is_given_when_connections_have_filled_the_line() -> None:
    with lines() as (parent, line):
        parent.setblocking(False)
        hand = Hand(0, echo)
        hand.line, hand.ready = parent, True
        ours, its = socket.socketpair()
        with ours, its:
            given = 0
            while hand.give(its):
                given += 1
            hand.say(Order.STOP)
            assert hand.unsaid == Order.STOP
            assert not hand.give(its)
            worker = Worker(line)
            await until(lambda: len(worker.clients) == given)
        hand.go_on()
        await until(lambda: line.stopping)
        for client in worker.clients:
            client.close()


async def test_a_worker_that_ends_again_and_again_is_started_less_and_less_often() -> None:
    hand = Hand(0, echo)
    pauses = [hand.rest() for _ in range(40)]
    assert pauses[:3] == [0.1, 0.2, 0.4]
    assert pauses[-1] == LONGEST
    assert pauses == sorted(pauses)
