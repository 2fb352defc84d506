"""Model clients from the settings, over the gateway's own HTTP client.

Never asks a model by itself.
"""

import asyncio
from collections.abc import Mapping

from thoughtgate.config.settings import ModelSettings, Settings
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.ports import ModelClient
from thoughtgate.models.openai_chat import ChatSettings, OpenAIChat
from thoughtgate.models.posting import Posted
from thoughtgate.upstream.ports import HttpClient, HttpRequest

_MAX_REPLY = 8 * 2**20


def model_named(settings: Settings, name: str, client: HttpClient) -> ModelClient | None:
    """Return the model of that name; for an empty name the default one, None when there is none.

    Raises:
        ConfigError: No model has that name.
    """
    chosen = chosen_model(settings, name)
    if not chosen:
        return None
    return _client(settings.models[chosen], client)


def chosen_model(settings: Settings, name: str) -> str:
    """Return the name of the model that a run uses, empty for none.

    Raises:
        ConfigError: No model has that name.
    """
    if name and name not in settings.models:
        known = ", ".join(sorted(settings.models)) or "none are configured"
        raise ConfigError(message=f"no model is named {name[:40]} ({known})")
    only = next(iter(settings.models)) if len(settings.models) == 1 else ""
    return name or settings.default_model or only


def _client(given: ModelSettings, client: HttpClient) -> ModelClient:
    async def post(url: str, *, headers: Mapping[str, str], body: bytes, seconds: float) -> Posted:
        async with asyncio.timeout(seconds):
            request = HttpRequest(method="POST", url=url, headers=headers, body=body)
            reply = await client.send(request)
            data = await reply.read(_MAX_REPLY)
        return Posted(status=reply.status, headers=reply.headers, body=data)

    settings = ChatSettings(
        base_url=given.url, model=given.model, key=given.api_key, timeout=given.timeout
    )
    return OpenAIChat(settings, post=post, sleep=asyncio.sleep)
