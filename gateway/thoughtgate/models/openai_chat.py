"""OpenAI-compatible chat completions: OpenAI, Ollama, vLLM, llama.cpp, LM Studio and others.

Never shows the key: not in an error, not in a repr, not in what it passes on of a server's text.
"""

from dataclasses import dataclass, field

from thoughtgate.core.models import ModelRequest, ModelResponse
from thoughtgate.models.events import folded
from thoughtgate.models.openai_shapes import request_body, response
from thoughtgate.models.openai_stream import OpenAIStream
from thoughtgate.models.patience import Asking, Door, Patience, Reader, usable
from thoughtgate.models.several import Several
from thoughtgate.models.shown import shown_url
from thoughtgate.wire.strict import parse

_MAX_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """Which server and model, and how it is asked.

    `base_url` ends before `/chat/completions`, often in `/v1`. With `stream` the reply comes in
    pieces, so that a server that stalls is noticed. `omit` are fields of the request that the
    server refuses.
    """

    base_url: str
    model: str
    key: str = field(default="", repr=False)
    patience: Patience = field(default_factory=Patience)
    stream: bool = False
    omit: frozenset[str] = frozenset()


class OpenAIChat:
    """Asks one model of one server."""

    def __init__(self, settings: ChatSettings, door: Door) -> None:
        self._settings = settings
        accept = "text/event-stream" if settings.stream else "application/json"
        bearer = {"authorization": f"Bearer {settings.key}"} if settings.key else {}
        self._asking = Asking(
            door,
            settings.patience,
            name=f"model {settings.model[:_MAX_NAME]} at {shown_url(settings.base_url)}",
            url=settings.base_url.rstrip("/") + "/chat/completions",
            headers={"accept": accept, **bearer},
        )
        self._several = Several(self._once, native="n" not in settings.omit)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Return the reply, or as many as `request.n` says; patient within bounds.

        Raises:
            ModelError: No usable reply. `data["kind"]` is `context_overflow` when the request
                was too long for the model.
        """
        return await self._several.complete(request)

    async def _once(self, request: ModelRequest) -> ModelResponse:
        given = self._settings
        body = request_body(request, given.model, stream=given.stream, omit=given.omit)
        return await self._asking.ask(body, _streamed if given.stream else _whole)


async def _whole(reader: Reader) -> ModelResponse:
    with usable():
        return response(parse(await reader.whole()))


async def _streamed(reader: Reader) -> ModelResponse:
    """Return the reply of a stream; of a server that streams nothing, the reply that it sent."""
    return await folded(reader, OpenAIStream(), response)
