"""A model that is a pure function of seed and request: same question, same answer, in any order.

Never keeps anything between two questions.
"""

import hashlib
from collections.abc import Callable
from dataclasses import asdict, replace

from thoughtgate.core.json import canonical
from thoughtgate.core.models import FinishReason, ModelRequest, ModelResponse
from thoughtgate.models.several import Several

Reply = Callable[[ModelRequest, int], str | ModelResponse]
"""Computes a reply from the request and a number drawn from seed and request (64 bits)."""


class Function:
    """Asks `reply`. `seed` is used where the request brings none."""

    def __init__(self, reply: Reply, *, seed: int = 0) -> None:
        self._reply = reply
        self._seed = seed
        self._several = Several(self._once, native=False)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Return the function's reply; of several, each is drawn with another seed."""
        if request.n > 1 and request.seed is None:
            request = replace(request, seed=self._seed)
        return await self._several.complete(request)

    async def _once(self, request: ModelRequest) -> ModelResponse:
        reply = self._reply(request, self._draw(request))
        if isinstance(reply, str):
            return ModelResponse(text=reply, finish=FinishReason.STOP, model="function")
        return reply

    def _draw(self, request: ModelRequest) -> int:
        seed = self._seed if request.seed is None else request.seed
        asked = {**asdict(request), "seed": seed}
        del asked["n"]  # each of several replies is drawn as if it was asked for alone
        data = canonical([seed, asked])
        return int.from_bytes(hashlib.sha256(data).digest()[:8])
