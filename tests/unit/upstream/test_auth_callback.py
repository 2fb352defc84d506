"""The page on loopback to which a browser comes back, and where a login may lead to."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.http_peer import Got, HttpPeer
from tests.support.waiting import within
from thoughtgate.core.errors import UpstreamDenied, UpstreamUnreachable
from thoughtgate.upstream.auth_callback import Callback, listening
from thoughtgate.upstream.auth_places import check_place, check_reach
from thoughtgate.upstream.http_rules import target

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
async def callback() -> AsyncIterator[Callback]:
    async with listening() as made:
        made.expect("right")
        yield made


async def came(callback: Callback, path: str, method: str = "GET", **headers: str) -> Got:
    return await HttpPeer(callback.url).send(method, path, headers=headers)


async def test_the_browser_waits_for_a_page_that_tells_how_it_ended(callback: Callback) -> None:
    browser = asyncio.create_task(came(callback, "/callback?code=c&state=right&iss=i"))
    answer = await within(callback.answer())
    assert (answer.code, answer.issuer, answer.error) == ("c", "i", "")
    assert not browser.done()
    await callback.finish(f"Logged in {EVIL}", EVIL)
    got = await within(browser)
    assert got.status == 200
    assert EVIL not in got.body.decode()
    assert "&lt;img" in got.body.decode()
    policy = got.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script" not in policy
    assert (got.headers["cache-control"], got.headers["referrer-policy"]) == (
        "no-store",
        "no-referrer",
    )


async def test_it_listens_on_loopback_only(callback: Callback) -> None:
    assert callback.url.startswith("http://127.0.0.1:")


STRANGE = [
    ("/callback?code=c&state=wrong", "GET", {}, 400),
    ("/callback?code=c", "GET", {}, 400),
    ("/callback?code=c&state=right&state=right", "GET", {}, 400),
    ("/callback?code=c&state=right", "POST", {}, 404),
    ("/favicon.ico", "GET", {}, 404),
    ("//[", "GET", {}, 404),
    ("http://[/callback?code=c&state=right", "GET", {}, 404),
    ("/callback?code=c&state=right", "GET", {"host": "evil.example"}, 421),
]


@pytest.mark.parametrize(("path", "method", "headers", "status"), STRANGE)
async def test_what_is_not_the_answer_is_refused_and_the_answer_still_taken(
    callback: Callback, path: str, method: str, headers: dict[str, str], status: int
) -> None:
    assert (await came(callback, path, method, **headers)).status == status
    browser = asyncio.create_task(came(callback, "/callback?code=c&state=right"))
    assert (await within(callback.answer())).code == "c"
    await callback.finish("Logged in", "")
    await within(browser)


async def test_an_answer_is_taken_once(callback: Callback) -> None:
    browser = asyncio.create_task(came(callback, "/callback?code=first&state=right"))
    await within(callback.answer())
    again = await came(callback, "/callback?code=second&state=right")
    assert again.status == 400
    assert (await within(callback.answer())).code == "first"
    await callback.finish("Logged in", "")
    await within(browser)


async def test_before_a_login_begins_no_answer_is_taken() -> None:
    async with listening() as callback:
        assert (await came(callback, "/callback?code=c&state=")).status == 400


async def test_many_wrong_answers_end_the_login(callback: Callback) -> None:
    for _ in range(51):
        await came(callback, "/callback?code=c&state=guess")
    with pytest.raises(UpstreamDenied, match="too many answers"):
        await within(callback.answer())


async def test_a_login_that_is_broken_off_says_so_to_the_browser() -> None:
    async with listening() as callback:
        callback.expect("right")
        browser = asyncio.create_task(came(callback, "/callback?code=c&state=right"))
        await within(callback.answer())
    assert "broken off" in (await within(browser)).body.decode()


OPEN = "https://8.8.8.8/mcp"
LOCAL = "http://127.0.0.1:9/mcp"
INSIDE = "https://10.0.0.5/mcp"


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://1.1.1.1/token", OPEN),
        ("https://10.0.0.6/token", INSIDE),
        ("https://1.1.1.1/token", INSIDE),
        ("http://127.0.0.1:10/token", LOCAL),
        ("http://localhost:10/token", LOCAL),
        ("http://10.0.0.5/token", "http://10.0.0.5/mcp"),
    ],
)
async def test_a_login_may_lead_to_places_as_far_away_as_the_server(url: str, server: str) -> None:
    await within(check_reach(check_place(url, server), server))


@pytest.mark.parametrize(
    ("url", "server", "why"),
    [
        ("http://1.1.1.1/token", OPEN, "not encrypted"),
        ("http://10.0.0.5:8080/token", "http://10.0.0.5/mcp", "not encrypted"),
        ("https://user:pass@1.1.1.1/token", OPEN, "without a password"),
        ("file:///etc/passwd", OPEN, "http or https"),
        ("javascript:alert(1)", OPEN, "http or https"),
        ("http://127.0.0.1:9/token", OPEN, "inside this network"),
        ("https://localhost/token", OPEN, "inside this network"),
        ("https://[::ffff:10.0.0.1]/token", OPEN, "inside this network"),
        ("https://10.0.0.1/token", OPEN, "inside this network"),
        ("https://169.254.169.254/latest", INSIDE, "inside this network"),
        ("https://169.254.169.254/latest", LOCAL, "inside this network"),
        ("https://127.0.0.1/token", INSIDE, "inside this network"),
    ],
)
async def test_a_login_leads_to_no_nearer_or_weaker_place(url: str, server: str, why: str) -> None:
    with pytest.raises(UpstreamDenied, match=why):
        await within(check_reach(check_place(url, server), server))


async def test_a_name_without_an_address_is_unreachable() -> None:
    with pytest.raises(UpstreamUnreachable, match="has no address"):
        await within(check_reach(target(f"https://{'x' * 70}/"), LOCAL))
