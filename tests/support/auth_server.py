"""Servers that want a login: the SDK's own, and one that does what a test tells it.

Each is authorization server and tool server at once, on loopback; the test plays the browser.
"""

import asyncio
import json
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

import httpx2
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tests.support.sdk_server import SdkPeer
from tests.support.waiting import until, within

SCOPES = ["read", "write"]


class Browser:
    """What a person does in a browser: follow the login to its last page.

    `detour` may change where the authorization server sends the browser back to.
    """

    def __init__(self, detour: Callable[[str], Awaitable[str]] | None = None) -> None:
        self.opened: list[str] = []
        self._detour = detour
        self._pages: list[asyncio.Task[str]] = []

    async def open(self, url: str) -> None:
        self.opened.append(url)
        self._pages.append(asyncio.create_task(self.visit(url)))

    async def page(self) -> str:
        """Return the text of the last page."""
        return await within(self._pages[-1])

    async def visit(self, url: str) -> str:
        """Follow an address to its last page and return the text."""
        async with httpx2.AsyncClient(trust_env=False) as client:
            sent = await client.get(url)
            back = sent.headers.get("location", "")
            if not back:
                return sent.text
            if self._detour is not None:
                back = await self._detour(back)
            return (await client.get(back)).text


@dataclass
class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """The memory of the SDK's authorization server; refresh tokens are good for one use."""

    lifetime: int = 3600
    issuer: str = ""
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)
    issued: list[str] = field(default_factory=list)
    spent: set[str] = field(default_factory=set)
    refreshes: int = 0
    reused: int = 0

    def expire(self) -> None:
        """Let no access token be good any more."""
        self.access.clear()

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        code = AuthorizationCode(
            code=secrets.token_hex(20),
            scopes=params.scopes or SCOPES[:1],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(
            str(params.redirect_uri), code=code.code, state=params.state, iss=self.issuer
        )

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self.grant(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        known = self.refresh.get(refresh_token)
        if refresh_token in self.spent:
            self.reused += 1
            self.refresh.clear()  # as rotation wants it: whoever uses one twice ends the login
        return known

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.refreshes += 1
        self.spent.add(refresh_token.token)
        del self.refresh[refresh_token.token]
        return self.grant(client, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access = {k: v for k, v in self.access.items() if v.client_id != token.client_id}
        self.refresh = {k: v for k, v in self.refresh.items() if v.client_id != token.client_id}

    def grant(
        self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None
    ) -> OAuthToken:
        access = AccessToken(
            token=secrets.token_hex(20),
            client_id=client.client_id,
            scopes=scopes,
            resource=resource,
            expires_at=int(time.time()) + self.lifetime,
        )
        refresh = RefreshToken(
            token=secrets.token_hex(20),
            client_id=client.client_id,
            scopes=scopes,
            resource=resource,
        )
        self.access[access.token] = access
        self.refresh[refresh.token] = refresh
        self.issued += [access.token, refresh.token]
        return OAuthToken(
            access_token=access.token,
            refresh_token=refresh.token,
            expires_in=self.lifetime,
            scope=" ".join(scopes),
        )


@dataclass(frozen=True)
class Guarded:
    """The SDK's server behind its own authorization server."""

    url: str
    provider: Provider


@asynccontextmanager
async def sdk_with_login(
    *, lifetime: int = 3600, around: Callable[[ASGIApp], ASGIApp] = lambda app: app
) -> AsyncIterator[Guarded]:
    """Serve an SDK peer, with something `around` it, that lets in only who is logged in."""
    provider = Provider(lifetime=lifetime)
    with listener() as listening:
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        provider.issuer = origin
        settings = AuthSettings.model_validate({
            "issuer_url": origin,
            "resource_server_url": f"{origin}/mcp",
            "required_scopes": SCOPES[:1],
            "validate_token_resource": True,
            "client_registration_options": ClientRegistrationOptions(
                enabled=True, valid_scopes=SCOPES, default_scopes=SCOPES[:1]
            ),
            "revocation_options": RevocationOptions(enabled=True),
        })
        app = SdkPeer().server.streamable_http_app(
            auth=settings,
            token_verifier=ProviderTokenVerifier(provider),
            auth_server_provider=provider,
        )
        async with served(around(app), listening):
            yield Guarded(f"{origin}/mcp", provider)


@dataclass
class Scripted:
    """A server that wants a login, and an authorization server, both as a test tells them to be.

    `resource` and `server` change the two metadata documents (None leaves one out); `back` changes
    what the browser brings back; `tokens` are the next answers of the token endpoint, as status
    and body. What came is kept in `forms`, `asked` (authorize) and `heard` (the tool server).
    """

    origin: str = ""
    resource: dict[str, Any] | None = field(default_factory=dict)
    server: dict[str, Any] | None = field(default_factory=dict)
    back: dict[str, str] = field(default_factory=dict)
    tokens: list[tuple[int, Any]] = field(default_factory=list)
    registration: tuple[int, Any] = (201, {"client_id": "made", "client_secret": "s3cret"})
    challenge: str | None = None
    refuses: int = 401
    answer: int = 200
    good: str = "good"
    forms: list[dict[str, str]] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    registered: list[dict[str, Any]] = field(default_factory=list)
    heard: list[dict[str, str]] = field(default_factory=list)
    basics: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/mcp", self._mcp, methods=["GET", "POST", "DELETE"]),
                Route("/.well-known/oauth-protected-resource/mcp", self._resource),
                Route("/.well-known/oauth-authorization-server", self._server),
                Route("/authorize", self._authorize),
                Route("/register", self._register, methods=["POST"]),
                Route("/token", self._token, methods=["POST"]),
                Route("/revoke", self._revoke, methods=["POST"]),
            ]
        )

    async def _mcp(self, request: Request) -> Response:
        self.heard.append({":method": request.method, **request.headers})
        if request.headers.get("authorization") == f"Bearer {self.good}":
            if self.answer != 200:
                challenge = {"www-authenticate": self.challenge or "Bearer"}
                return Response(status_code=self.answer, headers=challenge)
            return JSONResponse(
                {"jsonrpc": "2.0", "id": 1, "result": {}}, headers={"mcp-session-id": "s1"}
            )
        if self.refuses == 401:
            where = f'Bearer resource_metadata="{self.origin}{_RESOURCE}"'
            return Response(status_code=401, headers={"www-authenticate": self.challenge or where})
        return Response(status_code=self.refuses)

    async def _resource(self, request: Request) -> Response:
        self.paths.append(request.url.path)
        whole = {"resource": self.url, "authorization_servers": [self.origin]}
        return _document(whole, self.resource)

    async def _server(self, request: Request) -> Response:
        self.paths.append(request.url.path)
        whole = {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "revocation_endpoint": f"{self.origin}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        }
        return _document(whole, self.server)

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        self.asked.append(asked)
        back = {"code": "c0de", "state": asked["state"], "iss": self.origin, **self.back}
        query = urlencode({name: value for name, value in back.items() if value})
        return RedirectResponse(f"{asked['redirect_uri']}?{query}", 302)

    async def _register(self, request: Request) -> Response:
        self.registered.append(await request.json())
        status, body = self.registration
        return JSONResponse(body, status)

    async def _token(self, request: Request) -> Response:
        self.forms.append(dict(parse_qsl((await request.body()).decode())))
        self.basics.append(request.headers.get("authorization", ""))
        await self.gate.wait()
        status, body = self.tokens.pop(0) if self.tokens else (200, grant(self.good))
        if isinstance(body, str):
            return Response(body, status, headers={"location": body} if status == 307 else {})
        return JSONResponse(body, status)

    async def _revoke(self, request: Request) -> Response:
        self.forms.append(dict(parse_qsl((await request.body()).decode())))
        return Response()


_RESOURCE = "/.well-known/oauth-protected-resource/mcp"


def grant(token: str = "good", **fields: Any) -> dict[str, Any]:
    """Return the body of a token endpoint that gives a token."""
    usual = {"access_token": token, "token_type": "Bearer", "expires_in": 3600}
    return {**usual, "refresh_token": f"again-{token}", **fields}


@asynccontextmanager
async def scripted(**script: Any) -> AsyncIterator[Scripted]:
    """Serve a script."""
    with listener() as listening:
        made = Scripted(origin=f"http://127.0.0.1:{listening.getsockname()[1]}", **script)
        async with served(made.app(), listening):
            yield made


def listener() -> socket.socket:
    """Return a socket on a free port of loopback."""
    # named as TCP, or asyncio leaves Nagle's algorithm on and every reply waits 40 ms
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.bind(("127.0.0.1", 0))
    return made


@asynccontextmanager
async def served(app: Any, listening: socket.socket) -> AsyncIterator[None]:
    """Serve an app on a socket for the length of the block."""
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=0)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    await until(lambda: server.started)
    try:
        yield
    finally:
        server.should_exit = True
        await within(serving)


def _document(whole: dict[str, Any], changes: dict[str, Any] | None) -> Response:
    if changes is None:
        return Response(status_code=404)
    merged = {**whole, **changes}
    kept = {name: value for name, value in merged.items() if value is not None}
    return Response(json.dumps(kept), media_type="application/json")
