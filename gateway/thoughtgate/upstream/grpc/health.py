"""Whether a gRPC server says that it serves, by the standard health service.

Never takes a server that has no such service for one that does not serve.
"""

from google.protobuf.message import DecodeError

from thoughtgate.core.errors import UpstreamError, UpstreamLost, UpstreamUnreachable
from thoughtgate.upstream.grpc.channel import Connection
from thoughtgate_proto.health.v1.health_pb2 import STATUS_NOT_SERVING, HealthRequest, HealthResponse

CHECK = "/grpc.health.v1.Health/Check"


async def check_health(connection: Connection, service: str) -> None:
    """Ask a server that has the service of health whether `service` is served.

    Raises:
        UpstreamUnreachable: It says no.
        UpstreamLost: The connection broke.
    """
    request = HealthRequest(service=service).SerializeToString()
    try:
        said = HealthResponse.FromString(await connection.answer(CHECK, request))
    except UpstreamLost:
        raise
    except (UpstreamError, DecodeError):
        return  # it has no such service, or does not know this name
    if said.status == STATUS_NOT_SERVING:
        raise UpstreamUnreachable(message="it says that it does not serve now")
