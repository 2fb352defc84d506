"""The URL of a gRPC server: a host and a port, and whether by TLS.

Never resolves a name, and never guesses a port.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from thoughtgate.core.errors import ConfigError

PLAIN, SECURE = "grpc://", "grpcs://"
SCHEMES = (PLAIN, SECURE)

_TLS_PORT = 443
_EXAMPLE = "such as grpc://127.0.0.1:50051"
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a gRPC server listens, and whether by TLS."""

    host: str
    port: int
    secure: bool

    @property
    def shown(self) -> str:
        """Return host and port as they are written."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def is_grpc(url: str) -> bool:
    """Say whether a URL is that of a gRPC server."""
    return url.startswith(SCHEMES)


def address_of(url: str) -> Address:
    """Return host and port of a URL.

    Raises:
        ConfigError: It is none of a gRPC server, or names more or less than a host and a port.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ConfigError(
            message=f"the URL is malformed; write host and port, {_EXAMPLE}"
        ) from None
    if not is_grpc(url) or not host:
        raise ConfigError(message=f"a gRPC server's URL is grpc://HOST:PORT, {_EXAMPLE}")
    if "@" in parts.netloc:
        raise ConfigError(message="a gRPC URL holds no user and password; give a header instead")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConfigError(
            message="a gRPC URL ends after the port; name services with --reflect, "
            "or reflect in a configuration"
        )
    if _HOST.fullmatch(host) is None:
        raise ConfigError(
            message="the host of the URL is no name and no address; ASCII only, others as xn--…"
        )
    secure = url.startswith(SECURE)
    if port is None and not secure:
        raise ConfigError(
            message=f"the URL names no port, and gRPC has no usual one: grpc://{host}:PORT"
        )
    if port == 0:
        raise ConfigError(message="the port of the URL must be 1 to 65535")
    return Address(host=host, port=port or _TLS_PORT, secure=secure)
