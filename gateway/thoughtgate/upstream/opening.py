"""Opening a link: over the server's transport, in its era, which is probed where it is not known.

Never leaves a child behind when opening fails.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module

from thoughtgate.core.errors import UpstreamError, UpstreamGarbled, UpstreamLost, UpstreamReplied
from thoughtgate.core.json import JsonValue
from thoughtgate.core.servers import Era, GrpcTransport, HttpTransport, Server, StdioTransport
from thoughtgate.upstream.auth_client import authorized
from thoughtgate.upstream.child import Child, Patience
from thoughtgate.upstream.eras import Dialect, Handshake, Stateless
from thoughtgate.upstream.home import Home
from thoughtgate.upstream.http_link_handshake import HandshakeHttpLink
from thoughtgate.upstream.http_link_stateless import StatelessHttpLink
from thoughtgate.upstream.hurry import Hurry
from thoughtgate.upstream.neighbour import Neighbours
from thoughtgate.upstream.pipe_link import PipeLink
from thoughtgate.upstream.ports import Credentials, HttpClient, Identity, Link
from thoughtgate.upstream.sse_pipe import SsePipe
from thoughtgate.wire import codes, handshake, stateless
from thoughtgate.wire.strict import MAX_RESULT

_NO_POST = frozenset({400, 404, 405})


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What links are opened with.

    `environ` is where children's few inherited variables come from. `probe` bounds, in seconds,
    how long a server may stay silent about `server/discover` before it is greeted the old way;
    `max_result` is the largest message, in bytes, that is taken from a server; `on_noise` hears of
    each line of a child that is no message; `credentials` are the logins at HTTP servers; `hurry`
    bounds the ends of all children together; `neighbours` are the other workers of this gateway.
    """

    client: HttpClient
    environ: Mapping[str, str] = field(default_factory=dict)
    identity: Identity = field(default_factory=Identity)
    patience: Patience = field(default_factory=Patience)
    hurry: Hurry | None = None
    probe: float = 5.0
    max_result: int = MAX_RESULT
    on_noise: Callable[[bytes], None] | None = None
    credentials: Credentials | None = None
    neighbours: Neighbours | None = None


async def open_link(
    server: Server, era: Era | None, means: Means, home: Home | None = None
) -> Link:
    """Return an open link for those of `home`; `era` is the one to speak, None to probe.

    Without a home it is for nobody: nothing is declared, and what the server asks is refused.

    Raises:
        UpstreamError: Why not.
    """
    home = home or Home(server.name)
    if isinstance(server.transport, StdioTransport):
        return await _open_stdio(server.transport, era, home, means)
    if isinstance(server.transport, HttpTransport):
        client = authorized(means.client, server, means.credentials)
        return await _open_http(server.transport, era, home, replace(means, client=client))
    if isinstance(server.transport, GrpcTransport):
        return await _open_grpc(server.transport, home, means)
    raise TypeError(server.transport)


async def _open_grpc(transport: GrpcTransport, home: Home, means: Means) -> Link:
    grpc = import_module("thoughtgate.upstream.grpc.opening")  # slow to import, and seldom used
    link: Link = await grpc.open_grpc(transport, home, means)
    return link


async def _open_http(transport: HttpTransport, era: Era | None, home: Home, means: Means) -> Link:
    identity = means.identity.as_json()
    if transport.sse:
        return await _open_sse(transport, home, means)
    if era is not Era.HANDSHAKE:
        new = StatelessHttpLink(
            transport, means.client, Stateless(identity), home, limit=means.max_result
        )
        try:
            async with asyncio.timeout(means.probe if era is None else None):
                await _meet(new)
                return new
        except (UpstreamReplied, UpstreamGarbled) as error:
            if era is not None or _only_newer(error):
                raise
        except TimeoutError:
            if era is not None:
                raise
    return await _open_old(transport, home, means)


async def _meet(link: StatelessHttpLink) -> None:
    """Greet; once more when a server refuses the very version that it says it supports.

    A client that is refused tries again in a version of the list (2026-07-28, versioning).
    """
    try:
        await link.greet()
    except UpstreamReplied as error:
        if stateless.LATEST not in _supported(error):
            raise
        await link.greet()


