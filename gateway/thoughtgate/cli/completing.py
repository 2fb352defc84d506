"""Names for the shell: of domains, servers and tools, as the registry remembers them.

Never starts a server, makes a registry or prints: a shell that completes must not be disturbed.
"""

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from thoughtgate.core.domains import DEFAULT_DOMAIN
from thoughtgate.core.errors import GateError

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def domain_names(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return the names of domains that begin so."""
    del param
    return _begin(begun, _names(context, "domain_names"))


def server_names(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return the names of servers that begin so."""
    del param
    return _begin(begun, _names(context, "server_names"))


def tool_names(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return the names that the chosen domain shows and that begin so."""
    del param
    domain = context.params.get("domain") or DEFAULT_DOMAIN
    return _begin(begun, _names(context, "tool_names", domain))


def tool_paths(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return each SERVER/TOOL that begins so."""
    del param
    return _begin(begun, _names(context, "tool_paths"))


def _begin(begun: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(begun))


def _names(context: click.Context, kind: str, *more: str) -> Iterable[str]:
    """Ask what is remembered; what that takes is imported only now."""
    chosen = context.find_root().params.get("file")
    look: Any = getattr(import_module("thoughtgate.app.names"), kind)
    file = None if chosen is None else Path(chosen)
    try:
        found: Iterable[str] = look(file, os.environ, *more)
    except (GateError, OSError):  # such as a state folder that nobody may look into
        return ()
    return found
