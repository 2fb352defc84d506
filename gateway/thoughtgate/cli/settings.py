"""How commands get at settings and registry: one place that reads the environment.

Never caches: a command reads its configuration once.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from thoughtgate.app.stores import open_registry
from thoughtgate.config.files import Loaded, load
from thoughtgate.core.errors import ConfigError
from thoughtgate.registry.store import Registry


def loaded_or_fail(file: Path | None) -> Loaded:
    """Return the settings that a command works with.

    Raises:
        ConfigError: They cannot be used.
    """
    return load(file, os.environ)


def as_written(loaded: Loaded) -> Loaded:
    """Return the same with the variables of the file not filled in: fit to be shown."""
    return msgspec.structs.replace(loaded, settings=loaded.written)


def refuse_configured(loaded: Loaded, noun: Literal["server", "domain"], name: str) -> None:
    """Refuse to change an entry of the configuration file.

    Raises:
        ConfigError: It is one.
    """
    settings = loaded.settings
    if name in (settings.servers if noun == "server" else settings.domains):
        raise ConfigError(message=f"{noun} {name} comes from {loaded.file}; change it there")


@contextmanager
def opened_registry(loaded: Loaded) -> Iterator[Registry]:
    """Open the registry for the length of a command.

    Raises:
        StoreError: It cannot be used.
    """
    registry = open_registry(loaded)
    try:
        yield registry
    finally:
        registry.close()
