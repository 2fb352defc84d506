"""A server that wants a login, as the gateway keeps it: in both eras, over real connections."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.shared.auth import OAuthClientInformationFull
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.support.auth_server import Guarded, sdk_with_login
from tests.support.logins import MemoryLogins
from tests.support.upstreams import Rig, http_server, rig
from thoughtgate.core.errors import UpstreamDenied, UpstreamUnreachable
from thoughtgate.core.servers import Era, UpstreamState
from thoughtgate.upstream.auth import Account, Login, OAuthClient
from thoughtgate.upstream.auth_logins import Logins
from thoughtgate.upstream.http_client import PooledClient

_WELL = {UpstreamState.STARTING, UpstreamState.READY}
CHALLENGE = b'Bearer error="insufficient_scope", scope="write"'


@pytest.fixture(params=[Era.HANDSHAKE, Era.STATELESS])
def era(request: pytest.FixtureRequest) -> Era:
    found: Era = request.param
    return found


def scoped(app: ASGIApp) -> ASGIApp:
    """Refuse calls of the tool `sum` for want of a scope."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != "/mcp":
            await app(scope, receive, send)
            return
        first: list[Message] = [await receive()]
        sent = json.loads(first[0].get("body") or b"{}")
        if sent.get("params", {}).get("name") == "sum":
            headers = [(b"www-authenticate", CHALLENGE), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body"})
            return

        async def again() -> Message:
            return first.pop() if first else await receive()

        await app(scope, again, send)

    return guarded


async def login_at(server: Guarded) -> Login:
    """Have the authorization server give tokens, without the pages."""
    client = OAuthClientInformationFull.model_validate({
        "client_id": "made",
        "client_secret": "s3cret",
        "token_endpoint_auth_method": "client_secret_post",
    })
    await server.provider.register_client(client)
    tokens = server.provider.grant(client, ["read"], server.url)
    return Login(
        account=Account("peer", server.url),
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token or "",
        scope="read",
        client=OAuthClient(id="made", secret="s3cret", method="client_secret_post"),
        resource=server.url,
        token_url=f"{server.provider.issuer}/token",
    )


@asynccontextmanager
async def kept(server: Guarded, era: Era) -> AsyncIterator[tuple[Rig, Logins]]:
    """Keep a server of which the login is known."""
    store, client = MemoryLogins(), PooledClient()
    await store.put(await login_at(server))
    logins = Logins(store, client)
    logins.apply(store.kept.values())
    try:
        async with rig(http_server(server.url, era=era), credentials=logins) as made:
            yield made, logins
    finally:
        await logins.aclose()
        await client.aclose()


def stands(made: Rig) -> tuple[UpstreamState, str]:
    [status] = made.upstreams.statuses()
    return status.state, status.reason


async def test_a_token_that_ends_between_calls_is_no_matter_of_the_callers(era: Era) -> None:
    async with sdk_with_login() as server, kept(server, era) as (made, _):
        for number in range(3):
            server.provider.expire()
            assert await made.call("echo", {"n": number}) == {"n": number}
        assert (server.provider.refreshes, server.provider.reused) == (3, 0)
        assert {status.state for status in made.statuses} <= _WELL


async def test_a_scope_that_one_tool_wants_takes_no_other_away(era: Era) -> None:
    async with sdk_with_login(around=scoped) as server, kept(server, era) as (made, _):
        for _ in range(4):
            with pytest.raises(UpstreamDenied, match='--scope "read write"'):
                await made.call("sum", {"a": 1, "b": 2})
        assert await made.call("echo", {"n": 1}) == {"n": 1}
        assert stands(made) == (UpstreamState.READY, "")
        assert server.provider.refreshes == 0


async def test_a_login_that_is_over_says_what_to_run_until_there_is_another(era: Era) -> None:
    async with sdk_with_login() as server, kept(server, era) as (made, logins):
        await made.call("echo")
        server.provider.expire()
        server.provider.refresh.clear()
        told: list[Any] = []
        for _ in range(4):
            with pytest.raises((UpstreamDenied, UpstreamUnreachable)) as caught:
                await made.call("echo")
            told.append(caught.value.message)
        assert [line for line in told if "run thoughtgate server login peer" not in line] == []
        state, reason = stands(made)
        assert state is UpstreamState.NEEDS_AUTH
        assert "invalid_grant" in reason
        logins.apply([await login_at(server)])
        await made.upstreams.restart("peer")
        assert await made.call("echo", {"n": 1}) == {"n": 1}
        assert stands(made) == (UpstreamState.READY, "")
