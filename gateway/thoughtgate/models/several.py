"""More replies than one to a question, also from servers that give only one at a time.

Never gives fewer than were asked for: then it asks again, or fails.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from thoughtgate.core.errors import ModelError
from thoughtgate.core.models import ModelRequest, ModelResponse, Usage
from thoughtgate.models.counts import summed

Once = Callable[[ModelRequest], Awaitable[ModelResponse]]
"""Asks one question once."""


class Several:
    """Asks `once`, more often where it must.

    With `native` the first question is for all replies; what is missing, or all of them when that
    is refused, is asked for one by one.
    """

    def __init__(self, once: Once, *, native: bool) -> None:
        self._once = once
        self._native = native

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Return as many replies as `request.n` says, in one response."""
        if request.n <= 1:
            return await self._once(request)
        found: list[ModelResponse] = []
        if self._native:
            found = await self._all_at_once(request)
        while len(found) < request.n:
            found.append(await self._once(_numbered(request, len(found))))
        return together(found)

    async def _all_at_once(self, request: ModelRequest) -> list[ModelResponse]:
        try:
            reply = await self._once(request)
        except ModelError as error:
            if error.retriable or error.data.get("kind") == "context_overflow":
                raise
            self._native = False  # it refuses `n`, or everything: the next question will tell
            return []
        self._native = len(reply.others) + 1 >= request.n
        return [replace(reply, others=()), *reply.others][: request.n]


def together(replies: Sequence[ModelResponse]) -> ModelResponse:
    """Return one response that holds all, with the usage of all."""
    first, *others = replies
    usage = first.usage
    for other in others:
        if other.usage is not PART:
            usage = summed(usage, other.usage)
    return replace(first, usage=usage, others=tuple(replace(o, usage=Usage()) for o in others))


PART = Usage()
"""The usage of a reply whose tokens are counted with another's; told apart by identity."""


def _numbered(request: ModelRequest, at: int) -> ModelRequest:
    """Return the question for one reply; with a seed, each with another, else they are alike."""
    seed = None if request.seed is None else request.seed + at
    return replace(request, n=1, seed=seed)
