"""The models there are, from both places: the configuration file and the registry.

Never shows a key, and never lets the registry change a model of the file: the file's wins.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from thoughtgate.app.masks import bare_url, shown_url
from thoughtgate.app.models import chosen_model
from thoughtgate.config.files import Loaded
from thoughtgate.config.settings import ModelSettings, Settings
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.json import JsonObject
from thoughtgate.registry.models import StoredModel
from thoughtgate.registry.store import Registry

_KEY, _DEFAULT = "api_key", "default"


def settings_with_models(loaded: Loaded, registry: Registry) -> Settings:
    """Return the settings with the registry's models and their keys beside those of the file.

    Raises:
        ConfigError: A model of the registry cannot be used by this release.
        StoreSealed: A key cannot be opened.
    """
    return _merged(loaded.settings, registry.models())


def listed(loaded: Loaded, registry: Registry) -> tuple[JsonObject, ...]:
    """Return what may be shown of the models, sorted by name; needs no key.

    Raises:
        ConfigError: A model of the registry cannot be used by this release.
    """
    stored = {one.name: one for one in registry.models_without_keys()}
    settings = _merged(loaded.settings, tuple(stored.values()))
    default = chosen_model(settings, "")
    return tuple(
        {
            "name": name,
            "api": model.api,
            "model": model.model,
            "url": shown_url(model.url),
            "key": bool(model.api_key) or (_from_registry(loaded, name) and stored[name].has_key),
            "prices": dict(model.prices),
            "default": name == default,
            "source": "registry" if _from_registry(loaded, name) else "config",
        }
        for name, model in sorted(settings.models.items())
    )


def register(
    loaded: Loaded, registry: Registry, model: tuple[str, ModelSettings], *, default: bool
) -> None:
    """Store a model under its name, or replace it; with `default` it is the one that is used.

    Raises:
        ConfigError: The file has one of this name, or the name cannot be used.
        StoreSealed: It has a key, and the registry's is missing or wrong.
    """
    name, settings = model
    refuse_configured(loaded, name)
    if bare_url(settings.url) != settings.url:
        raise ConfigError(
            message="a model's URL is kept in plain text: leave user, password and query out, "
            "and give the key as such"
        )
    if default:
        for one in registry.models():
            if one.name != name and one.settings.get(_DEFAULT):
                registry.put_model(_stored(one.name, dict(one.settings), one.key, default=False))
    plain: dict[str, Any] = msgspec.to_builtins(settings)
    registry.put_model(_stored(name, plain, plain.pop(_KEY), default=default))


def refuse_configured(loaded: Loaded, name: str) -> None:
    """Refuse to change a model of the configuration file.

    Raises:
        ConfigError: It is one.
    """
    if name in loaded.settings.models:
        raise ConfigError(message=f"model {name} comes from {loaded.file}; change it there")


def _stored(name: str, plain: dict[str, Any], key: str, *, default: bool) -> StoredModel:
    return StoredModel(name=name, settings=plain | {_DEFAULT: default}, key=key)


def _merged(settings: Settings, stored: tuple[StoredModel, ...]) -> Settings:
    chosen = [one.name for one in stored if one.settings.get(_DEFAULT)]
    usable = {one.name: _settings(one.name, one.settings, one.key) for one in stored}
    return msgspec.structs.replace(
        settings,
        models={**usable, **settings.models},
        default_model=settings.default_model or next(iter(chosen), ""),
    )


def _settings(name: str, plain: Mapping[str, Any], key: str) -> ModelSettings:
    given = {field: value for field, value in plain.items() if field != _DEFAULT}
    try:
        return msgspec.convert({**given, _KEY: key}, ModelSettings)
    except msgspec.ValidationError as error:
        raise ConfigError(
            message=f"model {name}: {error}; remove it with: thoughtgate model rm {name}"
        ) from None


def _from_registry(loaded: Loaded, name: str) -> bool:
    return name not in loaded.settings.models
