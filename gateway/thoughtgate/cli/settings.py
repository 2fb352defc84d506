"""How commands get at settings: one place that reads the environment.

Never caches: a command reads its configuration once.
"""

import os
import sys
from pathlib import Path

import msgspec

from thoughtgate.cli.target import refuse_remote
from thoughtgate.config.clients.places import Machine
from thoughtgate.config.files import Loaded, load


def loaded_or_fail(file: Path | None) -> Loaded:
    """Return the settings that a command works with.

    Raises:
        ConfigError: They cannot be used, or a gateway elsewhere was asked for.
    """
    refuse_remote()
    return load(file, os.environ)


def machine() -> Machine:
    """Return what the places of other programs' files depend on."""
    return Machine(platform=sys.platform, home=Path.home(), environ=os.environ)


def with_gateway(loaded: Loaded, **given: int | None) -> Loaded:
    """Return the settings with what the command line says of the gateway."""
    said = {name: value for name, value in given.items() if value is not None}
    gateway = msgspec.structs.replace(loaded.settings.gateway, **said)
    settings = msgspec.structs.replace(loaded.settings, gateway=gateway)
    return msgspec.structs.replace(loaded, settings=settings)
