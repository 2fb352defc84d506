"""A server's own headers as metadata of gRPC, checked before any RPC is made with them.

Never lets through what C-core would refuse: it ends an RPC in an error that says nothing.
"""

from collections.abc import Mapping

from thoughtgate.core.errors import UpstreamUnreachable
from thoughtgate.protos.metadata import MAX_BYTES, TOO_LARGE, bytes_of, header_fault, size_of

Metadata = tuple[tuple[str, str | bytes], ...]
"""Keys in lower case with their values; those of keys that end in `-bin` are bytes."""


def metadata_of(headers: Mapping[str, str]) -> Metadata:
    """Return headers as metadata; the value of a `-bin` key is given as base64.

    Raises:
        UpstreamUnreachable: A header that gRPC cannot carry, or that is the gateway's own.
    """
    if size_of(headers) > MAX_BYTES:
        raise UpstreamUnreachable(message=TOO_LARGE)
    return tuple(_pair(name, value) for name, value in headers.items())


def _pair(name: str, value: str) -> tuple[str, str | bytes]:
    key = name.lower()
    if fault := header_fault(key, value):
        raise UpstreamUnreachable(message=f"the header {name[:80]!r} {fault}")
    if key.endswith("-bin"):
        return key, bytes_of(value) or b""
    return key, value
