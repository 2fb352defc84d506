"""When to try a server again: exponential pauses with jitter, and when to give up.

Never looks at a clock: the caller says what time it is.
"""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Pauses in seconds; `give_up` failures in a row end the trying, None never."""

    first: float = 0.5
    longest: float = 60.0
    give_up: int | None = 8


class Breaker:
    """Counts failures in a row; open while a pause lasts."""

    def __init__(self, backoff: Backoff, chance: random.Random) -> None:
        self.failures = 0
        self._backoff = backoff
        self._chance = chance
        self._open_until = 0.0

    @property
    def given_up(self) -> bool:
        """Tell whether it failed so often that only a person may try again."""
        give_up = self._backoff.give_up
        return give_up is not None and self.failures >= give_up

    def pause(self, now: float) -> float:
        """Return the seconds until the next attempt, 0 for now."""
        return max(0.0, self._open_until - now)

    def failed(self, now: float, *, tolerated: int = 0) -> None:
        """Count a failure; beyond the tolerated ones the breaker opens for longer every time.

        The pause is between half and all of its nominal length, so that many do not come at once.
        """
        self.failures += 1
        beyond = self.failures - tolerated
        if beyond > 0:
            nominal = self._backoff.first * 2.0 ** min(beyond - 1, 30)
            bounded = min(nominal, self._backoff.longest)
            self._open_until = now + bounded * (0.5 + self._chance.random() / 2)

    def succeeded(self) -> None:
        """Forget all failures."""
        self.failures = 0
        self._open_until = 0.0
