"""Why no gRPC can be spoken with an address: port, certificate, our files, another protocol.

Never makes an RPC: a connection is opened, greeted by HTTP/2 and closed.
"""

import asyncio
import os
import socket
import ssl
from contextlib import suppress
from typing import NamedTuple

from thoughtgate.app.doctor.findings import Finding
from thoughtgate.config.grpc_servers import files_of
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import GrpcTransport
from thoughtgate.protos.urls import Address, address_of

PATIENCE = 5.0
"""Seconds that each step may take."""

_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
_FRAME_HEAD = 9
_SETTINGS = 4
_PASSPHRASE = "the key is protected by a passphrase"
_NO_ISSUER = frozenset({18, 19, 20, 21})
_EXPIRED, _OTHER_NAMES = 10, frozenset({62, 64})


class Trouble(NamedTuple):
    """What is wrong: the code of a finding, a sentence, and what mends it."""

    code: str
    what: str
    mend: str


async def grpc_finding(server: str, transport: GrpcTransport) -> Finding | None:
    """Return why no gRPC can be spoken with a server, None when it can."""
    try:
        address = address_of(transport.url)
    except ConfigError as error:
        trouble: Trouble | None = Trouble("server_failed", error.message, _again(server))
    else:
        trouble = _files(server, transport) or await _greeted(server, transport, address)
    if trouble is None:
        return None
    code, what, mend = trouble
    return Finding(code=code, where=f"server {server}", what=what, mend=mend)


def _files(server: str, transport: GrpcTransport) -> Trouble | None:
    for file in files_of(transport):
        try:
            with open(file, "rb") as stream:
                stream.read(1)
        except OSError as error:
            why = os.strerror(error.errno).lower() if error.errno else "it cannot be read"
            return Trouble(
                "tls_file" if file != transport.descriptor_set else "nothing_offered",
                f"{file}: {why}",
                f"put the file there, or name another: {_again(server)}",
            )
    return None


async def _greeted(server: str, transport: GrpcTransport, address: Address) -> Trouble | None:
    try:
        context = _context(transport) if address.secure else None
    except (OSError, ValueError) as error:  # an ssl.SSLError is the first, a passphrase the second
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        what = f"its CA, certificate or key cannot be used: {_plain(why)}"
        return Trouble("tls_file", what, f"give PEM files that fit: {_again(server)}")
    try:
        async with asyncio.timeout(PATIENCE):
            first = await _first_bytes(address, context, transport.tls.name or address.host)
    except ConnectionResetError:
        first = b""
    except (OSError, UnicodeError) as error:  # a TimeoutError and an ssl.SSLError are the first
        return _of_socket(server, address, error)
    return None if _is_http2(first) else await _of_another(server, address, first)


def _of_socket(server: str, address: Address, error: OSError | UnicodeError) -> Trouble:
    if isinstance(error, ssl.SSLError):
        return _of_tls(server, address, error)
    if isinstance(error, socket.gaierror | UnicodeError):
        what = f"the host {address.host} has no address"
        mend = f"see the name and the network: getent hosts {address.host}"
        return Trouble("url_unresolved", what, mend)
    if isinstance(error, TimeoutError):
        what = f"{address.shown} does not answer within {PATIENCE:g} s"
        return Trouble("url_timeout", what, "see whether a firewall is between")
    why = os.strerror(error.errno).lower() if error.errno else type(error).__name__
    what = f"{address.shown} takes no connection: {why}"
    return Trouble("url_refused", what, "start the server there, or mend its port")


def _plain(reason: object) -> str:
    return str(reason).lower().replace("_", " ")


def _context(transport: GrpcTransport) -> ssl.SSLContext:
    """Return how a connection is secured; raises where the files cannot be used."""
    tls = transport.tls
    context = ssl.create_default_context(cafile=tls.ca or None)
    context.set_alpn_protocols(["h2"])
    if tls.cert:
        context.load_cert_chain(tls.cert, tls.key, password=_no_password)
    return context


def _no_password() -> str:
    raise ValueError(_PASSPHRASE)


async def _first_bytes(address: Address, context: ssl.SSLContext | None, name: str) -> bytes:
    """Return what an address answers to the greeting of HTTP/2; empty when it closes."""
    reader, writer = await asyncio.open_connection(
        address.host, address.port, ssl=context, server_hostname=name if context else None
    )
    try:
        writer.write(_GREETING)
        await writer.drain()
        return await reader.read(_FRAME_HEAD)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _is_http2(first: bytes) -> bool:
    return len(first) > 3 and first[3] == _SETTINGS


def _of_tls(server: str, address: Address, error: ssl.SSLError) -> Trouble:
    again = _again(server)
    if isinstance(error, ssl.SSLCertVerificationError):
        return _of_certificate(server, address, error)
    reason = str(error.reason or "")
    if "CERTIFICATE_REQUIRED" in reason or ("ALERT" in reason and "CERTIFICATE" in reason):
        what = f"{address.shown} wants a certificate of ours that it can trust"
        return Trouble("login_needed", what, _with_certificate(server))
    if "WRONG_VERSION" in reason or "RECORD_LAYER" in reason or "PACKET_LENGTH" in reason:
        what = f"{address.shown} speaks no TLS"
        return Trouble("url_protocol", what, f"write grpc:// if that is intended: {again}")
    what = f"{address.shown} has no TLS that can be used: {_plain(reason)}"
    return Trouble(
        "url_tls", what, f"see its TLS: openssl s_client -connect {address.shown} -alpn h2"
    )


def _of_certificate(server: str, address: Address, error: ssl.SSLCertVerificationError) -> Trouble:
    again = _again(server)
    what = f"the certificate of {address.shown} cannot be trusted: {error.verify_message}"
    if error.verify_code == _EXPIRED:
        return Trouble(
            "url_tls", what, "renew it there; see also whether this machine's clock is right"
        )
    if error.verify_code in _OTHER_NAMES:
        return Trouble("url_tls", what, f"if it is the right server, give --server-name: {again}")
    if error.verify_code in _NO_ISSUER:
        return Trouble("url_tls", what, f"name the file of its authority by --ca: {again}")
    return Trouble(
        "url_tls", what, f"see its certificate: openssl s_client -connect {address.shown}"
    )


async def _of_another(server: str, address: Address, first: bytes) -> Trouble:
    again = _again(server)
    if first.startswith(b"HTTP/1"):
        what = f"{address.shown} speaks HTTP/1, and no gRPC"
        return Trouble(
            "url_protocol",
            what,
            "see which port of the server is for gRPC; a server of"
            f" MCP has a URL with http: {again}",
        )
    if not address.secure and (first[:1] in {b"\x15", b"\x16"} or await _speaks_tls(address)):
        what = f"{address.shown} speaks TLS only"
        return Trouble("url_protocol", what, f"write grpcs:// instead of grpc://: {again}")
    if address.secure and not first:
        what = f"{address.shown} ends the connection once TLS stands: it may want another"
        return Trouble("login_needed", f"{what} certificate of ours", _with_certificate(server))
    what = f"{address.shown} does not answer as HTTP/2 does"
    return Trouble("url_protocol", what, "see which port of the server is for gRPC")


async def _speaks_tls(address: Address) -> bool:
    """Say whether TLS is spoken at an address, whoever vouches for it; nothing is sent by it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(PATIENCE):
            _, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
            writer.close()
            return True
    return False


def _with_certificate(server: str) -> str:
    return f"thoughtgate server add {server} URL --cert FILE --key FILE --replace"


def _again(server: str) -> str:
    return f"thoughtgate server add {server} URL --replace"
