"""Opening the registry of these settings, with the key of its secrets.

Never makes up a key: it comes from the OS keyring or from a 0600 file beside the registry.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from thoughtgate.config.files import Loaded
from thoughtgate.core.errors import ConfigError
from thoughtgate.registry.keys import KeyFile, KeySource, choose
from thoughtgate.registry.store import Registry
from thoughtgate.registry.vault import Vault


def registry_file(loaded: Loaded) -> Path:
    """Return where the registry of these settings lies."""
    return loaded.home / "registry.db"


def open_registry(loaded: Loaded) -> Registry:
    """Open the registry, created when missing.

    Raises:
        StoreError: It cannot be used.
        ConfigError: A keyring is asked for, but there is none.
    """
    file = registry_file(loaded)
    key_file = KeyFile(loaded.home / "registry.key")
    keyring = _keyring(file) if loaded.settings.gateway.key == "keyring" else None
    return Registry.open(file, vault=Vault(choose(key_file, keyring)))


@contextmanager
def opened_registry(loaded: Loaded) -> Iterator[Registry]:
    """Give the registry, closed at the end of the block.

    Raises:
        StoreError: It cannot be used.
        ConfigError: A keyring is asked for, but there is none.
    """
    registry = open_registry(loaded)
    try:
        yield registry
    finally:
        registry.close()


def _keyring(file: Path) -> KeySource:
    try:
        module: Any = import_module("thoughtgate.registry.keyring_key")
    except ImportError:
        raise ConfigError(
            message='gateway.key: "keyring" needs the extra: pip install "thoughtgate[keyring]"'
        ) from None
    if not module.usable():
        raise ConfigError(
            message='gateway.key: no keyring works here; use key = "file", or unlock one'
        )
    account = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]
    source: KeySource = module.KeyringKey(account)
    return source
