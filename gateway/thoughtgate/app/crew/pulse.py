"""The pulse of a crew: the parent asks each worker whether it lives, and says which one does not.

Never believes a clock over its own rounds: one that slept with the machine has nobody killed.
"""

import time
from collections.abc import Callable, Sequence

from thoughtgate.app.crew.hand import Hand

ROUNDS = 30
"""Rounds without an answer after which a worker is killed."""

_HURRIED = 0.5
"""Seconds of a round at most once all are told to stop."""


class Pulse:
    """Asks every worker in rounds; `longest` are the seconds after which a silent one is killed."""

    def __init__(self, hands: Sequence[Hand], longest: float, say: Callable[[str], None]) -> None:
        self._hands = hands
        self._pause = longest / ROUNDS
        self._most = ROUNDS
        self._say = say
        self._missing: set[int] = set()
        self.next_at = time.monotonic() + self._pause

    def hurry(self) -> None:
        """Ask more often from now on, and leave it to others whom to kill."""
        self._most = 0
        self._pause = min(self._pause, _HURRIED)
        self.next_at = min(self.next_at, time.monotonic() + self._pause)

    def tick(self) -> None:
        """Begin the next round when its time has come."""
        now = time.monotonic()
        if now < self.next_at:
            return
        self.next_at = now + self._pause
        for hand in self._hands:
            hand.ask()
            if hand.hung:
                self._missed(hand)

    def heard(self, hand: Hand) -> None:
        """Say that a worker which was silent goes on."""
        if hand.index in self._missing and not hand.hung:
            self._missing.discard(hand.index)
            if hand.ready:
                self._say(f"worker {hand.index} (process {hand.pid}) answers again")

    def _missed(self, hand: Hand) -> None:
        who = f"worker {hand.index} (process {hand.pid})"
        if hand.index not in self._missing:
            self._missing.add(hand.index)
            self._say(f"{who} does not answer; new connections go to others")
        if hand.missed == self._most:
            self._say(f"{who} still does not answer and is killed")
            hand.kill()