async def _open_old(transport: HttpTransport, home: Home, means: Means) -> Link:
    """Open a session; where no POST is taken, look for the older transport."""
    old = HandshakeHttpLink(
        transport, means.client, _handshake(home, means), home, limit=means.max_result
    )
    try:
        await old.greet()
    except UpstreamGarbled as error:
        older = None
        if error.data.get("status") in _NO_POST:
            older = await _try_sse(transport, home, means)
        if older is None:
            raise
        return older
    return old


async def _try_sse(transport: HttpTransport, home: Home, means: Means) -> Link | None:
    """Return a link in the older HTTP+SSE transport; None when the server does not speak it.

    A server that takes no POST where it is registered may (2025-11-25, transports, backwards
    compatibility).
    """
    try:
        async with asyncio.timeout(means.probe):
            return await _open_sse(transport, home, means)
    except (UpstreamError, TimeoutError):
        return None


async def _open_sse(transport: HttpTransport, home: Home, means: Means) -> Link:
    pipes: list[SsePipe] = []

    def make(on_message: Callable[[bytes], None]) -> SsePipe:
        pipes.append(SsePipe(transport, means.client, on_message, cap=means.max_result))
        return pipes[0]

    link = PipeLink(_handshake(home, means), home, make)
    home.traits.piped = True
    greeted = False
    try:
        await pipes[0].open()
        await link.greet()
        greeted = True
    finally:
        if not greeted:
            await link.aclose()
    return link


async def _open_stdio(transport: StdioTransport, era: Era | None, home: Home, means: Means) -> Link:
    if era is not None:
        return await _started(transport, era, home, means)
    try:
        return await _started(transport, None, home, means)
    except UpstreamLost:  # some old servers end at the first request that is not `initialize`
        return await _started(transport, Era.HANDSHAKE, home, means)


async def _started(transport: StdioTransport, era: Era | None, home: Home, means: Means) -> Link:
    children: list[Child] = []

    def make(on_line: Callable[[bytes], None]) -> Child:
        children.append(
            Child(on_line, cap=means.max_result, patience=means.patience, hurry=means.hurry)
        )
        return children[0]

    dialect: Dialect = Stateless(means.identity.as_json())
    if era is Era.HANDSHAKE:
        dialect = _handshake(home, means)
    link = PipeLink(dialect, home, make, on_noise=means.on_noise)
    greeted = False
    try:
        await children[0].start(transport, means.environ)
        if era is None:
            await _probe(link, home, means)
        else:
            await link.greet()
        greeted = True
    finally:
        if not greeted:
            await link.aclose()
    return link


async def _probe(link: PipeLink, home: Home, means: Means) -> None:
    """Greet in the new way, else in the old one, on the same child."""
    try:
        async with asyncio.timeout(means.probe):
            return await link.greet()
    except (UpstreamReplied, UpstreamGarbled) as error:
        if _only_newer(error):
            raise
    except TimeoutError:
        pass
    link.speak(_handshake(home, means))
    try:
        return await link.greet()
    except UpstreamReplied as error:
        if error.rpc_code not in {codes.UNSUPPORTED_VERSION, codes.METHOD_NOT_FOUND}:
            raise
    # a slow starter has read both greetings by now, and settled for the first
    link.speak(Stateless(means.identity.as_json()))
    return await link.greet()


def _handshake(home: Home, means: Means) -> Handshake:
    return Handshake(means.identity.as_json(), home.capabilities, home.version)


def _only_newer(error: UpstreamReplied | UpstreamGarbled) -> bool:
    """Tell whether a server has said that it speaks none of our versions, old or new."""
    supported = _supported(error)
    return bool(supported) and not any(version in handshake.VERSIONS for version in supported)


def _supported(error: UpstreamReplied | UpstreamGarbled) -> list[JsonValue]:
    """Return the versions that a server names when it refuses ours; none when it does not."""
    if not isinstance(error, UpstreamReplied) or error.rpc_code != codes.UNSUPPORTED_VERSION:
        return []
    data = error.rpc_data
    supported = data.get("supported") if isinstance(data, dict) else None
    return supported if isinstance(supported, list) else []
