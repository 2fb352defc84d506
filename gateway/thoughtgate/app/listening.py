"""The socket that clients connect to.

Never beyond loopback: the configuration has been held to that.
"""

import os
import socket

from thoughtgate.config.files import Loaded
from thoughtgate.core.errors import ConfigError


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
        raise ConfigError(
            message=f"cannot listen on {gateway.host}:{gateway.port}: "
            f"{os.strerror(error.errno or 0).lower()}; choose another --port"
        ) from None
    return listening


def address(listening: socket.socket) -> str:
    """Return the URL of what listens there."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
