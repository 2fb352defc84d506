"""Logging in: against the SDK's authorization server, and one that does everything wrong."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import pytest

from tests.support.auth_server import Browser, Scripted, grant, scripted, sdk_with_login
from tests.support.waiting import within
from thoughtgate.core.errors import (
    ConfigError,
    GateError,
    UpstreamDenied,
    UpstreamGarbled,
    UpstreamUnreachable,
)
from thoughtgate.upstream.auth import Account, Login, OAuthClient
from thoughtgate.upstream.auth_flow import log_in
from thoughtgate.upstream.auth_wish import Wish

SECRET = "canary-s3cret"
GIVEN = OAuthClient(id="ours", secret=SECRET, given=True)


async def logged_in(server: Scripted, browser: Browser | None = None, **wish: Any) -> Login:
    open_page = (browser or Browser()).open
    return await within(log_in(Wish(account=Account("web", server.url), **wish), open_page))


async def refused(server: Scripted, browser: Browser | None = None, **wish: Any) -> GateError:
    """Log in, which must fail before the server has seen a token; return why."""
    with pytest.raises(GateError) as caught:
        await logged_in(server, browser, **wish)
    assert SECRET not in caught.value.message
    return caught.value


async def test_a_person_logs_in_at_the_sdks_server_with_pkce_and_resource() -> None:
    browser = Browser()
    async with sdk_with_login() as server:
        wish = Wish(account=Account("web", server.url))
        login = await within(log_in(wish, browser.open))
        page = await browser.page()
        asked = parse_qs(urlsplit(browser.opened[0]).query)
        token = server.provider.access[login.access_token]
    assert "You are logged in at web." in page
    assert asked["code_challenge_method"] == ["S256"]
    assert token.resource == asked["resource"][0] == login.resource == server.url
    assert login.refresh_token in server.provider.issued
    assert (login.scope, login.client.method) == ("read", "client_secret_post")
    assert login.renewable


async def test_the_session_that_the_question_opened_is_given_back() -> None:
    async with scripted() as server:
        login = await logged_in(server)
    assert login.access_token == "good"
    asked, sent, left = server.heard
    assert "authorization" not in asked
    assert sent["authorization"] == left["authorization"] == "Bearer good"
    assert (left[":method"], left["mcp-session-id"]) == ("DELETE", "s1")


async def test_a_registered_client_is_one_of_this_machine() -> None:
    async with scripted() as server:
        login = await logged_in(server)
    [made] = server.registered
    assert made["application_type"] == "native"
    assert made["redirect_uris"] == [server.asked[0]["redirect_uri"]]
    assert made["redirect_uris"][0].startswith("http://127.0.0.1:")
    assert (login.client.id, login.client.secret) == ("made", "s3cret")
    assert not login.client.given
    assert server.basics == ["Basic bWFkZTpzM2NyZXQ="]


async def test_where_public_clients_are_taken_no_secret_is_asked_for() -> None:
    offered = {"token_endpoint_auth_methods_supported": ["none", "client_secret_basic"]}
    registration = (201, {"client_id": "made", "token_endpoint_auth_method": "none"})
    async with scripted(server=offered, registration=registration) as server:
        login = await logged_in(server)
    assert server.registered[0]["token_endpoint_auth_method"] == "none"
    assert (login.client.method, login.client.secret, server.basics) == ("none", "", [""])


async def test_a_client_that_a_person_named_is_used_and_none_registered() -> None:
    async with scripted() as server:
        login = await logged_in(server, client=GIVEN, issuer=server.origin)
    assert server.registered == []
    assert server.asked[0]["client_id"] == "ours"
    assert login.client == OAuthClient(
        id="ours", secret=SECRET, method="client_secret_basic", given=True
    )


async def test_a_secret_goes_into_the_form_only_where_nothing_else_is_taken() -> None:
    offered = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    async with scripted(server=offered) as server:
        login = await logged_in(server, client=GIVEN, issuer=server.origin)
    assert login.client.method == "client_secret_post"
    assert (server.forms[0]["client_secret"], server.basics) == (SECRET, [""])


async def test_a_client_that_is_a_url_is_used_where_that_is_offered() -> None:
    client = OAuthClient(id="https://client.example/thoughtgate.json", given=True)
    offered = {
        "client_id_metadata_document_supported": True,
        "token_endpoint_auth_methods_supported": ["none"],
    }
    async with scripted(server=offered) as server:
        login = await logged_in(server, client=client)
        server.server = {}
        no = await refused(server, client=client)
    assert login.client == OAuthClient(id=client.id, given=True)
    assert server.registered == []
    assert "takes no client that is a url" in no.message


async def test_a_machine_logs_in_without_a_browser() -> None:
    browser = Browser()
    async with scripted(tokens=[(200, grant(refresh_token=None))]) as server:
        login = await logged_in(
            server, browser, client=GIVEN, issuer=server.origin, machine=True, scope="jobs"
        )
    assert browser.opened == []
    [form] = server.forms
    assert form["grant_type"] == "client_credentials"
    assert (form["resource"], form["scope"]) == (server.url, "jobs")
    assert login.machine
    assert login.renewable
    assert login.refresh_token == ""


async def test_the_scope_is_what_the_server_says_unless_a_person_says_another() -> None:
    async with scripted() as server:
        where = f'resource_metadata="{server.origin}/.well-known/oauth-protected-resource/mcp"'
        server.challenge = f'Bearer scope="files:read", {where}'
        await logged_in(server)
        login = await logged_in(server, scope="files:read files:write")
    assert [asked["scope"] for asked in server.asked] == ["files:read", "files:read files:write"]
    assert login.asked_scope == "files:read files:write"


async def test_one_may_log_in_where_guests_are_welcome_too() -> None:
    async with scripted(refuses=200) as server:
        assert (await logged_in(server)).access_token == "good"


async def test_a_server_that_knows_no_login_is_told_from_one_that_cannot_be_logged_in_to() -> None:
    async with scripted(refuses=200, resource=None, server=None) as server:
        nothing = await refused(server)
        server.resource = {}
        hidden = await refused(server)
    assert isinstance(nothing, ConfigError)
    assert "server web asks for no login" in nothing.message
    assert isinstance(hidden, UpstreamGarbled)
    assert "publishes no metadata" in hidden.message
    assert server.forms == server.registered == []


async def test_a_server_without_metadata_is_logged_in_to_at_its_own_origin() -> None:
    async with scripted(resource=None, server=None, back={"iss": ""}) as server:
        login = await logged_in(server)
    assert login.token_url == f"{server.origin}/token"
    assert login.issuer == server.origin


WRONG: dict[str, tuple[dict[str, Any], type[GateError], str]] = {
    "another issuer": (
        {"server": {"issuer": "https://other.example"}},
        UpstreamGarbled,
        "issuer mismatch",
    ),
    "another resource": (
        {"resource": {"resource": "https://other.example/mcp"}},
        UpstreamDenied,
        "those of https://other.example:443/mcp",
    ),
    "no pkce": (
        {"server": {"code_challenge_methods_supported": ["plain"]}},
        UpstreamDenied,
        "PKCE",
    ),
    "pkce is not spoken of": (
        {"server": {"code_challenge_methods_supported": None}},
        UpstreamDenied,
        "PKCE",
    ),
    "a page that is a file": (
        {"server": {"authorization_endpoint": "file:///etc/passwd"}},
        UpstreamGarbled,
        "no metadata",
    ),
    "a page that is a script": (
        {"server": {"authorization_endpoint": "javascript:alert(1)"}},
        UpstreamGarbled,
        "no metadata",
    ),
    "a page that is not encrypted": (
        {"server": {"authorization_endpoint": "http://login.example/$(calc)"}},
        UpstreamDenied,
        "not encrypted",
    ),
    "a token endpoint that is not encrypted": (
        {"server": {"token_endpoint": "http://login.example/token"}},
        UpstreamDenied,
        "not encrypted",
    ),
    "a place that cannot be read": (
        {"challenge": 'Bearer resource_metadata="http://a:99999999/"'},
        UpstreamDenied,
        "leads to a bad address",
    ),
    "a scope of other letters": (
        {"challenge": 'Bearer scope="\xe9"'},
        UpstreamGarbled,
        "cannot be read",
    ),
    "an answer without a bottom": (
        {"tokens": [(200, "[" * 200_000)]},
        UpstreamDenied,
        "gives no token",
    ),
    "a token endpoint that only this machine reaches": (
        {"server": {"token_endpoint": "https://169.254.169.254/token"}},
        UpstreamDenied,
        "inside this network",
    ),
    "registration refused": (
        {"registration": (403, {"error": "access_denied"})},
        UpstreamDenied,
        r"registers no client of ours \(access_denied\)",
    ),
    "a registration without a client": ({"registration": (201, {})}, UpstreamDenied, "cannot"),
    "no token": ({"tokens": [(400, {"error": "invalid_grant"})]}, UpstreamDenied, "invalid_grant"),
    "a token of no use": ({"good": "other", "tokens": [(200, grant())]}, UpstreamDenied, "refuses"),
    "no json": ({"tokens": [(200, "<html>")]}, UpstreamDenied, "gives no token"),
    "a bad error": ({"tokens": [(500, {"error": f"<{SECRET}>"})]}, UpstreamDenied, "status 500"),
    "a page said no": ({"back": {"error": "access_denied"}}, UpstreamDenied, "access_denied"),
    "a page said more than a code": (
        {"back": {"error": f"<b>{SECRET}</b>"}},
        UpstreamDenied,
        "no code came",
    ),
    "no code": ({"back": {"code": ""}}, UpstreamDenied, "no code came"),
    "an answer of another issuer": (
        {"back": {"iss": "https://evil.example"}},
        UpstreamGarbled,
        "iss mismatch",
    ),
    "an answer without the issuer that was promised": (
        {"server": {"authorization_response_iss_parameter_supported": True}, "back": {"iss": ""}},
        UpstreamGarbled,
        "missing iss",
    ),
}


@pytest.mark.parametrize(("script", "kind", "why"), WRONG.values(), ids=WRONG)
async def test_what_is_wrong_with_a_login_is_said(
    script: dict[str, Any], kind: type[GateError], why: str
) -> None:
    async with scripted(**script) as server:
        with pytest.raises(kind, match=why) as caught:
            await logged_in(server)
    assert SECRET not in caught.value.message


@pytest.mark.parametrize("back", [{"error": "access_denied"}, {"iss": "https://evil.example"}])
async def test_no_token_is_asked_for_once_the_page_was_wrong(back: dict[str, str]) -> None:
    browser = Browser()
    async with scripted(back=back) as server:
        await refused(server, browser)
        assert "Not logged in" in await browser.page()
        assert server.forms == []


async def test_a_named_client_is_sent_to_its_own_authorization_server_only() -> None:
    async with scripted() as evil:
        for machine in (False, True):
            no = await refused(evil, client=GIVEN, issuer="https://login.example", machine=machine)
            assert "https://login.example" in no.message
        evil.server = None
        assert "no metadata" in (await refused(evil, client=GIVEN, issuer=evil.origin)).message
    assert evil.forms == evil.registered == evil.asked == []


async def test_an_answer_with_another_state_is_ignored_and_the_right_one_taken() -> None:
    stranger: list[str] = []

    async def detour(back: str) -> str:
        parts = urlsplit(back)
        wrong = urlunsplit(parts._replace(query="code=evil&state=guessed"))
        stranger.append(await Browser().visit(wrong))
        return back

    async with scripted() as server:
        login = await logged_in(server, Browser(detour))
    assert "belongs to no login" in stranger[0]
    assert server.forms[0]["code"] == "c0de"
    assert login.access_token == "good"


async def test_a_person_who_never_comes_back_is_waited_for_with_a_bound() -> None:
    async def nobody(url: str) -> None:
        """Close the browser."""

    async with scripted() as server:
        wish = Wish(account=Account("web", server.url), patience=0.05)
        with pytest.raises(UpstreamDenied, match=r"nobody finished the login within 0\.05"):
            await within(log_in(wish, nobody))


async def test_a_port_that_is_taken_is_said_before_anything_is_sent() -> None:
    async with scripted() as server:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            no = await refused(server, port=taken.getsockname()[1])
    assert isinstance(no, ConfigError)
    assert "--port" in no.message
    assert server.heard == []


@pytest.mark.parametrize("place", ["mcp", "token"])
async def test_a_redirect_to_another_origin_is_not_followed(place: str) -> None:
    async with scripted() as other, scripted() as server:
        if place == "mcp":
            server.refuses = 307
        else:
            server.tokens = [(307, f"{other.origin}/token")]
        no = await refused(server)
        assert other.forms == other.heard == []
    assert isinstance(no, UpstreamDenied | UpstreamGarbled)


async def test_an_endless_answer_is_cut() -> None:
    async with scripted(tokens=[(200, {"access_token": "x" * 2_000_000})]) as server:
        no = await refused(server)
    assert "longer than" in no.message


async def test_a_server_that_is_not_there_is_said_to_be_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    wish = Wish(account=Account("web", f"http://127.0.0.1:{port}/mcp?key={SECRET}"))
    with pytest.raises(UpstreamUnreachable) as caught:
        await within(log_in(wish, Browser().open))
    assert f"no answer from http://127.0.0.1:{port}" in caught.value.message
    assert SECRET not in caught.value.message


@pytest.mark.parametrize("ends", [lambda s: None, lambda s: s.tokens.append((400, {}))])
async def test_nothing_of_a_login_is_logged_or_printed(
    ends: Callable[[Scripted], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mcp")
    async with scripted(good=SECRET) as server:
        ends(server)
        try:
            shown = repr(await logged_in(server))
        except UpstreamDenied as error:
            shown = error.message
    secrets = [SECRET, "c0de", "s3cret", server.forms[0]["code_verifier"]]
    said = shown + "".join(record.getMessage() for record in caplog.records if "mcp" in record.name)
    assert [secret for secret in secrets if secret in said] == []


async def test_a_login_that_is_given_up_leaves_nothing_listening() -> None:
    waiting = asyncio.Event()

    async def shown(url: str) -> None:
        waiting.set()

    async with scripted() as server:
        wish = Wish(account=Account("web", server.url))
        task = asyncio.create_task(log_in(wish, shown))
        await within(waiting.wait())
        task.cancel()
        await asyncio.wait([task])
        port = urlsplit(server.registered[0]["redirect_uris"][0]).port
        with pytest.raises(OSError, match="Connect"):
            await asyncio.open_connection("127.0.0.1", port)
