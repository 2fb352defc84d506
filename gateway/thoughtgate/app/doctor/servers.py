"""Tool servers: each is opened, asked for its tools and ended again, as discovery does it.

Never records what a server said; a server that cannot be opened is asked once.
"""

import asyncio
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from thoughtgate.app.doctor.commands import command_findings
from thoughtgate.app.doctor.connecting import connect_finding
from thoughtgate.app.doctor.findings import Checked, Finding
from thoughtgate.app.doctor.grpc_connecting import grpc_finding
from thoughtgate.app.doctor.logins import HeldLogins, judged_login, over
from thoughtgate.app.masks import bare_url
from thoughtgate.core.errors import (
    UpstreamDenied,
    UpstreamError,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamRefused,
    UpstreamTimeout,
)
from thoughtgate.core.servers import GrpcTransport, HttpTransport, Listing, Server, StdioTransport
from thoughtgate.upstream.auth import Login
from thoughtgate.upstream.child import child_environment
from thoughtgate.upstream.http_rules import target
from thoughtgate.upstream.listing import list_all
from thoughtgate.upstream.opening import Means, open_link
from thoughtgate.upstream.ports import HttpClient, HttpReply, HttpRequest

PATIENCE = 20.0
"""Seconds that a server may take, unless its own `start_timeout` is shorter."""

_NOISE = 120
"""Characters of a line on standard output that are shown."""

_DENIED = frozenset({401, 403})


class Noting:
    """An HTTP client that passes on, and notes the status and the date of each reply."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self.statuses: dict[str, int] = {}
        self.dates: dict[str, tuple[str, float]] = {}

    async def send(self, request: HttpRequest) -> HttpReply:
        """Send once; see `HttpClient.send`."""
        reply = await self._client.send(request)
        self.statuses[request.url] = reply.status
        if "date" in reply.headers:
            self.dates[target(request.url).origin] = (reply.headers["date"], time.time())
        return reply

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came of asking one server: its listing or the error, and what it printed besides."""

    server: Server
    listing: Listing | None = None
    error: UpstreamError | TimeoutError | None = None
    status: int = 0
    logged_in: bool = False
    noise: tuple[bytes, ...] = ()


async def check_server(
    server: Server, means: Means, client: Noting, logins: HeldLogins
) -> tuple[Checked, Asked]:
    """Look at one server; what it offers stands in the second value."""
    asked = Asked(server=server)
    login = logins.of(server)
    if login is not None and login.renewable and time.time() >= login.renew_at:
        said = "not asked: its login is renewed when it is used next"
        return Checked(name=f"server {server.name}", said=said), asked
    findings = tuple(_before(server, means.environ, login))
    if not findings:
        asked = await _ask(server, replace(means, credentials=logins))
        if isinstance(server.transport, HttpTransport):
            status = client.statuses.get(server.transport.url, 0)
            asked = replace(asked, status=status, logged_in=login is not None)
        findings = tuple(judged(asked))
        if asked.listing is None:
            findings = (await _connecting(server) or findings[0], *findings[1:])
    tools = "cannot be used" if asked.listing is None else f"{len(asked.listing.tools)} tools"
    return Checked(name=f"server {server.name}", said=tools, findings=findings), asked


async def _connecting(server: Server) -> Finding | None:
    """Return why no connection to a server at a URL can be had, None when it can."""
    transport = server.transport
    if isinstance(transport, GrpcTransport):
        return await grpc_finding(server.name, transport)
    if isinstance(transport, HttpTransport):
        return await connect_finding(server.name, transport.url)
    return None


def judged(asked: Asked) -> Iterator[Finding]:
    """Yield what the answer of a server means."""
    server = asked.server
    if asked.listing is None:
        yield _failure(asked)
    if asked.noise:
        shown = _cleaned(asked.noise[0])
        lines = f"{len(asked.noise)} line{'' if len(asked.noise) == 1 else 's'}"
        yield Finding(
            code="prints_to_stdout",
            where=f"server {server.name}",
            what=f"it printed {lines} that are no messages, first: {shown}",
            mend=f"let {_command(server)} print to standard error, or give it its quiet option",
        )


def _before(server: Server, environ: Mapping[str, str], login: Login | None) -> Iterator[Finding]:
    """Yield what is wrong before a server is asked."""
    transport = server.transport
    ended = None if login is None else judged_login(login, time.time())
    if ended is not None:
        yield ended
    if isinstance(transport, StdioTransport):
        path = child_environment(transport.env, environ)["PATH"]
        yield from command_findings(server.name, transport.argv, path=path, cwd=transport.cwd)


