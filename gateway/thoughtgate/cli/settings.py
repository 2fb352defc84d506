"""How commands get at the settings: one place that reads the environment.

Never caches: a command reads its configuration once.
"""

import os
from pathlib import Path

from thoughtgate.config.files import Loaded, load


def loaded_or_fail(file: Path | None) -> Loaded:
    """Return the settings that a command works with.

    Raises:
        ConfigError: They cannot be used.
    """
    return load(file, os.environ)
