"""How a server is reached: the options that every command shares, and what they come to.

Never binds to an address that other machines reach: these servers ask nobody who they are.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

LOOPBACK = ("127.0.0.1", "localhost", "::1")
GRACE = 3
"""Seconds that open requests get when the process is told to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The certificate of a gRPC server; clients may be any, or those of `client_ca` only."""

    cert: Path
    key: Path
    client_ca: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """How a server is reached: over HTTP at `http`, over gRPC at `grpc`, else over stdio."""

    http: str | None
    json_replies: bool
    grpc: str | None = None
    tls: Tls | None = None


def transport_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the carriers to a command, which gets them as one `carrier`."""

    @functools.wraps(command)
    def carried(*, http: str | None, json_replies: bool, grpc: str | None, **given: Any) -> None:
        files = [given.pop(name) for name in ("tls_cert", "tls_key", "tls_client_ca")]
        if http and grpc:
            raise click.UsageError(message="--http or --grpc, not both: start the server twice")
        carrier = Carrier(http=http, json_replies=json_replies, grpc=grpc, tls=_tls(grpc, *files))
        command(carrier=carrier, **given)

    for option in reversed(_OPTIONS):
        carried = option(carried)
    return carried


_FILE = click.Path(path_type=Path, dir_okay=False)
_OPTIONS = (
    click.option(
        "--http",
        metavar="HOST:PORT",
        help="Serve streamable HTTP at http://HOST:PORT/mcp instead of stdio (loopback only; "
        "port 0 picks a free one and says which).",
    ),
    click.option(
        "--json-replies",
        is_flag=True,
        help="With --http: answer every request with one JSON body. Faster for old clients, but "
        "progress is not sent and a caller that hangs up does not cancel.",
    ),
    click.option(
        "--grpc",
        metavar="HOST:PORT",
        help="Serve gRPC (thoughtgate.tools.v1) at HOST:PORT instead of stdio (loopback only; "
        "port 0 picks a free one and says which).",
    ),
    click.option(
        "--tls-cert", type=_FILE, metavar="FILE", help="With --grpc: certificate chain, PEM."
    ),
    click.option("--tls-key", type=_FILE, metavar="FILE", help="With --grpc: its key, PEM."),
    click.option(
        "--tls-client-ca",
        type=_FILE,
        metavar="FILE",
        help="With --grpc: take only clients with a certificate of this authority, PEM.",
    ),
)


def address(given: str, option: str) -> tuple[str, int]:
    """Return host and port of a loopback address, or end the command with a usage error."""
    host, colon, port = given.rpartition(":")
    host = host.strip("[]")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise click.UsageError(message=f"{option} wants HOST:PORT, for instance 127.0.0.1:8101")
    if host not in LOOPBACK:
        raise click.UsageError(
            message=f"{option} {host}: only loopback ({', '.join(LOOPBACK)}), since this server "
            "asks nobody who they are; put the gateway in front to reach it from elsewhere"
        )
    return host, int(port)


def _tls(
    grpc: str | None, cert: Path | None, key: Path | None, client_ca: Path | None
) -> Tls | None:
    if cert is None and key is None and client_ca is None:
        return None
    if grpc is None:
        raise click.UsageError(message="--tls-cert, --tls-key and --tls-client-ca go with --grpc")
    if cert is None or key is None:
        raise click.UsageError(message="--tls-cert and --tls-key go together")
    return Tls(cert=cert, key=key, client_ca=client_ca)
