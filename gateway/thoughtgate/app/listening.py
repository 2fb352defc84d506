"""The socket that clients connect to.

Never beyond loopback: the configuration has been held to that.
"""

import os
import resource
import socket
from dataclasses import dataclass
from typing import Final

from thoughtgate.config.files import Loaded
from thoughtgate.core.errors import ConfigError

_SHARE: Final = 4
"""One part in so many of the open files is kept for servers, the registry and refused clients."""

_WANTED: Final = 65_536
"""Open files that are asked for: each of thousands of sessions may hold one, or more."""

_MOST: Final = 1_000_000
_BACKLOG: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How many clients may be connected, and how many more may wait to be refused."""

    clients: int
    backlog: int


def room() -> Room:
    """Return the room that the system's limit of open files leaves, raised as far as we may."""
    limit = _raised()
    if not 0 < limit < _MOST:
        limit = _MOST
    kept = limit // _SHARE
    clients = limit - kept - len(os.listdir("/dev/fd"))
    return Room(clients=max(clients, 1), backlog=min(max(kept // 2, 1), _BACKLOG))


def _raised() -> int:
    """Raise the soft limit of open files towards the hard one; return what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # some systems take less than they say
        return soft
    return wanted


def bound(loaded: Loaded) -> socket.socket:
    """Return a socket at the address of these settings, which does not listen yet.

    Raises:
        ConfigError: The address cannot be had.
    """
    gateway = loaded.settings.gateway
    family = socket.AF_INET6 if ":" in gateway.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((gateway.host, gateway.port))
    except OSError as error:
        listening.close()
        raise _taken(gateway.host, gateway.port, error) from None
    return listening


def listen(listening: socket.socket) -> None:
    """Let clients connect from now on.

    Raises:
        ConfigError: Another program was quicker; until somebody listens, many may be bound.
    """
    try:
        listening.listen(_BACKLOG)
    except OSError as error:
        host, port = listening.getsockname()[:2]
        raise _taken(host, port, error) from None


def _taken(host: str, port: int, error: OSError) -> ConfigError:
    why = os.strerror(error.errno or 0).lower()
    return ConfigError(message=f"cannot listen on {host}:{port}: {why}; choose another --port")


def address(listening: socket.socket) -> str:
    """Return the URL of what listens there."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
