"""Models of the configuration and of the registry, side by side."""

from pathlib import Path

import pytest

from tests.support.models import ask
from tests.support.waiting import within
from thoughtgate.app.compose import opened
from thoughtgate.app.model_entries import register, settings_with_models
from thoughtgate.app.models import chosen_model, model_client
from thoughtgate.app.stores import opened_registry
from thoughtgate.config.files import Loaded
from thoughtgate.config.settings import ModelSettings, Settings
from thoughtgate.core.errors import ConfigError
from thoughtgate.registry.models import StoredModel
from thoughtgate.testing.anthropic_server import AnthropicServer
from thoughtgate.upstream.http_client import PooledClient

FILED = ModelSettings(url="http://file/v1", model="f")
OURS = ModelSettings(url="http://ours/v1", model="o", api_key="k", omit=("temperature",))


def loaded(folder: Path, **models: ModelSettings) -> Loaded:
    return Loaded(settings=Settings(models=models), file=folder / "gate.toml", home=folder)


def test_both_are_there_and_the_file_wins(tmp_path: Path) -> None:
    with opened_registry(loaded(tmp_path)) as store:
        register(loaded(tmp_path), store, ("ours", OURS), default=True)
        register(loaded(tmp_path), store, ("both", OURS), default=False)
        settings = settings_with_models(loaded(tmp_path, both=FILED), store)
    assert settings.models == {"ours": OURS, "both": FILED}
    assert chosen_model(settings, "") == "ours"
    assert chosen_model(settings, "both") == "both"


def test_a_model_that_a_newer_release_wrote_is_named(tmp_path: Path) -> None:
    with opened_registry(loaded(tmp_path)) as store:
        store.put_model(StoredModel(name="odd", settings={"url": "http://h", "wings": 2}))
        with pytest.raises(ConfigError, match="thoughtgate model rm odd"):
            settings_with_models(loaded(tmp_path), store)


async def test_a_gateway_knows_registered_models_from_its_start(tmp_path: Path) -> None:
    with opened_registry(loaded(tmp_path)) as store:
        register(loaded(tmp_path), store, ("ours", OURS), default=False)
    async with opened(loaded(tmp_path), {}) as app:
        assert app.reasoning.settings.models == {"ours": OURS}
        assert app.loaded.settings.models == {}, "a reload compares what the file says"


async def test_settings_reach_the_client_of_either_api() -> None:
    usage = {"input_tokens": 10, "output_tokens": 2}
    client = PooledClient()
    async with AnthropicServer(lambda _: "hello", usage=usage) as server:
        given = ModelSettings(
            url=server.url,
            model="m",
            api="anthropic",
            api_key="k",
            stream=True,
            omit=("temperature",),
            prices={"input": 3, "output": 15},
        )
        reply = await within(model_client(given, client).complete(ask("q")))
    await client.aclose()
    assert (reply.text, reply.cost_micros) == ("hello", 60)
    (seen,) = server.seen
    assert (seen.path, seen.headers["x-api-key"], seen.body["stream"]) == (
        "/v1/messages",
        "k",
        True,
    )
    assert "temperature" not in seen.body
