"""Logins in use: sent to their server only, renewed in time, once, and never lost on the way."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.support.auth_server import Scripted, grant, scripted
from tests.support.logins import NOW, Clock, MemoryLogins, make_login
from tests.support.waiting import until, within
from thoughtgate.core.errors import (
    UpstreamDenied,
    UpstreamError,
    UpstreamGarbled,
    UpstreamUnreachable,
)
from thoughtgate.core.servers import HttpTransport, Server, StdioTransport
from thoughtgate.upstream.auth import Login, OAuthClient
from thoughtgate.upstream.auth_client import AuthorizedClient, authorized
from thoughtgate.upstream.auth_logins import Logins
from thoughtgate.upstream.auth_tokens import revoke
from thoughtgate.upstream.http_client import PooledClient
from thoughtgate.upstream.ports import HttpReply, HttpRequest

WAY = "run thoughtgate server login web"


@dataclass
class Rig:
    """A client that is logged in at a scripted server, as one process has it."""

    server: Scripted
    store: MemoryLogins
    clock: Clock
    logins: Logins
    inner: PooledClient

    @property
    def client(self) -> AuthorizedClient:
        return AuthorizedClient(self.inner, self.login.account, self.logins)

    @property
    def login(self) -> Login:
        return make_login(self.server.origin)

    async def kept(self, **fields: Any) -> None:
        """Have a login, as a gateway that has just started with it."""
        await self.store.put(replace(self.login, **fields))
        self.logins.apply(self.store.kept.values())

    async def send(self, method: str = "POST", url: str = "") -> HttpReply:
        request = HttpRequest(
            method=method, url=url or self.server.url, headers={"x": "1"}, body=b"{}"
        )
        return await within(self.client.send(request))

    async def status(self) -> int:
        reply = await self.send()
        await reply.read()
        return reply.status

    async def refused(self, kind: type[UpstreamError] = UpstreamDenied) -> str:
        with pytest.raises(kind) as caught:
            await self.send()
        assert "good" not in caught.value.message
        assert "again" not in caught.value.message
        return caught.value.message

    def sent(self) -> list[str]:
        """Return the credentials of each request that the server heard."""
        return [heard.get("authorization", "") for heard in self.server.heard]

    def another(self) -> "Rig":
        """Return the same in another process, over the same store."""
        logins = Logins(self.store, self.inner, clock=self.clock)
        logins.apply(self.store.kept.values())
        return replace(self, logins=logins)


@asynccontextmanager
async def rigged(**script: Any) -> AsyncIterator[Rig]:
    store, clock, inner = MemoryLogins(), Clock(), PooledClient()
    async with scripted(**script) as server:
        logins = Logins(store, inner, clock=clock)
        try:
            yield Rig(server, store, clock, logins, inner)
        finally:
            server.gate.set()
            await within(logins.aclose())
            await within(inner.aclose())


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with rigged() as made:
        yield made


async def test_every_request_carries_the_login(rig: Rig) -> None:
    await rig.kept()
    assert await rig.status() == 200
    await (await rig.send("GET")).read()
    assert rig.sent() == ["Bearer good"] * 2
    assert rig.server.forms == []


async def test_who_is_not_logged_in_is_told_how(rig: Rig) -> None:
    assert WAY in await rig.refused()
    assert rig.sent() == [""]


async def test_a_login_is_sent_to_no_other_origin(rig: Rig) -> None:
    await rig.kept()
    async with scripted() as other:
        reply = await rig.send(url=other.url)
        await reply.read()
    assert reply.status == 401
    assert "authorization" not in other.heard[0]


async def test_a_redirect_to_another_origin_takes_no_login_along(rig: Rig) -> None:
    await rig.kept()
    rig.server.answer = 307
    with pytest.raises(UpstreamGarbled, match="redirects"):
        await rig.send()


async def test_a_token_is_renewed_before_it_ends(rig: Rig) -> None:
    await rig.kept(access_token="older")
    rig.clock.now = NOW + 3541
    assert await rig.status() == 200
    assert rig.sent() == ["Bearer good"]
    [form] = rig.server.forms
    assert form == {
        "grant_type": "refresh_token",
        "refresh_token": "again",
        "resource": rig.server.url,
        "client_id": "made",
    }
    assert rig.server.basics == ["Basic bWFkZTpzM2NyZXQ="]
    [kept] = rig.store.kept.values()
    assert (kept.access_token, kept.refresh_token) == ("good", "again-good")
    assert (kept.issued_at, kept.expires_at) == (NOW + 3541, NOW + 3541 + 3600)


async def test_a_token_that_is_refused_is_renewed_and_the_request_sent_once_more(rig: Rig) -> None:
    await rig.kept(access_token="older")
    assert await rig.status() == 200
    assert rig.sent() == ["Bearer older", "Bearer good"]
    assert len(rig.server.forms) == 1


async def test_a_refresh_token_that_is_not_replaced_is_used_again(rig: Rig) -> None:
    await rig.kept(access_token="older")
    rig.server.tokens = [(200, grant("second", refresh_token=None, scope=None)), (200, grant())]
    rig.server.good = "second"
    assert await rig.status() == 200
    rig.server.good = "good"
    rig.clock.now += 120
    assert await rig.status() == 200
    assert [form["refresh_token"] for form in rig.server.forms] == ["again", "again"]
    assert next(iter(rig.store.kept.values())).scope == "read"


async def test_many_calls_at_once_renew_once(rig: Rig) -> None:
    await rig.kept(access_token="older")
    rig.server.gate.clear()
    tasks = [asyncio.create_task(rig.status()) for _ in range(20)]
    await until(lambda: len(rig.server.heard) == 20 and rig.server.forms)
    rig.server.gate.set()
    assert await within(asyncio.gather(*tasks)) == [200] * 20
    assert len(rig.server.forms) == 1


async def test_two_processes_renew_once(rig: Rig) -> None:
    await rig.kept(access_token="older")
    other = rig.another()
    rig.server.gate.clear()
    tasks = [asyncio.create_task(one.status()) for one in (rig, other)]
    await until(lambda: len(rig.server.heard) == 2 and rig.server.forms)
    rig.server.gate.set()
    assert await within(asyncio.gather(*tasks)) == [200, 200]
    assert len(rig.server.forms) == 1


async def test_a_renewal_by_another_process_is_taken_over(rig: Rig) -> None:
    await rig.kept(access_token="older")
    other = rig.another()
    assert await other.status() == 200
    assert await rig.status() == 200
    assert len(rig.server.forms) == 1


async def test_a_call_that_is_given_up_does_not_lose_the_renewal(rig: Rig) -> None:
    await rig.kept(access_token="older")
    rig.server.gate.clear()
    task = asyncio.create_task(rig.status())
    await until(lambda: rig.server.forms)
    task.cancel()
    await asyncio.wait([task])
    rig.server.gate.set()
    await within(rig.logins.aclose())
    assert next(iter(rig.store.kept.values())).refresh_token == "again-good"
    assert await rig.status() == 200
    assert len(rig.server.forms) == 1


async def test_a_login_that_was_made_meanwhile_counts_more_than_a_renewal(rig: Rig) -> None:
    await rig.kept(access_token="older")
    rig.server.tokens = [(200, grant("late"))]
    rig.server.gate.clear()
    task = asyncio.create_task(rig.status())
    await until(lambda: rig.server.forms)
    await rig.store.put(rig.login)
    rig.server.gate.set()
    assert await within(task) == 200
    assert rig.sent() == ["Bearer older", "Bearer good"]
    assert next(iter(rig.store.kept.values())).refresh_token == "again"


async def test_a_login_that_was_made_while_the_old_one_was_refused_is_used(rig: Rig) -> None:
    await rig.kept(access_token="older")
    rig.server.tokens = [(400, {"error": "invalid_grant"})]
    rig.server.gate.clear()
    task = asyncio.create_task(rig.status())
    await until(lambda: rig.server.forms)
    await rig.store.put(rig.login)
    rig.server.gate.set()
    assert await within(task) == 200


@pytest.mark.parametrize("seconds", [0, -1, "soon", None, 10**20])
async def test_a_token_whose_end_is_not_told_is_not_renewed_for_each_request(
    rig: Rig, seconds: object
) -> None:
    await rig.kept(access_token="older")
    rig.server.tokens = [(200, grant(expires_in=seconds))]
    assert [await rig.status(), await rig.status()] == [200, 200]
    assert len(rig.server.forms) == 1


async def test_a_login_that_was_forgotten_meanwhile_stays_forgotten(rig: Rig) -> None:
    await rig.kept(access_token="older")
    rig.server.gate.clear()
    task = asyncio.create_task(rig.send())
    await until(lambda: rig.server.forms)
    rig.store.kept.clear()
    rig.server.gate.set()
    with pytest.raises(UpstreamDenied, match="forgotten"):
        await within(task)
    assert rig.store.kept == {}
    assert rig.logins.headers(rig.login.account) == {}


async def test_a_login_that_is_made_is_used_at_once_also_before_anybody_was_told(rig: Rig) -> None:
    await rig.store.put(rig.login)
    assert await rig.status() == 200
    assert rig.sent() == ["", "Bearer good"]


@pytest.mark.parametrize("answer", [(400, "invalid_grant"), (401, "invalid_client")])
async def test_a_renewal_that_is_refused_ends_the_login_for_all_processes(
    rig: Rig, answer: tuple[int, str]
) -> None:
    await rig.kept(access_token="older")
    other = rig.another()
    rig.server.tokens = [(answer[0], {"error": answer[1], "error_description": "again good"})]
    told = await rig.refused()
    assert answer[1] in told
    assert WAY in told
    assert WAY in await rig.refused()
    assert WAY in await other.refused()
    assert len(rig.server.forms) == 1
    [kept] = rig.store.kept.values()
    assert answer[1] in kept.refused
    assert not kept.renewable


async def test_a_login_that_cannot_be_renewed_ends_by_the_clock_without_a_request(
    rig: Rig,
) -> None:
    await rig.kept(refresh_token="")
    rig.clock.now = NOW + 3599
    assert await rig.status() == 200
    rig.clock.now = NOW + 3600
    assert WAY in await rig.refused()
    assert len(rig.server.heard) == 1


async def test_a_login_without_an_end_is_renewed_when_it_is_refused(rig: Rig) -> None:
    await rig.kept(access_token="older", expires_at=None)
    rig.clock.now = NOW * 100
    assert await rig.status() == 200
    assert rig.sent() == ["Bearer older", "Bearer good"]


SICK: dict[str, tuple[int, Any]] = {
    "down": (503, {}),
    "asks for patience": (429, {"error": "slow_down"}),
    "no json": (200, "<html>"),
    "no token": (200, {"token_type": "Bearer"}),
    "another kind of token": (200, grant(token_type="DPoP")),
    "a token of two lines": (200, grant("a\r\nx: y")),
    "elsewhere": (307, "http://127.0.0.1:9/token"),
}


@pytest.mark.parametrize("answer", SICK.values(), ids=SICK)
async def test_a_sick_authorization_server_ends_no_login(rig: Rig, answer: tuple[int, Any]) -> None:
    await rig.kept(access_token="older")
    rig.server.tokens = [answer]
    assert "could not be renewed just now" in await rig.refused(UpstreamUnreachable)
    assert await rig.status() == 200


async def test_while_a_token_still_serves_a_failed_renewal_costs_nobody_a_call(rig: Rig) -> None:
    await rig.kept()
    rig.server.tokens = [(503, {}), (200, grant("newer"))]
    rig.clock.now = NOW + 3550
    assert [await rig.status(), await rig.status()] == [200, 200]
    assert len(rig.server.forms) == 1
    rig.clock.now = NOW + 3561
    rig.server.good = "newer"
    assert await rig.status() == 200
    assert len(rig.server.forms) == 2


async def test_a_slow_authorization_server_is_waited_for_with_a_bound(rig: Rig) -> None:
    await rig.kept(access_token="older")
    rig.logins = Logins(rig.store, rig.inner, clock=rig.clock, patience=0.05)
    rig.logins.apply(rig.store.kept.values())
    rig.server.gate.clear()
    assert "could not be renewed within 0.05 seconds" in await rig.refused(UpstreamUnreachable)


async def test_a_server_that_refuses_every_token_is_not_asked_for_ever(rig: Rig) -> None:
    await rig.kept(access_token="older")
    rig.server.good = "nothing pleases"
    rig.server.tokens = [(200, grant(f"t{number}")) for number in range(6)]
    for _ in range(5):
        assert "refuses the renewed login too" in await rig.refused()
    assert "one renewed login after the other" in await rig.refused()
    assert len(rig.server.forms) == 5
    rig.clock.now += 60
    assert "refuses the renewed login too" in await rig.refused()
    assert len(rig.server.forms) == 6


async def test_a_machine_gets_another_token_by_its_own_credentials(rig: Rig) -> None:
    client = OAuthClient(id="ours", secret="p&ss", method="client_secret_post", given=True)
    await rig.kept(
        access_token="older", refresh_token="", machine=True, client=client, asked_scope="jobs"
    )
    assert await rig.status() == 200
    [form] = rig.server.forms
    assert form == {
        "grant_type": "client_credentials",
        "scope": "jobs",
        "resource": rig.server.url,
        "client_id": "ours",
        "client_secret": "p&ss",
    }


CHALLENGES = {
    'Bearer error="insufficient_scope", scope="files:write"': (
        'lacks the scope "files:write"',
        '--scope "read files:write"',
    ),
    "Bearer error=insufficient_scope": ("lacks a scope;", "--scope"),
    'Bearer error="insufficient_scope", error_description="Required scope: admin"': (
        "lacks a scope (Required scope: admin)",
        "--scope",
    ),
}


@pytest.mark.parametrize(("challenge", "said"), CHALLENGES.items())
async def test_a_scope_that_is_missing_is_named(
    rig: Rig, challenge: str, said: tuple[str, str]
) -> None:
    await rig.kept()
    rig.server.answer, rig.server.challenge = 403, challenge
    told = await rig.refused()
    assert all(part in told for part in (WAY, *said))
    assert rig.server.forms == []


async def test_another_403_is_the_servers_own_matter(rig: Rig) -> None:
    await rig.kept()
    rig.server.answer = 403
    assert await rig.status() == 403


def test_a_header_of_the_servers_own_wins_over_a_login() -> None:
    inner, logins = PooledClient(), Logins(MemoryLogins(), PooledClient())
    own = HttpTransport(url="http://127.0.0.1:9/mcp", headers={"AUTHORIZATION": "Bearer own"})
    other = HttpTransport(url="http://127.0.0.1:9/mcp", headers={"x-api-key": "k"})
    command = StdioTransport(argv=("x",))
    made = [
        authorized(inner, Server(name="web", transport=transport), logins)
        for transport in (own, other, command)
    ]
    assert [one is inner for one in made] == [True, False, True]
    assert authorized(inner, Server(name="web", transport=other), None) is inner


async def test_what_changed_is_told_by_server_when_logins_are_taken(rig: Rig) -> None:
    one, other = rig.login, replace(rig.login, account=rig.login.account._replace(server="other"))
    assert rig.logins.apply([one, other]) == {"web", "other"}
    assert rig.logins.apply([one, other]) == frozenset()
    assert rig.logins.apply([replace(one, access_token="new", version=7)]) == {"web", "other"}
    assert rig.logins.headers(other.account) == {}


@pytest.mark.parametrize("url", ["/mcp", "/other"])
async def test_a_login_is_for_one_url_and_follows_no_server_to_another(rig: Rig, url: str) -> None:
    await rig.kept()
    account = rig.login.account._replace(url=f"{rig.server.origin}{url}")
    assert bool(rig.logins.headers(account)) is (url == "/mcp")


async def test_tokens_are_given_back_the_longer_lived_first(rig: Rig) -> None:
    await within(revoke(rig.inner, rig.login))
    assert [form["token"] for form in rig.server.forms] == ["again", "good"]
    assert rig.server.forms[0]["token_type_hint"] == "refresh_token"


END: dict[str, Callable[[Rig], Awaitable[object]]] = {
    "well": lambda rig: rig.status(),
    "refused": lambda rig: _told(rig, (400, {"error": "invalid_grant"})),
    "sick": lambda rig: _told(rig, (500, {"error": "again good s3cret"})),
}


async def _told(rig: Rig, answer: tuple[int, Any]) -> str:
    rig.server.tokens = [answer]
    with pytest.raises(UpstreamError) as caught:
        await rig.send()
    return repr(caught.value)


@pytest.mark.parametrize("ends", END.values(), ids=END)
async def test_no_token_is_logged_printed_or_told(
    rig: Rig, ends: Callable[[Rig], Awaitable[object]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "thoughtgate")
    await rig.kept(access_token="older-canary", refresh_token="again-canary")
    told = str(await ends(rig)) + repr(rig.store.kept)
    assert "canary" not in told + caplog.text
    assert "s3cret" not in told + caplog.text
