"""`/healthz` and `/readyz`: whether the gateway lives, and whether it can do its work now.

Never names a server, and never has one asked more often than an answer is remembered.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

import msgspec

from thoughtgate.surface.http_io import JSON, Send, not_allowed, respond

ALIVE: Final = "/healthz"
READY: Final = "/readyz"

T = TypeVar("T")

MEMORY: Final = 2.0
"""Seconds that an answer counts: whoever asks more often learns the same."""

_STEADY: Final = b'{"status":"ok"}'
_HEADERS: Final = (JSON, (b"cache-control", b"no-store"))


class Unready(StrEnum):
    """Why a gateway is not ready."""

    STARTING = "starting"
    STOPPING = "stopping"
    REGISTRY = "registry"
    SERVERS = "servers"


MESSAGES: Final = {
    Unready.STARTING: "no tool server has answered yet",
    Unready.STOPPING: "the gateway is stopping; go elsewhere",
    Unready.REGISTRY: "the registry cannot be read; see the log",
    Unready.SERVERS: "no tool server answers; see thoughtgate server list",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """How the enabled servers fare: `idle` ones rest on purpose and count by what they listed.

    `unready` says why the gateway is not ready, None that it is.
    """

    servers: int = 0
    answered: int = 0
    idle: int = 0
    starting: int = 0
    failed: int = 0
    unready: Unready | None = None


Probe = Callable[[], Awaitable[Readiness]]
"""Finds out how the gateway fares; it keeps to its own budget of time, and never raises."""


Silent = Callable[[], Awaitable[tuple[int, ...]]]
"""Finds out which other workers live and do not answer, within a bound; it never raises."""


class Health:
    """Answers the two paths. Without a probe, a gateway that is not stopping is ready."""

    def __init__(
        self, probe: Probe | None, silent: Silent | None = None, *, memory: float = MEMORY
    ) -> None:
        self._probe = None if probe is None else _Remembered(probe, memory)
        self._silent = None if silent is None else _Remembered(silent, memory)
        self._stopping = False

    def stop(self) -> None:
        """Be not ready from now on."""
        self._stopping = True

    async def answer(self, path: str, method: str, send: Send) -> None:
        """Answer a request for one of the two paths.

        Raises:
            Refusal: It is neither GET nor HEAD.
        """
        if method not in {"GET", "HEAD"}:
            raise not_allowed(b"GET, HEAD")
        if path == ALIVE:
            await self._tell_alive(send)
            return
        found = Readiness() if self._stopping or self._probe is None else await self._probe.found()
        unready = Unready.STOPPING if self._stopping else found.unready
        await respond(send, 503 if unready else 200, _told(found, unready), _HEADERS)

    async def _tell_alive(self, send: Send) -> None:
        """Answer for the other workers too: a client may be led to any of them."""
        silent = () if self._silent is None else await self._silent.found()
        if silent:
            told = msgspec.json.encode({"status": "hung", "workers": silent})
            await respond(send, 503, told, _HEADERS)
        else:
            await respond(send, 200, _STEADY)


class _Remembered(Generic[T]):
    """What is found out once for all who ask meanwhile or soon after."""

    def __init__(self, find: Callable[[], Awaitable[T]], memory: float) -> None:
        self._find = find
        self._memory = memory
        self._asking: asyncio.Task[T] | None = None
        self._until = 0.0

    async def found(self) -> T:
        """Return what is found."""
        loop = asyncio.get_running_loop()
        if self._asking is None or (self._asking.done() and loop.time() >= self._until):
            self._asking = loop.create_task(self._asked())
        return await asyncio.shield(self._asking)

    async def _asked(self) -> T:
        try:
            return await self._find()
        finally:
            self._until = asyncio.get_running_loop().time() + self._memory


def _told(found: Readiness, unready: Unready | None) -> bytes:
    why = {} if unready is None else {"reason": unready.value, "message": MESSAGES[unready]}
    counts = {name: getattr(found, name) for name in Readiness.__slots__[:-1]}
    status = "ready" if unready is None else "not ready"
    return msgspec.json.encode({"status": status, **why, **counts})
