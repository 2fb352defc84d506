"""The parent of several workers: it starts them, gives them connections, and ends them.

Never opens the registry or runs an event loop: what it does must work whatever becomes of a worker.
"""

import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial

from thoughtgate.app.crew.hand import Hand
from thoughtgate.app.crew.orders import Order, Told
from thoughtgate.app.crew.porter import Porter
from thoughtgate.app.crew.pulse import Pulse
from thoughtgate.app.grpc_port import grpc_address
from thoughtgate.app.listening import address, bound
from thoughtgate.app.presence import presence_of, present, say_where
from thoughtgate.config.files import Loaded
from thoughtgate.config.settings import GatewaySettings
from thoughtgate.core.errors import ConfigError

LAST = 10.0
"""Seconds beyond drain and grace after which a worker that has not ended is killed."""

PARTING = 2.0
"""Seconds beyond drain and grace after which one is killed that does not even answer."""

_SOON = 0.02
"""Seconds until an order is given again that had no room."""

_STOPS = (signal.SIGTERM, signal.SIGINT)
_SIGNALS = (*_STOPS, signal.SIGHUP, signal.SIGCHLD)


def serve_crew(
    loaded: Loaded, version: str, hands: tuple[Hand, ...], say: Callable[[str], None]
) -> int:
    """Serve HTTP by several workers until SIGTERM or SIGINT; a second signal ends them at once.

    Returns the exit code: that of a worker which could not start, else 0.

    Raises:
        ConfigError: The port is taken, or no process can be started.
        KeyboardInterrupt: It was told to stop before it served.
    """
    with (
        bound(loaded) as listening,
        _bell() as bell,
        selectors.DefaultSelector() as selector,
        ExitStack() as while_serving,
    ):
        url = address(listening)

        def serving() -> None:
            here = presence_of(url, version, workers=len(hands), grpc=grpc_address(loaded))
            while_serving.enter_context(present(loaded.home, here))
            say_where(here, say)

        parent = _Parent(loaded.settings.gateway, hands, selector, say, serving)
        return parent.run(listening, bell)


