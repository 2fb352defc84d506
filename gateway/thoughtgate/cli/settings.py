"""How commands get at settings and registry: one place that reads the environment.

Never caches: a command reads its configuration once.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from thoughtgate.app.stores import open_registry
from thoughtgate.cli.target import refuse_remote
from thoughtgate.config.files import Loaded, load
from thoughtgate.registry.store import Registry


def loaded_or_fail(file: Path | None) -> Loaded:
    """Return the settings that a command works with.

    Raises:
        ConfigError: They cannot be used, or a gateway elsewhere was asked for.
    """
    refuse_remote()
    return load(file, os.environ)


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
