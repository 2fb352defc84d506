"""What became of the calls that change something, by their ids: the same call is not made twice.

Never grows beyond its bounds: when they are reached, new calls are refused until old ones expire.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from thoughtgate_servers.grpc import refusals
from thoughtgate_servers.grpc.refusals import Refused

KEPT_SECONDS = 120
MAX_CALL_ID = 255
_FULL = "too many calls are remembered: try again later"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many calls are remembered at most, and how many bytes of their results."""

    calls: int = 100_000
    result_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    digest: bytes
    result: bytes
    expires: float


class Recorded:
    """The calls of the last two minutes, running ones included."""

    def __init__(
        self, limits: Limits | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits or Limits()
        self._clock = clock
        self._running: dict[str, bytes] = {}
        self._ended: dict[str, _Ended] = {}
        """In the order in which they ended, and so in which they expire."""
        self._bytes = 0

    def begin(self, call_id: str, digest: bytes) -> bytes | None:
        """Return the result of the same call made before, or None: the call is to be made now.

        Raises:
            Refused: It still runs, its id stands for another call, or too much is remembered.
        """
        self._forget_expired()
        ended = self._ended.get(call_id)
        known = ended.digest if ended else self._running.get(call_id)
        if known is None:
            self._refuse_when_full()
            self._running[call_id] = digest
            return None
        if known != digest:
            raise Refused(refusals.CALL_ID_REUSED)
        if ended is None:
            raise Refused(refusals.IN_PROGRESS)
        return ended.result

    def end(self, call_id: str, result: bytes) -> None:
        """Remember the result of a call that began, from now on."""
        digest = self._running.pop(call_id)
        expires = self._clock() + KEPT_SECONDS
        self._ended[call_id] = _Ended(digest=digest, result=result, expires=expires)
        self._bytes += len(result)

    def forget(self, call_id: str) -> None:
        """Forget a call that began: it may be made again."""
        del self._running[call_id]

    def _forget_expired(self) -> None:
        now = self._clock()
        while self._ended:
            call_id, oldest = next(iter(self._ended.items()))
            if oldest.expires > now:
                return
            del self._ended[call_id]
            self._bytes -= len(oldest.result)

    def _refuse_when_full(self) -> None:
        kept = len(self._running) + len(self._ended)
        if kept >= self._limits.calls or self._bytes >= self._limits.result_bytes:
            raise Refused(refusals.overloaded(_FULL, seconds=30))
