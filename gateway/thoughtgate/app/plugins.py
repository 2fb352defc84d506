"""Plug-ins: stages of the user's, found as entry points and named in the configuration.

Never loads one that the configuration does not name, and never starts without one that it names:
a stage may be somebody's policy.
"""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

from thoughtgate.calls.path import Middleware
from thoughtgate.core.errors import ConfigError

GROUP = "thoughtgate.middleware"
"""The entry point group: each value is a `core.ports.Stage`."""


def middleware(names: Iterable[str]) -> tuple[Middleware, ...]:
    """Return the named stages in their order.

    Raises:
        ConfigError: One is not installed, or cannot be loaded.
    """
    found = {one.name: one for one in entry_points(group=GROUP)}
    return tuple(_loaded(name, found) for name in names)


def _loaded(name: str, found: dict[str, EntryPoint]) -> Middleware:
    if name not in found:
        raise ConfigError(message=f"gateway.plugins: no plug-in {name[:80]} is installed")
    try:
        stage = found[name].load()
    except Exception as error:
        raise ConfigError(
            message=f"gateway.plugins: {name} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    return Middleware(name=name, stage=stage)
