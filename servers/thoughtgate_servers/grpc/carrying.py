"""Runs a tool table as a gRPC server until it is stopped.

Never lets a call begin once it is told to stop; those that run get a few seconds.
"""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import click
import grpc
from grpc import aio

from thoughtgate_proto.tools.v1.tool_server_pb2 import DESCRIPTOR
from thoughtgate_proto.tools.v1.tool_server_pb2_grpc import add_ToolServerServicer_to_server
from thoughtgate_servers.carriers import GRACE, Tls
from thoughtgate_servers.grpc.health import Health
from thoughtgate_servers.grpc.servicer import MAX_ARGUMENTS, Identity, Servicer
from thoughtgate_servers.table import Table

SERVICE = DESCRIPTOR.services_by_name["ToolServer"].full_name
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_ROOM = 64 * 1024
"""What a request holds besides its arguments."""

MOST_RPCS = 4_096
"""Calls and watchers at once; whoever comes then is told that resources are exhausted."""

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_ARGUMENTS + _ROOM),
    ("grpc.max_send_message_length", 64 * 1024 * 1024),
    # a second server on the same port would get half of the calls
    ("grpc.so_reuseport", 0),
    # callers may keep a connection alive as often as the protocol's page says
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
)


def run_until_stopped(table: Table, identity: Identity, address: str, tls: Tls | None) -> None:
    """Serve until SIGTERM or SIGINT; says on stderr where."""
    asyncio.run(_run(table, identity, address, tls))


async def _run(table: Table, identity: Identity, address: str, tls: Tls | None) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    async with served(table, identity, address, tls) as url:
        click.echo(f"{identity.name}: listening on {url}", err=True)
        await stopped.wait()
        for number in _SIGNALS:
            # whoever does not want to wait for the calls that run says so once more
            loop.remove_signal_handler(number)


@asynccontextmanager
async def served(
    table: Table, identity: Identity, address: str, tls: Tls | None = None
) -> AsyncIterator[str]:
    """Serve `table` at HOST:PORT and yield its URL; at the end, wait for the calls that run.

    Raises:
        click.UsageError: The port is taken, or the files of `tls` do not fit.
    """
    server = aio.server(options=_OPTIONS, maximum_concurrent_rpcs=MOST_RPCS)
    servicer, health = Servicer(table, identity), Health(SERVICE)
    add_ToolServerServicer_to_server(servicer, server)
    server.add_generic_rpc_handlers((health.handler(),))
    port = _bound(server, address, tls)
    await server.start()
    host = address.rpartition(":")[0]
    try:
        yield f"{'grpcs' if tls else 'grpc'}://{host}:{port}"
    finally:
        health.stop()
        servicer.stopping.set()
        await server.stop(GRACE)


def _bound(server: aio.Server, address: str, tls: Tls | None) -> int:
    try:
        if tls is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, _credentials(tls))
    except RuntimeError:
        files = ", or the files of --tls-cert and --tls-key do not fit" if tls else ""
        said = f"--grpc {address}: cannot listen there (another program may){files}"
        raise click.UsageError(message=said) from None


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    try:
        pair = (tls.key.read_bytes(), tls.cert.read_bytes())
        ca = tls.client_ca.read_bytes() if tls.client_ca else None
    except OSError as failure:
        said = f"{failure.filename}: {(failure.strerror or 'cannot be read').lower()}"
        raise click.UsageError(message=said) from None
    return grpc.ssl_server_credentials(
        [pair], root_certificates=ca, require_client_auth=ca is not None
    )
