"""What the description of a gRPC server may say: its address, its metadata, and what fits together.

Never opens a connection or a file, and never guesses a port.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import GrpcTransport, HttpTransport, Streaming, Tls, Transport

PLAIN, SECURE = "grpc://", "grpcs://"
SCHEMES = (PLAIN, SECURE)
HTTP_SCHEMES = ("http://", "https://")
FORMS = "http://, https://, grpc:// or grpcs://"
"""How the URL of a server begins, in words."""

_TLS_PORT = 443
_EXAMPLE = "such as grpc://127.0.0.1:50051"
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
_SERVICE = re.compile(r"\*|[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(/[A-Za-z_]\w*)?", re.ASCII)
_KEY = re.compile(r"[0-9a-z_.-]+")
_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_RESERVED = frozenset({
    "connection", "content-length", "content-type", "host", "idempotency-key", "te", "traceparent",
    "tracestate", "trailer", "transfer-encoding", "upgrade", "user-agent",
})  # fmt: skip


NOT_OF_GRPC: Mapping[str, str] = {
    "era": "is for MCP; a gRPC server has no protocol era",
    "sse": "is for HTTP; a gRPC server has no such choice",
    "sharing": "is for MCP; everybody shares the one connection to a gRPC server",
    "env": "is for a command; a gRPC server takes headers",
    "cwd": "is for a command; a gRPC server has no folder",
}
"""Keys of other servers that a gRPC server cannot have, and why."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """What cannot stand as it is: the key of a configuration where, and a sentence why."""

    key: str
    text: str


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
        raise ConfigError(message="the host of the URL is no name and no address")
    secure = url.startswith(SECURE)
    if port is None and not secure:
        raise ConfigError(
            message=f"the URL names no port, and gRPC has no usual one: grpc://{host}:PORT"
        )
    if port == 0:
        raise ConfigError(message="the port of the URL must be 1 to 65535")
    return Address(host=host, port=port or _TLS_PORT, secure=secure)


def misfits(transport: GrpcTransport) -> Iterator[Misfit]:
    """Yield everything in a description that cannot be, or does not fit together."""
    try:
        secure = address_of(transport.url).secure
    except ConfigError as error:
        yield Misfit(key="url", text=error.message)
        secure = True
    yield from _tls(transport.tls, secure=secure)
    yield from _reflecting(transport)
    yield from _metadata(transport.headers)


def _tls(tls: Tls, *, secure: bool) -> Iterator[Misfit]:
    named = {"tls_ca": tls.ca, "tls_cert": tls.cert, "tls_key": tls.key, "tls_name": tls.name}
    given = [key for key, value in named.items() if value]
    if given and not secure:
        yield Misfit(key=given[0], text="is for TLS, and grpc:// has none; write grpcs://")
    if bool(tls.cert) != bool(tls.key):
        missing = "tls_key" if tls.cert else "tls_cert"
        yield Misfit(key=missing, text="is missing: a certificate and its key come together")


def _reflecting(transport: GrpcTransport) -> Iterator[Misfit]:
    for name in transport.reflect:
        if _SERVICE.fullmatch(name) is None:
            said = f"{name[:80]} is no service; write package.Service, package.Service/Method or *"
            yield Misfit(key="reflect", text=said)
    if transport.reflect:
        return
    if transport.descriptor_set:
        said = "needs reflect: the services of it that become tools, or * for all"
        yield Misfit(key="descriptor_set", text=said)
    only = "is for reflected services; a server of our own protocol has no such choice"
    if transport.streaming is not Streaming.ARRAY:
        yield Misfit(key="streaming", text=only)
    if transport.bidi:
        yield Misfit(key="bidi", text=only)


def _metadata(headers: Mapping[str, str]) -> Iterator[Misfit]:
    seen = set[str]()
    for name, value in headers.items():
        key, at = name.lower(), f"headers.{name[:80]}"
        if _KEY.fullmatch(key) is None:
            yield Misfit(key=at, text="no name of metadata; use letters, digits, -, _ and .")
        elif key in _RESERVED or key.startswith("grpc-"):
            yield Misfit(key=at, text="is set by the gateway itself; leave it out")
        elif key in seen:
            yield Misfit(key=at, text="is there twice: names of metadata have no capitals")
        elif _VALUE.fullmatch(value) is None:
            said = "has a value that metadata cannot carry: printable ASCII, no spaces around it"
            yield Misfit(key=at, text=said)
        elif key.endswith("-bin") and _BASE64.fullmatch(value) is None:
            yield Misfit(key=at, text="must be base64, as its name ends in -bin")
        seen.add(key)


def usable(transport: GrpcTransport) -> GrpcTransport:
    """Return the same with the names of its metadata as gRPC writes them.

    Raises:
        ConfigError: Something of it cannot be; the first of it is named.
    """
    for misfit in misfits(transport):
        said = misfit.text if misfit.key == "url" else f"{misfit.key}: {misfit.text}"
        raise ConfigError(message=said)
    return lowered(transport)


def lowered(transport: GrpcTransport) -> GrpcTransport:
    """Return the same with the names of its metadata in small letters, as gRPC wants them."""
    headers = {name.lower(): value for name, value in transport.headers.items()}
    return replace(transport, headers=headers)


def files_of(transport: Transport) -> tuple[str, ...]:
    """Return the files of this machine that a transport names."""
    if not isinstance(transport, GrpcTransport):
        return ()
    tls = transport.tls
    return tuple(filter(None, (transport.descriptor_set, tls.ca, tls.cert, tls.key)))


def with_files(transport: GrpcTransport, place: Callable[[str], str]) -> GrpcTransport:
    """Return the same with each file that it names put through `place`."""
    tls = transport.tls
    ca, cert, key = (place(file) if file else "" for file in (tls.ca, tls.cert, tls.key))
    found = transport.descriptor_set
    return replace(
        transport,
        descriptor_set=place(found) if found else "",
        tls=replace(tls, ca=ca, cert=cert, key=key),
    )


def anchored(file: str, folder: Path) -> str:
    """Return a path that means the same from anywhere: from `folder`, or the user's home."""
    return os.path.normpath(folder / os.path.expanduser(file)) if file else ""


def url_fault(url: str) -> str:
    """Return why a URL is none of a server, in words; empty when it may be one."""
    return "" if url.startswith((*HTTP_SCHEMES, *SCHEMES)) else f"must begin with {FORMS}"


def transport_at(url: str) -> HttpTransport | GrpcTransport:
    """Return the bare transport of a URL, by its scheme."""
    return GrpcTransport(url=url) if is_grpc(url) else HttpTransport(url=url)
