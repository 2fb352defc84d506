"""Registered models: what was said of them comes back, and their keys are never there in plain."""

from pathlib import Path

import pytest

from tests.support.registries import CANARY, FILE, open_in, raw
from thoughtgate.core.errors import ConfigError, StoreSealed
from thoughtgate.core.servers import HttpTransport
from thoughtgate.registry.models import StoredModel
from thoughtgate.registry.store import Registry
from thoughtgate.testing.values import make_server

SETTINGS = {"url": "http://127.0.0.1:9/v1", "model": "m", "prices": {"input": 0.5}}
KEYED = StoredModel(name="big", settings=SETTINGS, key=CANARY)


def test_a_model_comes_back_after_a_restart_with_its_key(folder: Path) -> None:
    first = open_in(folder)
    first.put_model(KEYED)
    first.put_model(StoredModel(name="bare", settings={}))
    first.close()
    again = open_in(folder)
    bare, big = again.models()
    assert (bare.key, bare.has_key) == ("", False)
    assert (big.settings, big.key, big.has_key) == (SETTINGS, CANARY, True)
    assert again.models_without_keys()[1].key == ""
    again.close()


def test_a_key_is_nowhere_in_plain(registry: Registry, folder: Path) -> None:
    registry.put_model(KEYED)
    registry.close()
    assert CANARY not in repr(KEYED)
    assert CANARY.encode() not in (folder / FILE).read_bytes()


def test_a_key_moved_to_another_model_or_to_a_server_does_not_open(
    registry: Registry, folder: Path
) -> None:
    registry.put_model(KEYED)
    registry.put_model(StoredModel(name="other", settings={}, key="another"))
    with raw(folder) as connection:
        connection.execute(
            "UPDATE models SET sealed = (SELECT sealed FROM models WHERE name = 'big')"
        )
    with pytest.raises(StoreSealed, match="model other"):
        registry.models()


def test_a_lost_key_file_names_the_models_and_lets_them_be_removed(folder: Path) -> None:
    first = open_in(folder)
    first.put_model(KEYED)
    first.close()
    (folder / "key").unlink()
    again = open_in(folder)
    with pytest.raises(StoreSealed, match="model big"):
        again.models()
    server = make_server("s", transport=HttpTransport(url="http://h", headers={"a": "b"}))
    with pytest.raises(StoreSealed, match=r"model big.*thoughtgate model rm"):
        again.put_server(server)
    again.remove_model("big")
    again.put_server(server)
    again.close()


def test_what_is_not_there_cannot_be_removed_and_names_have_a_form(registry: Registry) -> None:
    with pytest.raises(ConfigError):
        registry.remove_model("none")
    with pytest.raises(ConfigError):
        registry.put_model(StoredModel(name="A b", settings={}))


def test_the_same_name_again_replaces_key_and_settings(registry: Registry) -> None:
    registry.put_model(KEYED)
    before = registry.revision()
    registry.put_model(StoredModel(name="big", settings={"model": "n"}))
    (model,) = registry.models()
    assert (model.settings, model.key, model.has_key) == ({"model": "n"}, "", False)
    assert registry.revision() > before
