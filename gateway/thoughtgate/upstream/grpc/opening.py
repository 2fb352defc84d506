"""Opening a link to a gRPC server: native, or by reflecting what it offers.

Never leaves a channel behind when opening fails.
"""

from importlib import import_module

from thoughtgate.core.servers import GrpcTransport
from thoughtgate.upstream.grpc.channel import connect
from thoughtgate.upstream.grpc.native import NativeLink
from thoughtgate.upstream.home import Home
from thoughtgate.upstream.opening import Means
from thoughtgate.upstream.ports import Link


async def open_grpc(transport: GrpcTransport, home: Home, means: Means) -> Link:
    """Return an open link to a server: to its methods when some are named, else a native one.

    Raises:
        UpstreamError: Why not.
    """
    if transport.reflect or transport.descriptor_set:
        reflected = import_module("thoughtgate.upstream.grpc.reflected")
        link: Link = await reflected.open_reflected(transport, home, means)
        return link
    native = NativeLink(await connect(transport, limit=means.max_result), means.identity)
    greeted = False
    try:
        await native.greet()
        greeted = True
    finally:
        if not greeted:
            await native.aclose()
    return native
