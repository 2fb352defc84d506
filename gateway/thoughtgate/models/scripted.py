"""A model that says what a script says: an ordered list, for tests and demonstrations.

Never answers what the script does not hold: a question too many is an error.
"""

from collections.abc import Iterable

from thoughtgate.core.errors import ModelError
from thoughtgate.core.models import FinishReason, ModelRequest, ModelResponse
from thoughtgate.models.several import Several


class Scripted:
    """Replies in order: a text, a whole response, or an error to raise. Keeps what it was asked."""

    def __init__(self, replies: Iterable[str | ModelResponse | ModelError]) -> None:
        self._replies = list(replies)
        self.requests: list[ModelRequest] = []
        self._several = Several(self._next, native=False)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Return the next reply of the script, or as many as `request.n` says.

        Raises:
            ModelError: The script says so, or it is at its end.
        """
        return await self._several.complete(request)

    async def _next(self, request: ModelRequest) -> ModelResponse:
        at = len(self.requests)
        self.requests.append(request)
        if at >= len(self._replies):
            raise ModelError(message=f"the script holds {len(self._replies)} replies, no more")
        reply = self._replies[at]
        if isinstance(reply, ModelError):
            raise reply
        if isinstance(reply, str):
            return ModelResponse(text=reply, finish=FinishReason.STOP, model="scripted")
        return reply
