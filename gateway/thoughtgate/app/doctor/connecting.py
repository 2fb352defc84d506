"""Why nothing can be sent to an address: its name, its port, its certificate, or its silence.

Never sends a request: a connection is opened and closed.
"""

import asyncio
import os
import socket
import ssl
from contextlib import suppress

from thoughtgate.app.doctor.findings import Finding
from thoughtgate.core.errors import UpstreamUnreachable
from thoughtgate.upstream.http_rules import Target, target

PATIENCE = 5.0
"""Seconds that each step may take."""


async def connect_finding(server: str, url: str) -> Finding | None:
    """Return why no connection to the URL of a server can be had, None when it can."""
    try:
        place = target(url)
    except UpstreamUnreachable as error:
        return _finding("server_failed", server, error.message, f"give server {server} another url")
    trouble = await _resolving(place) or await _connecting(place)
    if trouble is None:
        return None
    code, what, mend = trouble
    return _finding(code, server, what, mend)


async def reach(url: str) -> str:
    """Return why no connection to a URL can be had, in words; empty when it can."""
    try:
        place = target(url)
    except UpstreamUnreachable as error:
        return error.message
    trouble = await _resolving(place) or await _connecting(place)
    return trouble[1] if trouble else ""


def _finding(code: str, server: str, what: str, mend: str) -> Finding:
    return Finding(code=code, where=f"server {server}", what=what, mend=mend)


async def _resolving(place: Target) -> tuple[str, str, str] | None:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(PATIENCE):
            await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError, TimeoutError):
        what = f"the host {place.host} has no address"
        return "url_unresolved", what, f"see the name and the network: getent hosts {place.host}"
    return None


async def _connecting(place: Target) -> tuple[str, str, str] | None:
    context = ssl.create_default_context() if place.secure else None
    again = f"curl -v {place.origin}/"
    try:
        async with asyncio.timeout(PATIENCE):
            _, writer = await asyncio.open_connection(place.host, place.port, ssl=context)
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or "no TLS is spoken there"
        what = f"{place.origin} has no TLS that can be trusted: {reason}"
        return "url_tls", what, f"see its certificate: {again}; SSL_CERT_FILE names your own root"
    except TimeoutError:
        what = f"{place.origin} does not answer within {PATIENCE:g} s"
        return "url_timeout", what, f"see whether a firewall is between: {again}"
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else type(error).__name__
        what = f"{place.origin} takes no connection: {reason}"
        return "url_refused", what, f"start the server there, or mend its port: {again}"
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return None
