"""A model that says what a script says: an ordered list, for tests and demonstrations.

Never answers what the script does not hold: a question too many is an error.
"""

from collections.abc import Iterable

from thoughtgate.core.errors import ModelError
from thoughtgate.core.models import FinishReason, ModelRequest, ModelResponse


class Scripted:
    """Replies in order: a text, a whole response, or an error to raise. Keeps what it was asked."""

    def __init__(self, replies: Iterable[str | ModelResponse | ModelError]) -> None:
        self._replies = list(replies)
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Return the next reply of the script.

        Raises:
            ModelError: The script says so, or it is at its end.
        """
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
