"""Anthropic's Messages, whole or streamed.

Never shows the key: not in an error, not in a repr, not in what it passes on of a server's text.
"""

from thoughtgate.core.models import ModelRequest, ModelResponse
from thoughtgate.models.anthropic_shapes import request_body, response
from thoughtgate.models.anthropic_stream import AnthropicStream
from thoughtgate.models.events import folded
from thoughtgate.models.openai_chat import ChatSettings
from thoughtgate.models.patience import Asking, Door, Reader, usable
from thoughtgate.models.several import Several
from thoughtgate.models.shown import shown_url
from thoughtgate.wire.strict import parse

VERSION = "2023-06-01"
"""The revision of the API, which every request names."""

_MAX_NAME = 80


class Anthropic:
    """Asks one model; `base_url` of the settings ends before `/messages`, often in `/v1`."""

    def __init__(self, settings: ChatSettings, door: Door) -> None:
        self._settings = settings
        accept = "text/event-stream" if settings.stream else "application/json"
        key = {"x-api-key": settings.key} if settings.key else {}
        self._asking = Asking(
            door,
            settings.patience,
            name=f"model {settings.model[:_MAX_NAME]} at {shown_url(settings.base_url)}",
            url=settings.base_url.rstrip("/") + "/messages",
            headers={"accept": accept, "anthropic-version": VERSION, **key},
        )
        self._several = Several(self._once, native=False)

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
    return await folded(reader, AnthropicStream(), response)
