"""Logging in at a server: from being refused to calling its tools, and what comes after.

The test plays the browser; the server and its authorization server are the SDK's own.
"""

import asyncio
import json
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import Client, MCPError

from tests.support.auth_server import Browser, Guarded, scripted, sdk_with_login
from tests.support.gate import START, Gate, Home, command, gate, home
from tests.support.waiting import within

ERAS = ["handshake", "stateless"]
SECRET = "canary-s3cret"
WELL = '"structuredContent": {"a": 1}'


@pytest.fixture
async def server() -> AsyncIterator[Guarded]:
    async with sdk_with_login() as made:
        yield made


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return home(tmp_path)


def add(place: Home, url: str, *options: str) -> None:
    done = place.invoke("server", "add", "web", "--url", url, *options)
    assert done.exit_code == 0, done.output


async def run(place: Home, *arguments: object) -> tuple[int, str]:
    """Run a command beside this loop, which serves what it talks to; return its code and words."""
    done = await asyncio.to_thread(place.run, *arguments)
    return done.returncode, done.stdout + done.stderr


async def log_in(place: Home, *options: str, browser: Browser | None = None) -> str:
    """Log in on the command line as a person at a terminal without a browser; return the words."""
    process = await asyncio.create_subprocess_exec(
        *command("server", "login", "web", "--no-browser", *options),
        env=place.environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    words = ""
    try:
        assert process.stdout is not None
        while line := (await within(process.stdout.readline(), START)).decode():
            words += line
            if re.match("https?://", line):
                await (browser or Browser()).open(line.strip())
    finally:
        if process.returncode is None and sys.exc_info()[0] is not None:
            process.kill()
        await within(process.wait(), START)
    assert process.returncode == 0, words
    return words


async def called(url: str) -> str:
    """Call a tool through the gateway; return what came, or why not."""
    async with Client(url) as client:
        try:
            result = await client.call_tool("web__echo", {"a": 1})
        except MCPError as error:
            return str(error)
    return json.dumps(result.model_dump(by_alias=True, mode="json"))


async def until_called(url: str, what: str = WELL) -> None:
    """Return as soon as a call says `what`."""
    async with asyncio.timeout(START):
        while what not in await called(url):
            pass  # each round opens a session and waits for its answer


async def state(place: Home) -> dict[str, str]:
    [row] = await asyncio.to_thread(place.said, "server", "list")
    return {key: row[key] for key in ("login", "state")}


@asynccontextmanager
async def serving(place: Home) -> AsyncIterator[Gate]:
    made = gate(place)
    running = await asyncio.to_thread(made.__enter__)
    try:
        yield running
    finally:
        await asyncio.to_thread(made.__exit__, None, None, None)


@pytest.mark.timeout(120)  # it starts ten processes
@pytest.mark.parametrize("era", ERAS)
async def test_from_being_refused_to_calling_and_back(
    place: Home, server: Guarded, era: str
) -> None:
    add(place, server.url, "--era", era)
    checked = await asyncio.to_thread(place.invoke, "server", "list", "--check")
    assert checked.exit_code == 1
    assert "needs_auth" in checked.output
    assert "run thoughtgate server login web" in checked.output

    words = await log_in(place)
    assert "server web: logged in until " in words
    assert "renewed by itself" in words
    assert [token for token in server.provider.issued if token in words] == []
    code, words = await run(place, "tool", "call", "web__echo", "a=1")
    assert code == 0, words

    server.provider.expire()
    code, words = await run(place, "tool", "call", "web__echo", "a=1")
    assert code == 0, words
    assert server.provider.refreshes == 1
    assert (await state(place))["login"].startswith("logged in until ")

    server.provider.expire()
    server.provider.refresh.clear()
    code, words = await run(place, "tool", "call", "web__echo", "a=1")
    assert code == 3
    assert "invalid_grant" in words
    assert "run thoughtgate server login web" in words
    assert (await state(place))["login"] == "needs login"
    assert server.provider.reused == 0


@pytest.mark.timeout(120)
@pytest.mark.parametrize("era", ERAS)
async def test_a_gateway_that_runs_takes_up_login_renewal_and_logout(
    place: Home, server: Guarded, era: str
) -> None:
    add(place, server.url, "--era", era)
    async with serving(place) as running:
        url = running.url()
        await log_in(place)
        await until_called(url)
        server.provider.expire()
        assert WELL in await called(url)
        assert server.provider.refreshes == 1

        code, words = await run(place, "server", "logout", "web")
        assert (code, "its tokens were given back" in words) == (0, True)
        assert server.provider.refresh == {}
        await until_called(url, "run thoughtgate server login web")
        await log_in(place)
        await until_called(url)
        words = running.words
    seen = words + json.dumps(place.audit_rows())
    assert [token for token in server.provider.issued if token in seen] == []


@pytest.mark.timeout(120)
async def test_two_gateways_on_one_registry_do_not_lose_each_others_tokens(
    place: Home, server: Guarded
) -> None:
    add(place, server.url)
    await log_in(place)
    async with serving(place) as one, serving(place) as other:
        urls = [one.url(), other.url()]
        for url in urls:
            await until_called(url)
        for _ in range(3):
            server.provider.expire()
            found = await asyncio.gather(*(called(url) for url in urls * 4))
            assert [words for words in found if WELL not in words] == []
    assert (server.provider.refreshes, server.provider.reused) == (3, 0)


@pytest.mark.timeout(120)
async def test_a_server_that_moves_has_to_be_logged_in_to_again(
    place: Home, server: Guarded
) -> None:
    add(place, server.url)
    await log_in(place)
    assert (await state(place))["login"].startswith("logged in until ")
    async with scripted() as elsewhere:
        add(place, elsewhere.url, "--replace")
        checked = await asyncio.to_thread(place.invoke, "server", "list", "--check")
    assert (checked.exit_code, "needs_auth" in checked.output) == (1, True)
    assert (await state(place))["login"] == ""
    assert {heard.get("authorization") for heard in elsewhere.heard} == {None}


@pytest.mark.timeout(120)
async def test_a_client_of_ones_own_is_named_once_and_a_machine_needs_nobody(
    place: Home,
) -> None:
    async with scripted() as server:
        add(place, server.url)
        own = replace(place, extra={"WEB_SECRET": SECRET})
        words = await log_in(
            own, "--machine", "--client-id", "ours", "--client-secret-env", "WEB_SECRET",
            "--issuer", server.origin, "--scope", "jobs",
        )  # fmt: skip
        again = await log_in(place)
    assert [form["grant_type"] for form in server.forms] == ["client_credentials"] * 2
    assert [form["scope"] for form in server.forms] == ["jobs"] * 2
    assert server.basics[0] == server.basics[1] != ""
    assert SECRET not in words + again
    shown = place.invoke("server", "show", "web").output + place.invoke("config", "show").output
    assert "login: logged in until " in shown
    for secret in (SECRET, "good"):
        assert secret not in shown
        assert secret.encode() not in b"".join(p.read_bytes() for p in place.state.iterdir())


async def test_who_breaks_a_login_off_is_not_logged_in(place: Home, server: Guarded) -> None:
    add(place, server.url)
    process = await asyncio.create_subprocess_exec(
        *command("server", "login", "web", "--no-browser"),
        env=place.environment,
        stderr=asyncio.subprocess.PIPE,
    )
    words = ""
    try:
        assert process.stderr is not None
        while "/authorize?" not in words:
            line = (await within(process.stderr.readline(), START)).decode()
            assert line, words
            words += line
        process.send_signal(signal.SIGINT)
        words += (await within(process.stderr.read(), START)).decode()
    finally:
        if process.returncode is None and sys.exc_info()[0] is not None:
            process.kill()
        code = await within(process.wait(), START)
    assert (code, words.splitlines()[-1]) == (130, "interrupted")
    assert (await state(place))["login"] == ""


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("--client-id", "x", "--client-secret-env", "HOME"), "needs --issuer"),
    (("--client-secret-env", "HOME"), "needs --client-id"),
    (("--client-id", "x", "--client-secret-env", "NO_SUCH"), "NO_SUCH is not set"),
    (("--machine",), "--machine needs --client-id"),
]


@pytest.mark.parametrize(("options", "why"), WRONG)
def test_a_command_line_that_cannot_work_is_refused_before_anything_is_sent(
    place: Home, options: tuple[str, ...], why: str
) -> None:
    add(place, "http://127.0.0.1:9/mcp")
    done = place.invoke("server", "login", "web", "--no-browser", *options)
    assert done.exit_code == 2
    assert why in done.stderr


def test_only_a_server_at_a_url_without_a_header_of_its_own_has_a_login(place: Home) -> None:
    for name, options in {
        "child": ("--", "x"),
        "own": ("--url", "http://127.0.0.1:9/mcp", "--header", "authorization=Bearer x"),
    }.items():
        assert place.invoke("server", "add", name, *options).exit_code == 0
    said = {
        name: place.invoke("server", "login", name, "--no-browser").stderr
        for name in ("child", "own", "none")
    }
    assert "is a command" in said["child"]
    assert "header of its own" in said["own"]
    assert "no server is named none" in said["none"]
    assert "there was no login" in place.invoke("server", "logout", "child").stderr
    assert place.said("server", "logout", "child")["logout"] == "there was no login"
