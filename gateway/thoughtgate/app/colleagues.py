"""The other workers of this gateway, as one of them asks them.

Never waits long for one: it may be starting again, or stuck.
"""

import asyncio
import logging

import msgspec

from thoughtgate.core.errors import UpstreamError
from thoughtgate.core.workers import ALONE, Crew
from thoughtgate.surface.admin_values import WorkerState
from thoughtgate.upstream.http_connection import at_socket

PATIENCE = 2.0
"""Seconds in which another worker tells how it fares, or looks at the registry."""

HEARING = 1.0
"""Seconds in which it must say anything, or it counts as silent."""

ACTING = 15.0
"""Seconds in which it does what this one has done already."""

_MOST = 65_536

_log = logging.getLogger(__name__)


class Colleagues:
    """Asks the workers of a crew beside this one, all at once."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew

    async def states(self) -> tuple[WorkerState, ...]:
        """Return how each fares; one that does not answer is not up."""
        return tuple(await asyncio.gather(*map(self._state, self._others())))

    async def silent(self) -> tuple[int, ...]:
        """Return which live and say nothing; one that is starting again is not among them."""
        others = self._others()
        found = await asyncio.gather(*map(self._is_silent, others))
        return tuple(index for index, silent in zip(others, found, strict=True) if silent)

    async def reload(self) -> None:
        """Have each read the configuration again, which this one found good."""
        await self._tell("reload")

    async def refresh(self) -> None:
        """Have each take the registry as it is now."""
        await self._tell("refresh", PATIENCE)

    async def flush(self) -> None:
        """Have each write the audit rows that it still holds."""
        await self._tell("flush", PATIENCE)

    async def check(self, server: str) -> None:
        """Have each ask a server for its tools."""
        await self._tell(f"check/{server}")

    async def restart(self, server: str) -> None:
        """Have each open a server's connection anew."""
        await self._tell(f"restart/{server}")

    async def _tell(self, what: str, seconds: float = ACTING) -> None:
        await asyncio.gather(*(self._told(index, what, seconds) for index in self._others()))

    def _others(self) -> list[int]:
        return [index for index in range(self._crew.count) if index != self._crew.index]

    async def _state(self, index: int) -> WorkerState:
        try:
            body = await self._asked(index, b"GET /crew/status", PATIENCE)
            return msgspec.json.decode(body, type=WorkerState)
        except (OSError, UpstreamError, TimeoutError, msgspec.MsgspecError):
            return WorkerState(index=index, up=False)

    async def _is_silent(self, index: int) -> bool:
        try:
            await self._asked(index, b"GET /crew/status", HEARING)
        except TimeoutError:
            return True
        except (OSError, UpstreamError):
            return False
        return False

    async def _told(self, index: int, what: str, seconds: float) -> None:
        try:
            await self._asked(index, f"POST /crew/{what}".encode(), seconds)
        except (OSError, UpstreamError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            words = what.replace("/", " ")
            _log.warning("worker %d was told to %s and has not: %s", index, words, why)

    async def _asked(self, index: int, what: bytes, seconds: float) -> bytes:
        """Return the body of a good reply.

        Raises:
            OSError: The worker is not there.
            UpstreamError: It was lost, or refused.
            TimeoutError: It did not answer in time.
        """
        async with asyncio.timeout(seconds):
            connection = await at_socket(self._crew.socket(index))
            try:
                reply = await connection.exchange(
                    what + b" HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"
                )
                body = await reply.read(_MOST)
            finally:
                connection.abort()
        if reply.status != 200:
            raise UpstreamError(message=body.decode("utf-8", "replace"))
        return body


NOBODY = Colleagues(ALONE)
"""The colleagues of a gateway of one process."""