class _Parent:
    """One loop over signals, connections and what workers say."""

    def __init__(
        self,
        settings: GatewaySettings,
        hands: tuple[Hand, ...],
        selector: selectors.BaseSelector,
        say: Callable[[str], None],
        serving: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._hands = hands
        self._selector = selector
        self._say = say
        self._serving = serving
        self._lines: dict[int, socket.socket] = {}
        self._turn = 0
        self._served = self._stopping = False
        self._listed = False
        self._code = 0
        self._failure: ConfigError | None = None
        self._times: dict[str, float] = {}
        self._pulse = Pulse(hands, settings.worker_timeout, say)

    def run(self, listening: socket.socket, bell: socket.socket) -> int:
        """Serve until all workers have ended; return the exit code."""
        self._porter = Porter(listening, self._selector, len(self._hands), self._give)
        self._selector.register(bell, selectors.EVENT_READ, partial(self._signalled, bell))
        with closing(self._porter):
            for hand in self._hands:
                self._begin(hand)
            self._hands[0].say(Order.BEGIN)
            while not (self._stopping and all(hand.pid == 0 for hand in self._hands)):
                for key, _ in self._selector.select(self._patience()):
                    key.data()
                self._tick()
        if self._failure is not None:
            raise self._failure
        if not self._served and not self._code:
            raise KeyboardInterrupt
        return self._code

    def _give(self, client: socket.socket, worker: int | None) -> bool:
        """Hand a connection to a worker, or to the next one in turn that is not hung."""
        if worker is not None and self._give_to(worker, client):
            return True
        for _ in self._hands:
            self._turn = (self._turn + 1) % len(self._hands)
            if self._give_to(self._turn, client):
                return True
        return False

    def _give_to(self, worker: int, client: socket.socket) -> bool:
        """Hand a connection to this worker; to a hung one only when all that serve are."""
        hand = self._hands[worker]
        if hand.hung and any(one.ready and not one.hung for one in self._hands):
            return False
        return hand.give(client)

    def _begin(self, hand: Hand) -> None:
        try:
            line = self._lines[hand.index] = hand.begin()
        except OSError as error:
            why = (error.strerror or "error").lower()
            if not self._served:
                self._fail(ConfigError(message=f"cannot start a worker: {why}"))
                return
            self._rest(hand, f"cannot be started: {why}")
            return
        self._selector.register(line, selectors.EVENT_READ, partial(self._hear, hand))
        if self._served:
            hand.say(Order.BEGIN)

    def _hear(self, hand: Hand) -> None:
        told = hand.hear()
        self._pulse.heard(hand)
        if hand.line is None:
            self._forget(hand)
        if Told.OPEN in told:
            self._opened(hand)
        if Told.READY in told:
            self._serves(hand)

    def _serves(self, hand: Hand) -> None:
        if self._served:
            if not self._stopping:
                self._say(f"worker {hand.index} (process {hand.pid}) serves again")
        elif all(one.ready for one in self._hands):
            self._served = True
            if not self._stopping:
                self._open()

    def _open(self) -> None:
        try:
            self._porter.open()
        except ConfigError as error:
            self._fail(error)
        else:
            self._serving()

    def _fail(self, why: ConfigError) -> None:
        """End all that was begun, and then raise this."""
        self._failure = why
        self._stop()

    def _opened(self, hand: Hand) -> None:
        """Let the others begin after the first, and all ask for lists when all are there.

        The first one makes what all share, and tells of what cannot be used.
        """
        if self._listed:
            hand.say(Order.LIST)
            return
        if hand.index == 0:
            for other in self._hands[1:]:
                other.say(Order.BEGIN)
        if all(one.open for one in self._hands):
            self._listed = True
            for one in self._hands:
                one.say(Order.LIST)

    def _forget(self, hand: Hand) -> None:
        line = self._lines.pop(hand.index, None)
        if line is not None:
            self._selector.unregister(line)

    def _signalled(self, bell: socket.socket) -> None:
        for number in bell.recv(256):
            if number in _STOPS:
                self._stop()
            elif number == signal.SIGHUP:
                for hand in self._hands:
                    hand.say(Order.RELOAD)
            else:
                self._reap()

    def _stop(self) -> None:
        """Have all workers end: after drain and grace, and at once at the second time."""
        now = time.monotonic()
        again, self._stopping = self._stopping, True
        self._pulse.hurry()
        drain = 0.0 if again or not self._served else self._settings.drain_delay
        over = now + drain + (0.0 if again else self._settings.grace)
        self._times |= {"close": now + drain, "kill hung": over + PARTING, "kill": over + LAST}
        for hand in self._hands:
            hand.again_at = None
            hand.say(Order.STOP)

    def _reap(self) -> None:
        for hand in self._hands:
            pid, code = hand.pid, hand.ended()
            if code is None:
                continue
            self._forget(hand)
            if self._stopping:
                continue
            if not self._served:
                self._code = code if code > 0 else 1
                self._stop()
                continue
            how = f"by signal {-code}" if code < 0 else f"with code {code}"
            self._rest(hand, f"(process {pid}) has ended {how}")

    def _rest(self, hand: Hand, how: str) -> None:
        """Say that a worker is not there, and start it again after a pause."""
        pause = hand.rest()
        self._say(f"worker {hand.index} {how}; it is started again in {pause:g} s")

    def _patience(self) -> float:
        again = [hand.again_at for hand in self._hands if hand.again_at is not None]
        times = [*self._times.values(), *again, self._pulse.next_at]
        if any(hand.unsaid for hand in self._hands):
            times.append(time.monotonic() + _SOON)
        own = max(0.0, min(times) - time.monotonic())
        porter = self._porter.patience()
        return own if porter is None else min(own, porter)

    def _tick(self) -> None:
        now = time.monotonic()
        self._porter.tick()
        self._pulse.tick()
        for hand in self._hands:
            hand.go_on()
            if hand.again_at is not None and hand.again_at <= now:
                self._begin(hand)
        due = [what for what, when in self._times.items() if when <= now]
        for what in due:
            del self._times[what]
        if "close" in due:
            self._porter.close()
        for hand in self._hands:
            if "kill" in due or ("kill hung" in due and hand.hung):
                hand.kill()


@contextmanager
def _bell() -> Iterator[socket.socket]:
    """Give a socket on which the numbers of signals are read; they do nothing else."""
    ours, its = socket.socketpair()
    with ours, its:
        ours.setblocking(False)
        its.setblocking(False)
        before = {number: signal.signal(number, _noted) for number in _SIGNALS}
        wakes = signal.set_wakeup_fd(its.fileno(), warn_on_full_buffer=False)
        try:
            yield ours
        finally:
            signal.set_wakeup_fd(wakes)
            for number, handler in before.items():
                signal.signal(number, handler)


def _noted(number: int, frame: object) -> None:
    """Do nothing: the number is on the bell."""
    del number, frame
