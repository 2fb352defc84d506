"""Who shares a connection to a server: by its transport and era, and by what people wish.

Never opens one.
"""

import hashlib

from thoughtgate.core.calls import Call
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era, GrpcTransport, HttpTransport, Server, Sharing
from thoughtgate.wire.strict import dumps

Key = tuple[str, ...]
"""Names the connection that a call belongs on; the first part says what kind of name it is."""

_CLIENTS = "mcp"
"""The origin of calls that have a client who can be asked; runs and the command line have none."""

_EVERYTHING: JsonObject = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}

SESSIONLESS = "stateless"
"""The kind of name for clients that have no session: by what they can do."""


def sharing_of(server: Server, era: Era | None) -> Sharing | None:
    """Return who shares a connection to a server; None while that depends on its era.

    Over HTTP in the stateless era, and over gRPC, no connection could be anybody's own.
    """
    sharing = server.sharing
    if isinstance(server.transport, GrpcTransport):
        return Sharing.SHARED
    if not isinstance(server.transport, HttpTransport):
        return sharing or Sharing.SHARED
    if sharing is Sharing.SHARED or era is Era.STATELESS:
        return Sharing.SHARED
    return None if era is None else sharing or Sharing.SESSION


def listed_with(server: Server) -> JsonObject:
    """Return what is declared where a server's lists are read, in the handshake era.

    Some servers list a tool only to those who can answer what it asks. Where clients have
    connections of their own each can be asked, so all such tools are wanted; where everybody shares
    this one nobody can, and nothing is declared. No call ever takes a connection that declares more
    than its caller.
    """
    return {} if sharing_of(server, Era.HANDSHAKE) is Sharing.SHARED else _EVERYTHING


def known_era(server: Server) -> Era | None:
    """Return the era that a server is known to speak before it was ever asked."""
    if isinstance(server.transport, GrpcTransport):
        return Era.STATELESS
    old = isinstance(server.transport, HttpTransport) and server.transport.sse
    return Era.HANDSHAKE if old else server.era


def is_piped(server: Server) -> bool:
    """Tell whether all that a server says on a connection is known to come through one pipe."""
    if isinstance(server.transport, HttpTransport):
        return server.transport.sse
    return not isinstance(server.transport, GrpcTransport)


def key_of(sharing: Sharing, call: Call) -> Key:
    """Return which connection a call belongs on, where not everybody shares one.

    What the gateway calls for a principal by itself, in runs and for the command line, has one of
    its own: nobody can be asked there.
    """
    if call.session.origin != _CLIENTS:
        return ("gateway", call.principal.id)
    if sharing is Sharing.PRINCIPAL:
        return ("principal", call.principal.id)
    if call.session.id:
        return ("session", call.session.id)
    able = hashlib.sha256(dumps(call.session.capabilities)).hexdigest()
    return (SESSIONLESS, call.principal.id, able)
