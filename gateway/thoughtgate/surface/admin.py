"""The admin face: a raw ASGI application for `/api/v1`, driven by a table of routes.

Never answers anybody without the token, not even about what there is, and never a browser's page
of another origin.
"""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec

from thoughtgate.core.audit import AuditRow
from thoughtgate.core.calls import Principal
from thoughtgate.core.errors import GateError, Malformed
from thoughtgate.core.ports import AuditLog
from thoughtgate.surface.admin_openapi import document
from thoughtgate.surface.admin_problems import bug, problem_of, refused
from thoughtgate.surface.admin_route import BASE, Ask, D, Match, Route, etag, match_of
from thoughtgate.surface.admin_values import Problem
from thoughtgate.surface.http_guard import HostRules
from thoughtgate.surface.http_io import (
    Headers,
    HttpRequest,
    Receive,
    Refusal,
    Scope,
    Send,
    not_allowed,
    read_body,
    respond,
)
from thoughtgate.wire.strict import MAX_REQUEST, parse

ADMIN: Final = Principal(id="admin", name="admin API")
"""Who changes something over the admin API."""

_SINGLE: Final = frozenset({
    b"authorization", b"content-type", b"host", b"if-match", b"if-none-match", b"origin",
})  # fmt: skip
_SITES: Final = frozenset({b"same-origin", b"none"})
_ALWAYS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_JSON: Final = (b"content-type", b"application/json")
_PROBLEM: Final = (b"content-type", b"application/problem+json")

_DOCUMENT: Final = "openapi.json"

App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings:
    """The token, our version, who may speak to us, and bounds.

    Bytes of a body, the seconds that it may take, and requests at once. With `intents` a change is
    begun only when the audit log durably holds that it is asked for.
    """

    token: str = field(repr=False)
    version: str
    hosts: HostRules = field(default_factory=HostRules)
    max_body: int = MAX_REQUEST
    body_timeout: float = 15.0
    max_running: int = 32
    intents: bool = False


class _Reply(NamedTuple):
    body: bytes
    tag: str = ""


