"""Logging in at a tool server, by the SDK's OAuth client.

Never sends anything to a place that the rules of `auth_places` refuse, nor a client that a person
named to another authorization server; and never lets more of an answer into an error than its code.
"""

import logging
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from mcp.client.auth import (
    AuthorizationCodeResult,
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
)
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.utils import (
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    issuers_match,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url

from thoughtgate.core.errors import (
    ConfigError,
    GateError,
    Malformed,
    UpstreamDenied,
    UpstreamGarbled,
    UpstreamUnreachable,
)
from thoughtgate.upstream.auth import Login, OAuthClient
from thoughtgate.upstream.auth_callback import Callback, listening
from thoughtgate.upstream.auth_places import check_place
from thoughtgate.upstream.auth_tokens import expiry
from thoughtgate.upstream.auth_web import web
from thoughtgate.upstream.auth_wish import Wish, headers_of
from thoughtgate.upstream.http_rules import target
from thoughtgate.wire import handshake, methods
from thoughtgate.wire.messages import encode_request
from thoughtgate.wire.strict import parse

Open = Callable[[str], Awaitable[None]]
"""Shows the page of an authorization server to a person."""

_CODE = re.compile(r"[a-z_]{1,60}")
_METHODS: tuple[Literal["none", "client_secret_post", "client_secret_basic"], ...] = (
    "none",
    "client_secret_post",
    "client_secret_basic",
)
"""How a client that is made for a login may prove itself, the best way first."""


async def log_in(wish: Wish, open_page: Open, *, tls: ssl.SSLContext | None = None) -> Login:
    """Log in and return the login.

    Raises:
        UpstreamDenied: The server, its authorization server or the person said no.
        UpstreamError: One of them could not be asked, or its answer not be used.
        ConfigError: The server wants no login, or the port is taken.
    """
    url = wish.account.url
    check_place(url, url)
    with _quiet():
        async with web(url, tls) as client, listening(wish.port) as callback:
            flow = _Flow(wish, client, callback, open_page)
            try:
                login = await flow.run()
            except GateError as error:
                await callback.finish("Not logged in", f"{error.message}. Close this page.")
                raise
            server = wish.account.server
            await callback.finish("Logged in", f"You are logged in at {server}. Close this page.")
    return login


class _Kept:
    """What the SDK's client keeps: it starts with the client that a person named, if one did."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.client = client
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        if client_info.client_secret and client_info.token_endpoint_auth_method is None:
            client_info.token_endpoint_auth_method = "client_secret_basic"  # as RFC 7591 has it
        self.client = client_info


class _Flow:
    """One login: the SDK's client says what to send, and we look at it first."""

    def __init__(
        self, wish: Wish, client: httpx2.AsyncClient, callback: Callback, open_page: Open
    ) -> None:
        self._wish = wish
        self._client = client
        self._callback = callback
        self._open_page = open_page
        self._kept = _Kept(None if wish.by_url else _named(wish, callback.url))
        self._provider = self._provided()
        self._asked = 0  # the status of the server's first answer
        self._failure = ""  # the error code of the last answer that was one

    async def run(self) -> Login:
        """Go through the whole of it.

        Raises:
            UpstreamError: Why not.
        """
        asking = _probe(self._wish)
        steps = self._provider.async_auth_flow(asking)
        try:
            outgoing = await anext(steps)
            while True:
                response = await self._sent(outgoing, first=outgoing is asking)
                outgoing = await steps.asend(response)
        except StopAsyncIteration:
            pass  # the last thing sent was the probe, with the token
        except OAuthFlowError as error:
            raise self._told(error) from None
        except httpx2.HTTPError as error:
            raise UpstreamUnreachable(message=_unreachable(error)) from None
        except (httpx2.InvalidURL, ValueError):
            raise UpstreamGarbled(
                message="the login leads to something that cannot be read"
            ) from None
        finally:
            await steps.aclose()
        if response.status_code in {401, 403}:
            raise UpstreamDenied(
                message=f"the server refuses the token that it sent for (status"
                f" {response.status_code}); ask its operator"
            )
        await self._leave(response)
        return self._login()

    async def _sent(self, request: httpx2.Request, *, first: bool) -> httpx2.Response:
        if not first and request.method == "POST":
            self._check_discovered()
        response = await self._client.send(request, follow_redirects=False)
        if first and not self._asked:
            self._asked = response.status_code
            return self._challenge(response)
        if not first:
            self._learn(response)
        return response

    def _challenge(self, response: httpx2.Response) -> httpx2.Response:
        """Return the server's answer as the challenge that the SDK's client shall take up.

        A server may let everybody in and give more to who is logged in, and a person may want
        another scope than the server says.
        """
        if response.is_redirect:
            raise UpstreamGarbled(
                message=f"status {response.status_code} redirects, which is not followed;"
                " register the address that it names if that is the intended server"
            )
        if response.status_code >= 500:
            raise UpstreamUnreachable(message=f"the server says status {response.status_code}")
        metadata = scope = None
        if response.status_code in {401, 403}:
            metadata = extract_resource_metadata_from_www_auth(response)
            scope = extract_scope_from_www_auth(response)
        fields = {"resource_metadata": metadata, "scope": self._wish.scope or scope}
        words = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value)
        headers = {"WWW-Authenticate": f"Bearer {words}".strip()}
        return httpx2.Response(401, headers=headers, request=response.request)

    def _learn(self, response: httpx2.Response) -> None:
        """Choose how the client proves itself, and keep the code of an error."""
        try:
            value = parse(response.content)
        except Malformed:
            value = None
        found: Mapping[str, Any] = value if isinstance(value, dict) else {}
        if response.status_code >= 400:
            code = found.get("error")
            known = isinstance(code, str) and _CODE.fullmatch(code)
            self._failure = str(code) if known else f"status {response.status_code}"
        elif response.request.method == "GET" and "token_endpoint" in found:
            methods_ = found.get("token_endpoint_auth_methods_supported")
            self._choose(methods_ if isinstance(methods_, list) else ["client_secret_basic"])

    def _choose(self, offered: list[object]) -> None:
        """Use a given secret as every server must take it, another as most MCP servers do."""
        context, given = self._provider.context, self._provider.context.client_info
        if given is not None and given.client_secret:
            post = "client_secret_post" in offered and "client_secret_basic" not in offered
            given.token_endpoint_auth_method = f"client_secret_{'post' if post else 'basic'}"
            return
        wanted = next((method for method in _METHODS if method in offered), None)
        context.client_metadata.token_endpoint_auth_method = wanted

    def _check_discovered(self) -> None:
        """Make sure that what was found out is enough, before anything of ours is sent.

        Raises:
            UpstreamError: It is not.
            ConfigError: There is nothing to log in to.
        """
        context, wish = self._provider.context, self._wish
        found = context.oauth_metadata
        issuer = "" if found is None else str(found.issuer)
        if found is None and context.auth_server_url is None and self._asked != 401:
            raise ConfigError(
                message=f"server {wish.account.server} asks for no login, and names no"
                f" authorization server (status {self._asked})"
            )
        if found is None and (context.auth_server_url is not None or wish.client is not None):
            where = target(context.auth_server_url or wish.account.url).origin
            raise UpstreamGarbled(message=f"{where} publishes no metadata that can be used")
        if wish.issuer and not issuers_match(issuer, wish.issuer):
            raise UpstreamDenied(
                message=f"the server leads to {issuer[:200]}, but the client belongs to"
                f" {wish.issuer}; nothing was sent"
            )
        if wish.client is not None and not wish.by_url and context.client_info is None:
            raise UpstreamDenied(message="the client cannot be used there; nothing was sent")
        if wish.by_url and not (found and found.client_id_metadata_document_supported):
            raise UpstreamDenied(message=f"{issuer[:200]} takes no client that is a url")
        if found is not None and not wish.machine:
            self._check_pkce(found.code_challenge_methods_supported, issuer)

    def _check_pkce(self, offered: list[str] | None, issuer: str) -> None:
        if "S256" not in (offered or ()):
            raise UpstreamDenied(
                message=f"{issuer[:200]} does not offer PKCE with S256, without which a code"
                " could be stolen; nothing was sent"
            )

    async def _redirect(self, url: str) -> None:
        """Show the authorization server's page."""
        self._check_discovered()
        check_place(url, self._wish.account.url)
        self._callback.expect(parse_qs(urlsplit(url).query)["state"][-1])
        await self._open_page(url)

    async def _answer(self) -> AuthorizationCodeResult:
        answer = await self._callback.answer(self._wish.patience)
        if answer.error or not answer.code:
            code = answer.error if _CODE.fullmatch(answer.error) else "no code came"
            raise UpstreamDenied(message=f"the login was refused: {code}")
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.issuer)

    async def _check_resource(self, server_url: str, resource: str | None) -> None:
        """Refuse metadata that are another server's."""
        ours = resource_url_from_server_url(server_url)
        if resource and not check_resource_allowed(ours, resource):
            shown = target(resource).origin + target(resource).path
            raise UpstreamDenied(
                message=f"the server's metadata are those of {shown[:200]}, not its own;"
                " nothing was sent"
            )

    def _told(self, error: OAuthFlowError) -> GateError:
        if isinstance(error, OAuthRegistrationError):
            return UpstreamDenied(
                message="the authorization server registers no client of ours"
                f" ({self._failure or 'its answer cannot be used'}); ask its operator for one, and"
                " give --client-id"
            )
        if isinstance(error, OAuthTokenError):
            return UpstreamDenied(
                message="the authorization server gives no token:"
                f" {self._failure or 'its answer cannot be used'}"
            )
        text = str(error)[:400]
        return UpstreamGarbled(message=f"the login cannot go on: {text[:1].lower()}{text[1:]}")

    async def _leave(self, response: httpx2.Response) -> None:
        """End the session that the probe may have opened; nobody minds if that fails."""
        session = response.headers.get(handshake.SESSION_HEADER)
        if session is None:
            return
        headers = {**headers_of(self._wish), handshake.SESSION_HEADER: session}
        headers["authorization"] = response.request.headers["authorization"]
        try:
            await self._client.request("DELETE", self._wish.account.url, headers=headers)
        except httpx2.HTTPError:
            return

    def _login(self) -> Login:
        context, tokens, wish = self._provider.context, self._kept.tokens, self._wish
        client = context.client_info
        if tokens is None or client is None:
            raise UpstreamGarbled(message="the authorization server gives no token")
        found, now = context.oauth_metadata, time.time()
        origin = target(wish.account.url).origin
        return Login(
            account=wish.account,
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token or "",
            issued_at=now,
            expires_at=expiry(tokens.expires_in, now),
            scope=tokens.scope or "",
            asked_scope=wish.scope,
            client=OAuthClient(
                id=client.client_id,
                secret=client.client_secret or "",
                method=client.token_endpoint_auth_method or "none",
                given=wish.client is not None,
            ),
            issuer=str(found.issuer) if found else origin,
            resource=context.get_resource_url(),
            token_url=str(found.token_endpoint) if found else urljoin(origin, "/token"),
            revoke_url=str((found and found.revocation_endpoint) or ""),
            machine=wish.machine,
        )

    def _provided(self) -> OAuthClientProvider:
        wish = self._wish
        if wish.machine:
            client = wish.client
            if client is None or not client.secret:
                raise ConfigError(message="--machine needs --client-id and --client-secret-env")
            return ClientCredentialsOAuthProvider(
                wish.account.url,
                self._kept,
                client_id=client.id,
                client_secret=client.secret,
                scope=wish.scope or None,
                issuer=wish.issuer,
            )
        return OAuthClientProvider(
            wish.account.url,
            OAuthClientMetadata.model_validate({
                "client_name": "thoughtgate",
                "redirect_uris": [self._callback.url],
            }),
            self._kept,
            redirect_handler=self._redirect,
            callback_handler=self._answer,
            client_metadata_url=wish.client.id if wish.client and wish.by_url else None,
            validate_resource_url=self._check_resource,
        )


def _named(wish: Wish, callback: str) -> OAuthClientInformationFull | None:
    if wish.client is None:
        return None
    return OAuthClientInformationFull.model_validate({
        "client_id": wish.client.id,
        "client_secret": wish.client.secret or None,
        "token_endpoint_auth_method": "client_secret_basic" if wish.client.secret else "none",
        "redirect_uris": [callback],
        "issuer": wish.issuer or None,
    })


def _probe(wish: Wish) -> httpx2.Request:
    """Return a request that a server answers with what it wants of us."""
    hello = handshake.hello_params({"name": "thoughtgate", "version": "0"}, {})
    body = encode_request(1, methods.INITIALIZE, hello)
    return httpx2.Request("POST", wish.account.url, headers=headers_of(wish), content=body)


def _unreachable(error: httpx2.HTTPError) -> str:
    try:
        where = target(str(error.request.url)).origin
    except (RuntimeError, GateError):
        where = "the server"
    return f"no answer from {where}: {type(error).__name__}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the SDK from logging what an authorization server says, and what was sent to it."""
    loggers = [logging.getLogger(name) for name in ("mcp.client.auth", "httpx2", "httpcore2")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