async def _ask(server: Server, means: Means) -> Asked:
    noise: list[bytes] = []
    hearing = replace(means, on_noise=noise.append)
    try:
        async with asyncio.timeout(min(server.start_timeout, PATIENCE)):
            link = await open_link(server, server.era, hearing)
            try:
                listing = await list_all(server.name, link, PATIENCE / 4)
            finally:
                await link.aclose()
    except (UpstreamError, TimeoutError) as error:
        return Asked(server=server, error=error, noise=tuple(noise))
    return Asked(server=server, listing=listing, noise=tuple(noise))


def _failure(asked: Asked) -> Finding:
    server, error = asked.server, asked.error
    said = error.message if isinstance(error, UpstreamError) else ""
    if isinstance(server.transport, HttpTransport):
        return _http_failure(server, server.transport.url, asked, said)
    if isinstance(server.transport, GrpcTransport):
        return _grpc_failure(server, server.transport, asked, said)
    if isinstance(error, TimeoutError):
        seconds = min(server.start_timeout, PATIENCE)
        code, what = "server_silent", f"it did not answer within {seconds:g} s"
    elif isinstance(error, UpstreamLost):
        code, what = "server_ends", said
    else:
        code, what = "server_failed", said
    return Finding(
        code=code,
        where=f"server {server.name}",
        what=what,
        mend=f"see what it says when you start it yourself: {_command(server)}",
    )


def _http_failure(server: Server, url: str, asked: Asked, said: str) -> Finding:
    where, shown = f"server {server.name}", bare_url(url)
    if asked.logged_in and isinstance(asked.error, UpstreamDenied):
        return over(server.name, f"{shown} refuses the login that is kept for it")
    if asked.status in _DENIED or isinstance(asked.error, UpstreamDenied):
        return Finding(
            code="login_needed",
            where=where,
            what=f"{shown} answers {asked.status or 'that it refuses our credentials'}",
            mend=f"thoughtgate server login {server.name}, or give it a key: thoughtgate server "
            f"add {server.name} --url {shown} --header 'Authorization=Bearer …' --replace",
        )
    if asked.status == 404:
        return Finding(
            code="url_not_found",
            where=where,
            what=f"{shown} answers 404: nothing is at this path",
            mend=f"see the path in the server's manual (often /mcp or /sse), then: thoughtgate "
            f"server add {server.name} --url URL --replace",
        )
    code = "url_timeout" if isinstance(asked.error, TimeoutError) else "server_failed"
    return Finding(
        code=code,
        where=where,
        what=said or f"{shown} did not answer in time",
        mend=f"see what it answers: curl -i -X POST {shown}",
    )


def _grpc_failure(server: Server, transport: GrpcTransport, asked: Asked, said: str) -> Finding:
    url, error = transport.url, asked.error
    again = f"thoughtgate server add {server.name} {url}"
    if isinstance(error, TimeoutError | UpstreamTimeout):
        code, mend = (
            "server_silent",
            f"see whether the server is busy: thoughtgate grpc describe {url}",
        )
    elif isinstance(error, UpstreamDenied):
        code, mend = "login_needed", f"{again} --header 'authorization=Bearer …' --replace"
    elif isinstance(error, UpstreamRefused | UpstreamGarbled):
        code = "nothing_offered"
        mend = f"see what it offers: thoughtgate grpc describe {url}, then: {again} --reflect "
        mend += "SERVICE --replace; a server without reflection needs --descriptor-set FILE, too"
    else:
        code, mend = "server_failed", f"see what it offers: thoughtgate grpc describe {url}"
    what = said or f"{url} did not answer in time"
    return Finding(code=code, where=f"server {server.name}", what=what, mend=mend)


def _command(server: Server) -> str:
    """Return the program of a server; its arguments may be secrets."""
    transport = server.transport
    if not isinstance(transport, StdioTransport):
        return server.name
    shown = shlex.quote(transport.argv[0])
    return f"{shown} …" if len(transport.argv) > 1 else shown


def _cleaned(line: bytes) -> str:
    text = "".join(c if c.isprintable() else " " for c in line.decode("utf-8", "replace")).strip()
    return text if len(text) <= _NOISE else text[: _NOISE - 1] + "…"