class AdminFace(Generic[D]):
    """The ASGI application. `revision` tells where the registry stands, for ETags."""

    def __init__(
        self,
        routes: Sequence[Route[D]],
        desk: D,
        revision: Callable[[], Awaitable[int]],
        audit: AuditLog,
        settings: AdminSettings,
    ) -> None:
        self._routes = tuple(routes)
        self._desk = desk
        self._revision = revision
        self._audit = audit
        self._settings = settings
        self._token = settings.token.encode()
        self._document = msgspec.json.encode(document(self._routes, settings.version))
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        try:
            reply = await self._replied(scope, receive, send)
        except Refusal as error:
            await _fail(send, refused(error), error.headers)
        except GateError as error:
            await _fail(send, problem_of(error))
        else:
            if isinstance(reply, Problem):
                await _fail(send, reply)
            else:
                tag = ((b"etag", reply.tag.encode()),) if reply.tag else ()
                await respond(send, 200, reply.body, (_JSON, *_ALWAYS, *tag))

    async def _replied(self, scope: Scope, receive: Receive, send: Send) -> "_Reply | Problem":
        request = HttpRequest(
            method=scope["method"],
            headers=self._checked(scope["headers"]),
            domain="",
            principal=ADMIN,
            receive=receive,
            send=send,
        )
        segments = _segments(scope)
        if segments == (_DOCUMENT,) and request.method == "GET":
            return _Reply(self._document)
        route, path = self._route(segments, request.method)
        with self._slot():
            if not route.writes:
                return await self._asked(route, path, scope["query_string"], request)
            if self._settings.intents:
                self._audit.append(_row(route, path, ""))
                await self._audit.flush()
            outcome = "cancelled"
            try:
                reply = await self._asked(route, path, scope["query_string"], request)
                outcome = reply.code if isinstance(reply, Problem) else "ok"
            except Refusal as error:
                outcome = refused(error).code
                raise
            except GateError as error:
                outcome = error.code
                raise
            finally:
                self._audit.append(_row(route, path, outcome))
            return reply

    async def _asked(
        self, route: Route[D], path: Mapping[str, str], query: bytes, request: HttpRequest
    ) -> "_Reply | Problem":
        """Return what an operation answers to a request.

        Raises:
            Refusal: HTTP itself is not right.
            GateError: What was sent is not what the operation takes.
        """
        ask = Ask(
            path=path,
            query=_query(route, query),
            match=_match(route, request),
            body=await self._body(route, request),
        )
        return await self._answer(route, ask)

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if self._running >= self._settings.max_running:
            raise Refusal(503, message="too many admin requests at once; try later")
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    async def _answer(self, route: Route[D], ask: Ask) -> "_Reply | Problem":
        """Return the reply or the problem; no bug gets past this door."""
        work = asyncio.ensure_future(self._done(route, ask))
        try:
            await asyncio.wait([work])
        finally:
            work.cancel()
        error = work.exception()
        if error is None:
            return work.result()
        return problem_of(error) if isinstance(error, GateError) else bug(error)

    async def _done(self, route: Route[D], ask: Ask) -> "_Reply":
        tag = etag(await self._revision()) if route.tagged else ""
        value = await route.handler(self._desk, ask)
        return _Reply(msgspec.json.encode(value), tag)

    def _checked(self, pairs: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
        """Return the headers of one who may ask.

        Raises:
            Refusal: He may not.
        """
        headers = dict(pairs)
        self._settings.hosts.check(headers)
        if b"upgrade" in headers.get(b"connection", b"").lower():
            raise Refusal(400, message="no other protocol is spoken here; do not ask to upgrade")
        names = [name for name, _ in pairs if name in _SINGLE]
        if len(names) != len(set(names)):
            raise Refusal(400, message="a header that decides something came twice")
        _check_origin(headers)
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            raise Refusal(
                401,
                message="send the token of the gateway's admin.token as Authorization: Bearer",
                headers=((b"www-authenticate", b'Bearer realm="thoughtgate"'),),
            )
        return headers

    def _route(self, segments: tuple[str, ...], method: str) -> tuple[Route[D], Mapping[str, str]]:
        allowed = []
        for route in self._routes:
            path = route.fits(segments)
            if path is not None and route.method == method:
                return route, path
            if path is not None:
                allowed.append(route.method)
        if allowed:
            raise not_allowed(", ".join(allowed).encode())
        raise Refusal(404, message="no such operation; see /api/v1/openapi.json")

    async def _body(self, route: Route[D], request: HttpRequest) -> Any:
        if route.body is None:
            return None
        kind = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal(415, message="the content type must be application/json")
        bounds = self._settings
        data = await read_body(request, cap=bounds.max_body, seconds=bounds.body_timeout)
        value = parse(data)
        if route.refuse is not None:
            route.refuse(value)
        return _converted(value, route.body, "the body", strict=True)


class Front:
    """Gives `/api/v1` to the admin face, where there is one, and everything else to the other."""

    def __init__(self, rest: App, admin: App | None) -> None:
        self._rest = rest
        self._admin = admin

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one ASGI connection."""
        ours = scope["type"] == "http" and f"{scope['path']}/".startswith(f"{BASE}/")
        app = self._admin if ours and self._admin is not None else self._rest
        return app(scope, receive, send)


def _check_origin(headers: Headers) -> None:
    """Refuse pages of other origins: those of this very place alone may ask.

    Raises:
        Refusal: A browser says that it is one.
    """
    origin = headers.get(b"origin")
    own = {scheme + headers.get(b"host", b"").lower() for scheme in (b"http://", b"https://")}
    if origin is not None and origin.lower() not in own:
        raise Refusal(403, message="pages of other origins may not call")
    if headers.get(b"sec-fetch-site", b"none").lower() not in _SITES:
        raise Refusal(403, message="pages of other sites may not call")


def _segments(scope: Scope) -> tuple[str, ...]:
    """Return the parts of the path, each decoded on its own: a name may hold a slash."""
    raw = scope.get("raw_path") or scope["path"].encode()
    rest = raw.partition(b"?")[0].decode("latin-1").removeprefix(BASE).removeprefix("/")
    try:
        return tuple(unquote(part, errors="strict") for part in rest.split("/"))
    except UnicodeDecodeError:
        raise Refusal(400, message="the path is not UTF-8") from None


def _query(route: Route[Any], query: bytes) -> Any:
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise Malformed(message="the query cannot be read") from None
    given = dict(pairs)
    if len(given) != len(pairs):
        raise Malformed(message="a key of the query came twice")
    if route.query is None:
        if given:
            raise Malformed(message="this operation takes no query")
        return None
    return _converted(given, route.query, "the query", strict=False)


def _converted(value: Any, kind: type[msgspec.Struct], what: str, *, strict: bool) -> Any:
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise Malformed(message=f"{what}: {str(error)[:300]}") from None


def _match(route: Route[Any], request: HttpRequest) -> Match:
    if not route.writes:
        return Match()
    match = match_of(request.header(b"if-match"), request.header(b"if-none-match"))
    if match is None:
        raise Malformed(message='If-Match takes one ETag such as "42", or *; If-None-Match takes *')
    if route.guarded and match == Match():
        raise Refusal(428, message="send If-Match with the ETag of what you looked at, or *")
    return match


def _row(route: Route[Any], path: Mapping[str, str], outcome: str) -> AuditRow:
    return AuditRow(
        at_ns=time.time_ns(),
        action=f"admin.{route.name}",
        principal=ADMIN.id,
        domain=path.get("domain", ""),
        server=path.get("server", ""),
        tool=path.get("tool", ""),
        outcome=outcome,
    )


async def _fail(send: Send, problem: Problem, extra: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    """Send a problem; the connection is closed, since the body may not have been read."""
    headers = (_PROBLEM, (b"connection", b"close"), *_ALWAYS, *extra)
    await respond(send, problem.status, msgspec.json.encode(problem), headers)
