"""`thoughtgate reload`: running gateways read their configuration file again.

Never starts or stops one: a file that cannot be used changes nothing.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click
import msgspec

from thoughtgate.app.presence import running
from thoughtgate.cli.output import json_flag, show
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.cli.target import Target, target
from thoughtgate.core.errors import ConfigError
from thoughtgate.surface.admin_values import Reloaded


@click.command()
@json_flag
@click.pass_obj
def reload(chosen: Path | None, as_json: bool) -> None:
    """Have running gateways read their configuration file again.

    That is the gateway at --server, else all that listen here. A file that cannot be used changes
    nothing, and is told with every fault. Gateways on a pipe belong to their clients and are left
    alone.
    """
    far = target()
    done = [(one.url, _reloaded(one)) for one in ([far] if far else _here(chosen))]
    value = [{"url": url, **msgspec.to_builtins(reloaded)} for url, reloaded in done]
    show(value, [_line(url, reloaded) for url, reloaded in done], as_json=as_json)


def _here(chosen: Path | None) -> Sequence[Target]:
    """Return the gateways on this registry that listen.

    Raises:
        ConfigError: There is none.
    """
    home = loaded_or_fail(chosen).home
    found = [Target(one.url, None) for one in running(home) if one.url]
    if not found:
        raise ConfigError(message="no gateway listens here; start one with: thoughtgate serve")
    return found


def _reloaded(one: Target) -> Reloaded:
    """Ask a gateway; what that takes is imported only now."""
    line = import_module("thoughtgate.cli.remote_line").Line(one)
    found: Reloaded = line.do(Reloaded, "POST", "reload")
    return found


def _line(url: str, done: Reloaded) -> str:
    changed = [
        f"{word} {', '.join(names)}"
        for word, names in (("servers", done.servers), ("domains", done.domains))
        if names
    ]
    said = "; ".join(changed) or "nothing is different"
    parts = ", ".join(f"[{part}]" for part in done.restart)
    restart = f"; {parts} has changed: start the gateway again for that" if parts else ""
    return f"{url}: {said}{restart}"
