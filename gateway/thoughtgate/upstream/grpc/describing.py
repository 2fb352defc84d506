"""What a gRPC server could offer as tools, for somebody who is about to choose.

Never calls a method of the server's but reflection, and registers nothing.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from thoughtgate.core.errors import Missing, SchemaRejected, UpstreamError, UpstreamGarbled
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import GrpcTransport
from thoughtgate.protos.descriptors import Descriptors, Method
from thoughtgate.protos.tools import tool_of
from thoughtgate.upstream.grpc.channel import Connection, connect
from thoughtgate.upstream.grpc.native import SERVICE
from thoughtgate.upstream.grpc.offered import DESCRIBED, Declared, read_set
from thoughtgate.upstream.grpc.reflection import NoReflection, reflect
from thoughtgate.upstream.grpc.wanted import plumbing

NATIVE = SERVICE
"""The service of our own protocol: such a server needs no reflection."""

_LOOK = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a server declares: by which version of reflection, and its services.

    `hidden` are the services that never become tools. `descriptors` is None where a server speaks
    our own protocol and declares nothing else.
    """

    by: str
    services: tuple[str, ...]
    hidden: tuple[str, ...]
    native: bool
    descriptors: Descriptors | None

    def methods(self, service: str) -> tuple[Method, ...]:
        """Return the methods of a service.

        Raises:
            Missing: There is no such service.
        """
        if self.descriptors is None or service not in self.services:
            raise Missing(message=f"no service {service[:120]} here; it has {self._named()}")
        return self.descriptors.methods(service)

    def tool(self, method: Method, transport: GrpcTransport) -> JsonObject:
        """Return the tool that a method becomes.

        Raises:
            SchemaRejected: It cannot become one.
        """
        if self.descriptors is None:
            raise SchemaRejected(rule="no_descriptors", message="nothing is declared")
        return tool_of(method, self.descriptors, streaming=transport.streaming)

    def _named(self) -> str:
        return ", ".join(self.services[:8]) or "none"


async def describe(transport: GrpcTransport) -> Description:
    """Return what a server declares, or what its descriptor set does.

    Raises:
        ConfigError: The descriptor set cannot be used.
        UpstreamError: The server cannot be asked, or tells nothing that can be used.
    """
    if transport.descriptor_set:
        declared = await asyncio.to_thread(read_set, transport.descriptor_set)
        return await _described(DESCRIBED, declared)
    connection = await connect(transport)
    try:
        told = await reflect(connection, _all)
    except NoReflection:
        if await _is_native(connection):
            return Description(by="", services=(), hidden=(), native=True, descriptors=None)
        raise
    finally:
        await connection.aclose()
    return await _described(told.version, Declared(services=told.services, files=told.files))


async def _described(by: str, declared: Declared) -> Description:
    try:
        descriptors = await asyncio.to_thread(Descriptors.of, declared.files)
    except SchemaRejected as error:
        raise UpstreamGarbled(message=f"its descriptors cannot be used: {error.message}") from None
    known = set(descriptors.services())
    names = sorted(set(declared.services))
    return Description(
        by=by,
        services=tuple(name for name in names if name in known and not plumbing(name)),
        hidden=tuple(filter(plumbing, names)),
        native=NATIVE in names,
        descriptors=descriptors,
    )


def _all(listed: Sequence[str]) -> Sequence[str]:
    return [name for name in listed if not plumbing(name)]


async def _is_native(connection: Connection) -> bool:
    with suppress(UpstreamError):
        await connection.answer(f"/{NATIVE}/GetServerInfo", b"", seconds=_LOOK)
        return True
    return False
