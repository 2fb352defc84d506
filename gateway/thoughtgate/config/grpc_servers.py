"""What the description of a gRPC server may say: its metadata, its files, and what fits together.

Never opens a connection or a file.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import GrpcTransport, HttpTransport, Streaming, Tls, Transport
from thoughtgate.protos.metadata import MAX_BYTES, TOO_LARGE, header_fault, size_of
from thoughtgate.protos.urls import SCHEMES, address_of, is_grpc

HTTP_SCHEMES = ("http://", "https://")
FORMS = "http://, https://, grpc:// or grpcs://"
"""How the URL of a server begins, in words."""

_SERVICE = re.compile(r"\*|[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(/[A-Za-z_]\w*)?", re.ASCII)

NOT_OF_GRPC: Mapping[str, str] = {
    "era": "is for MCP; a gRPC server has no protocol era",
    "sse": "is for HTTP; a gRPC server has no such choice",
    "sharing": "is for MCP; everybody shares the one connection to a gRPC server",
    "env": "is for a command; a gRPC server takes headers",
    "cwd": "is for a command; a gRPC server has no folder",
}
"""Keys of other servers that a gRPC server cannot have, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """What cannot stand as it is: the key of a configuration where, and a sentence why."""

    key: str
    text: str


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
        if fault := header_fault(key, value):
            yield Misfit(key=at, text=fault)
        elif key in seen:
            yield Misfit(key=at, text="is there twice: names of metadata have no capitals")
        seen.add(key)
    if size_of(headers) > MAX_BYTES:
        largest = max(headers, key=lambda name: len(headers[name]))
        yield Misfit(key=f"headers.{largest[:80]}", text=TOO_LARGE)


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
