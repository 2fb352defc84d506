"""Whether the gateway can do its work: its registry is read, and its servers are really asked.

Never starts a server that rests, and never waits beyond its budget.
"""

import asyncio
from collections import Counter
from enum import Enum

from thoughtgate.app.keeper import Keeper
from thoughtgate.core.errors import GateError, UpstreamError
from thoughtgate.core.servers import UpstreamState
from thoughtgate.registry.store import Registry
from thoughtgate.surface.health import Readiness, Unready
from thoughtgate.upstream.upstreams import Upstreams


class _Fares(Enum):
    """How a server fares."""

    ANSWERED = "answered"
    IDLE = "idle"
    STARTING = "starting"
    FAILED = "failed"


class Prober:
    """A probe for `surface.health`; one dead server of many makes nothing unready."""

    def __init__(
        self, keeper: Keeper, registry: Registry, upstreams: Upstreams, *, budget: float
    ) -> None:
        self._keeper = keeper
        self._registry = registry
        self._upstreams = upstreams
        self._budget = budget

    async def __call__(self) -> Readiness:
        """Ask the registry and every connected server at once, each within the budget."""
        unlisted = set(self._keeper.unlisted())
        names = [server.name for server in self._keeper.servers if server.enabled]
        readable, fares = await asyncio.gather(
            self._readable(),
            asyncio.gather(*(self._fares(name, listed=name not in unlisted) for name in names)),
        )
        return _summed(Counter(fares), readable=readable)

    async def _readable(self) -> bool:
        try:
            async with asyncio.timeout(self._budget):
                await asyncio.to_thread(self._registry.revision)
        except (GateError, TimeoutError):
            return False
        return True

    async def _fares(self, name: str, *, listed: bool) -> _Fares:
        try:
            async with asyncio.timeout(self._budget):
                if await self._upstreams.ask(name):
                    return _Fares.ANSWERED
        except TimeoutError:
            return _Fares.FAILED
        except UpstreamError:
            pass  # it may just have been let go to rest
        states = {one.server: one.state for one in self._upstreams.statuses()}
        state = states.get(name)
        if state is UpstreamState.IDLE:
            return _Fares.IDLE if listed else _Fares.STARTING
        return _Fares.STARTING if state is UpstreamState.STARTING else _Fares.FAILED


def _summed(fares: "Counter[_Fares]", *, readable: bool) -> Readiness:
    unready = None
    if not readable:
        unready = Unready.REGISTRY
    elif fares and not fares[_Fares.ANSWERED] and not fares[_Fares.IDLE]:
        unready = Unready.STARTING if fares[_Fares.STARTING] else Unready.SERVERS
    return Readiness(
        servers=fares.total(),
        answered=fares[_Fares.ANSWERED],
        idle=fares[_Fares.IDLE],
        starting=fares[_Fares.STARTING],
        failed=fares[_Fares.FAILED],
        unready=unready,
    )
