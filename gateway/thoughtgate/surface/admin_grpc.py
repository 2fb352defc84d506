"""What the admin API takes and gives of a gRPC server, besides what every server has.

Never has a field for a file on the way in: what the gateway reads is chosen on its own machine.
"""

from typing import Annotated

from msgspec import Meta, Struct

from thoughtgate.core.servers import Streaming

Service = Annotated[str, Meta(min_length=1, max_length=400)]


class GrpcEntry(Struct, kw_only=True, frozen=True):
    """What a gRPC server has besides a URL; files are those of the gateway's machine.

    Without `reflect` the server speaks the gateway's own protocol.
    """

    reflect: tuple[str, ...] = ()
    descriptor_set: str = ""
    streaming: Streaming = Streaming.ARRAY
    bidi: bool = False
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    tls_name: str = ""


class GrpcPut(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What a gRPC server has besides a URL; without `reflect` it speaks the gateway's protocol."""

    reflect: Annotated[tuple[Service, ...], Meta(max_length=200)] = ()
    streaming: Streaming = Streaming.ARRAY
    bidi: bool = False
    tls_name: Annotated[str, Meta(max_length=253)] = ""
