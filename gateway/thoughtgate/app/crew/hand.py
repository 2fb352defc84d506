"""One worker's process as the parent sees it: started, handed connections, ended, started again.

Never waits for it: what it says is read when it is there.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from thoughtgate.app.crew.orders import Order, Told

Start = Callable[[int, int], Sequence[str]]
"""Returns the command of a worker, of its number and the descriptor of its end of the line."""

STEADY = 30.0
"""Seconds after which a worker counts as well, and its next end as the first."""

LONGEST = 10.0
"""Seconds at most between an end and the next start."""

SILENT = 3
"""Rounds without an answer after which a worker counts as hung."""

_FIRST = 0.1


class Hand:
    """A worker's process and the line to it.

    `unsaid` are orders that found no room on it, `missed` rounds in which it has not answered.
    """

    def __init__(self, index: int, start: Start) -> None:
        self.index = index
        self.line: socket.socket | None = None
        self.open = False
        self.ready = False
        self.unsaid = b""
        self.missed = 0
        self.again_at: float | None = None
        self._start = start
        self._process: subprocess.Popen[bytes] | None = None
        self._since = time.monotonic()
        self._failures = 0

    @property
    def pid(self) -> int:
        """Return the number of the process, 0 when there is none."""
        return 0 if self._process is None else self._process.pid

    @property
    def hung(self) -> bool:
        """Tell whether it lives and has not answered for a while."""
        return self.missed >= SILENT

    def begin(self) -> socket.socket:
        """Start a process and return our end of the line to it.

        It has a session of its own: an interrupt from the terminal is the parent's to pass on.

        Raises:
            OSError: The system has no room for it just now.
        """
        self.again_at = None
        self._since = time.monotonic()
        ours, its = socket.socketpair()
        with its, ExitStack() as failing:
            failing.callback(ours.close)
            self._process = subprocess.Popen(
                self._start(self.index, its.fileno()),
                pass_fds=(its.fileno(),),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            failing.pop_all()
        ours.setblocking(False)
        self.line = ours
        return ours

    def say(self, order: Order) -> None:
        """Give an order; `go_on` gives it later when connections have filled the line."""
        if self.line is not None:
            self.unsaid += order
            self.go_on()

    def ask(self) -> None:
        """Begin a round: ask a worker that serves whether it lives, unless it has been asked."""
        if self.line is None or not self.ready:
            return
        if not self.missed:
            self.say(Order.ANSWER)
        self.missed += 1

    def go_on(self) -> None:
        """Give the orders that had no room; one that is gone is noticed elsewhere."""
        while self.line is not None and self.unsaid:
            try:
                sent = self.line.send(self.unsaid)
            except BlockingIOError:
                return
            except OSError:
                sent = len(self.unsaid)
            self.unsaid = self.unsaid[sent:]

    def hear(self) -> list[Told]:
        """Return what it has said; nothing, and the line closed, when it hung up."""
        if self.line is None:
            return []
        try:
            said = self.line.recv(64)
        except BlockingIOError:
            return []
        except OSError:
            said = b""
        told = [one for one in Told if one.value in said]
        self.open = self.open or Told.OPEN in told
        self.ready = self.ready or Told.READY in told
        if Told.HERE in told:
            self.missed = 0
        if not said:
            self.hang_up()
        return told

    def give(self, client: socket.socket) -> bool:
        """Hand a connection over; False when it cannot take one now."""
        if self.line is None or not self.ready or self.unsaid:
            return False
        try:
            socket.send_fds(self.line, [Order.TAKE], [client.fileno()])
        except OSError:
            return False
        return True

    def hang_up(self) -> None:
        """Close the line, by which a worker that lives learns that it must end."""
        self.open = self.ready = False
        self.unsaid = b""
        self.missed = 0
        if self.line is not None:
            self.line.close()
            self.line = None

    def ended(self) -> int | None:
        """Return the code with which the process has ended, once; None while it runs."""
        if self._process is None:
            return None
        code = self._process.poll()
        if code is not None:
            self._process = None
            self.hang_up()
        return code

    def rest(self) -> float:
        """Plan the next start and return in how many seconds that is."""
        if time.monotonic() - self._since > STEADY:
            self._failures = 0
        pause = min(_FIRST * 2.0 ** min(self._failures, 20), LONGEST)
        self._failures += 1
        self.again_at = time.monotonic() + pause
        return pause

    def kill(self) -> None:
        """End the process as it stands."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
