"""Where a login may go: a tool server names its authorization server, and it may be hostile.

Never dials; whoever does asks here first, for every address.
"""

import asyncio
import ipaddress
import socket

from thoughtgate.core.errors import UpstreamDenied, UpstreamUnreachable
from thoughtgate.upstream.http_rules import Target, target

_LINK, _LOOPBACK, _PRIVATE, _PUBLIC = range(4)
"""How far away an address is; a server may name places that are no nearer than itself."""


def check_place(url: str, server_url: str) -> Target:
    """Return where a URL points that a login at `server_url` leads to, if it may go there.

    Plain HTTP is for this machine, and for the origin of a server that was registered with it.

    Raises:
        UpstreamDenied: It may not.
    """
    try:
        place, server = target(url), target(server_url)
    except UpstreamUnreachable as error:
        raise UpstreamDenied(message=f"the login leads to a bad address: {error.message}") from None
    if not place.secure and place.origin != server.origin and not _is_loopback(place.host):
        raise UpstreamDenied(
            message=f"the login leads to {place.origin}, which is not encrypted; nothing was sent"
        )
    return place


async def check_reach(place: Target, server_url: str) -> None:
    """Make sure that no server leads us to an address nearer than its own.

    Raises:
        UpstreamDenied: It does.
        UpstreamUnreachable: A name has no address.
    """
    server = target(server_url)
    if place.host == server.host:
        return
    if await _nearest(place) < await _nearest(server):
        raise UpstreamDenied(
            message=f"the login leads to {place.origin}, an address inside this network that"
            " a server outside of it must not name; nothing was sent"
        )


async def _nearest(place: Target) -> int:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            place.host, place.port, type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError):
        raise UpstreamUnreachable(message=f"{place.host} has no address") from None
    return min(_distance(entry[4][0]) for entry in found)


def _distance(address: object) -> int:
    ip = ipaddress.ip_address(str(address).partition("%")[0])
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    ip = mapped or ip
    if ip.is_link_local or ip.is_multicast:
        return _LINK
    if ip.is_loopback or ip.is_unspecified:
        return _LOOPBACK
    return _PRIVATE if ip.is_private else _PUBLIC


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
