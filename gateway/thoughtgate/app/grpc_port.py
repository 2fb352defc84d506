"""The port of the gRPC face, reserved before anything else is made.

Never listens: gRPC's own library does, in each worker, beside this reservation.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import msgspec

from thoughtgate.config.files import Loaded
from thoughtgate.core.errors import ConfigError


@contextmanager
def grpc_reserved(loaded: Loaded) -> Iterator[Loaded]:
    """Hold the port of the gRPC face for the length of the block; give settings that name it.

    Nobody else can have it, while any number of our processes may listen there side by side.

    Raises:
        ConfigError: The address cannot be had.
    """
    gateway = loaded.settings.gateway
    if gateway.grpc_port is None:
        yield loaded
        return
    if gateway.grpc_port == gateway.port != 0:
        raise ConfigError(
            message=f"port and grpc_port are both {gateway.port}; choose another --grpc-port"
        )
    family = socket.AF_INET6 if ":" in gateway.host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as held:
        try:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind((gateway.host, gateway.grpc_port))
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
            # only now: who binds with it from the start would share a port that is taken
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        except OSError as error:
            raise ConfigError(
                message=f"cannot serve gRPC on {gateway.host}:{gateway.grpc_port}: "
                f"{os.strerror(error.errno or 0).lower()}; choose another --grpc-port"
            ) from None
        yield _with_port(loaded, held.getsockname()[1])


def grpc_address(loaded: Loaded) -> str:
    """Return the URL at which clients over gRPC find the gateway, empty where it is off."""
    target = grpc_target(loaded)
    return f"grpc://{target}" if target else ""


def grpc_target(loaded: Loaded) -> str:
    """Return the same as `HOST:PORT`."""
    gateway = loaded.settings.gateway
    if gateway.grpc_port is None:
        return ""
    # gRPC would take a name for all of its addresses, of which one is reserved
    host = "127.0.0.1" if gateway.host.lower() == "localhost" else gateway.host
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{gateway.grpc_port}"


def _with_port(loaded: Loaded, port: int) -> Loaded:
    gateway = msgspec.structs.replace(loaded.settings.gateway, grpc_port=port)
    settings = msgspec.structs.replace(loaded.settings, gateway=gateway)
    return msgspec.structs.replace(loaded, settings=settings)
