"""Model clients from the settings, over the gateway's own HTTP client.

Never asks a model by itself.
"""

import asyncio
from collections.abc import Mapping
from typing import Literal

from thoughtgate.config.settings import ModelSettings, Settings
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.ports import ModelClient
from thoughtgate.models.anthropic import Anthropic
from thoughtgate.models.openai_chat import ChatSettings, OpenAIChat
from thoughtgate.models.patience import Door, Patience
from thoughtgate.models.posting import Posted
from thoughtgate.models.priced import Priced
from thoughtgate.models.prices import Prices
from thoughtgate.upstream.ports import HttpClient, HttpRequest


def model_named(settings: Settings, name: str, client: HttpClient) -> ModelClient | None:
    """Return the model of that name; for an empty name the default one, None when there is none.

    Raises:
        ConfigError: No model has that name.
    """
    chosen = chosen_model(settings, name)
    if not chosen:
        return None
    return model_client(settings.models[chosen], client)


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


def model_client(given: ModelSettings, client: HttpClient) -> ModelClient:
    """Return the client of one model, whose replies say what they cost."""

    async def post(url: str, *, headers: Mapping[str, str], body: bytes) -> Posted:
        return await client.send(HttpRequest(method="POST", url=url, headers=headers, body=body))

    settings = ChatSettings(
        base_url=given.url,
        model=given.model,
        key=given.api_key,
        patience=Patience(timeout=given.timeout, stall=given.stall, tries=given.tries),
        stream=given.stream,
        omit=frozenset(given.omit),
    )
    door = Door(post=post, sleep=asyncio.sleep)
    made = Anthropic if given.api == "anthropic" else OpenAIChat
    return Priced(made(settings, door), _prices(given.prices))


def _prices(given: Mapping[Literal["input", "output", "cached"], float]) -> Prices | None:
    if "input" not in given or "output" not in given:
        return None
    return Prices(input=given["input"], output=given["output"], cached=given.get("cached"))
