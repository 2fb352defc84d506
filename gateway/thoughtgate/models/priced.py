"""A model whose replies say what they cost.

Never changes anything else of a reply.
"""

from dataclasses import replace

from thoughtgate.core.models import ModelRequest, ModelResponse
from thoughtgate.core.ports import ModelClient
from thoughtgate.models.prices import Prices, cost_micros


class Priced:
    """Asks another model; `prices` None leaves every cost unknown."""

    def __init__(self, model: ModelClient, prices: Prices | None) -> None:
        self._model = model
        self._prices = prices

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Return the other model's reply with its cost."""
        reply = await self._model.complete(request)
        return replace(reply, cost_micros=cost_micros(reply.usage, self._prices))
