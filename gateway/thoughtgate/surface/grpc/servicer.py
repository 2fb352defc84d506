"""The services of the gRPC face: who answers which method, in bytes on both sides.

Never knows how a call is carried or a list made: each method reads, asks, and answers.
"""

from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from thoughtgate.core.calls import Principal
from thoughtgate.core.domains import DEFAULT_DOMAIN
from thoughtgate.core.errors import Malformed, Overloaded
from thoughtgate.surface.desk import Desk
from thoughtgate.surface.grpc.calling import Caller
from thoughtgate.surface.grpc.errors import DOMAIN, ENDED
from thoughtgate.surface.grpc.ports import DomainGateway
from thoughtgate.surface.grpc.rpcs import Rpc, Rpcs
from thoughtgate.surface.grpc.tools import Lists
from thoughtgate.surface.mailbox import Changes
from thoughtgate.surface.settings import FaceSettings
from thoughtgate_proto.gateway.v1.gateway_pb2 import (
    CallToolRequest,
    Domain,
    FindToolsRequest,
    ListDomainsResponse,
    ListToolsRequest,
    WatchToolsRequest,
    WatchToolsResponse,
)

SERVICE: Final = f"{DOMAIN}.GatewayServer"

M = TypeVar("M", bound=Message)

_CHANGED: Final = {"tools": b""}
"""A watcher is told that the list changed, not how."""


class GatewayService:
    """Answers for `thoughtgate.gateway.v1.GatewayServer`."""

    def __init__(self, gateway: DomainGateway, settings: FaceSettings) -> None:
        self._gateway = gateway
        self._settings = settings
        self._changes = Changes(gateway)
        self._lists = Lists(settings.page_size)
        self._caller = Caller(gateway, Desk(gateway), settings.call_timeout)
        self.watchers = 0

    def close(self) -> None:
        """End everything that watches."""
        self._changes.close()

    def handler(self, rpcs: Rpcs) -> grpc.GenericRpcHandler:
        """Return what a gRPC server takes."""
        one, many = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "ListDomains": one(rpcs.served(self._list_domains)),
            "ListTools": one(rpcs.served(self._list_tools)),
            "FindTools": one(rpcs.served(self._find_tools)),
            "CallTool": many(rpcs.served(self._call_tool)),
            "WatchTools": many(rpcs.served(self._watch_tools)),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def _list_domains(self, data: bytes, rpc: Rpc) -> bytes:
        del data
        self._identified(rpc)
        domains = [
            Domain(
                name=name,
                instructions=domain.instructions,
                tools=len(self._gateway.view(name).entries),
                engine=domain.engine,
            )
            for name, domain in sorted(self._gateway.domains.items())
        ]
        return ListDomainsResponse(domains=domains).SerializeToString()

    async def _list_tools(self, data: bytes, rpc: Rpc) -> bytes:
        request = read(ListToolsRequest, data)
        self._identified(rpc)
        view = self._gateway.view(request.domain or DEFAULT_DOMAIN)
        return self._lists.page(view, request).SerializeToString()

    async def _find_tools(self, data: bytes, rpc: Rpc) -> bytes:
        request = read(FindToolsRequest, data)
        self._identified(rpc)
        view = self._gateway.view(request.domain or DEFAULT_DOMAIN)
        return (await self._lists.found(view, request)).SerializeToString()

    async def _call_tool(self, data: bytes, rpc: Rpc) -> None:
        request = read(CallToolRequest, data)
        who = self._identified(rpc)
        domain = request.domain or DEFAULT_DOMAIN
        self._gateway.view(domain)
        await self._caller.call(request, domain, who, rpc)

    async def _watch_tools(self, data: bytes, rpc: Rpc) -> None:
        request = read(WatchToolsRequest, data)
        self._identified(rpc)
        domain = request.domain or DEFAULT_DOMAIN
        self._gateway.view(domain)
        if self.watchers >= self._settings.max_streams:
            raise Overloaded(message=f"{self._settings.max_streams} watch already; try again later")
        self.watchers += 1
        mailbox = self._changes.join(domain, _CHANGED)
        try:
            reader, known = mailbox.attach(), request.known_revision
            changed: object = True
            while changed is not None:
                revision = self._gateway.view(domain).revision
                if revision != known:
                    await rpc.write(WatchToolsResponse(revision=revision).SerializeToString())
                    known = revision
                changed = await reader.take(None)
        finally:
            self.watchers -= 1
            self._changes.leave(mailbox)
        rpc.end(ENDED)

    def _identified(self, rpc: Rpc) -> Principal:
        """Return who asks, as the settings tell by what came with the request."""
        return self._settings.identify({
            key.encode("latin-1"): value if isinstance(value, bytes) else value.encode()
            for key, value in rpc.metadata.items()
        })


def read(kind: type[M], data: bytes) -> M:
    """Return the message that bytes spell.

    Raises:
        Malformed: They spell none.
    """
    try:
        return kind.FromString(data)
    except DecodeError:
        message = f"this is no {kind.DESCRIPTOR.full_name}"
        raise Malformed(message=message) from None
