"""The admin API of a gateway that really runs, and the command line that asks it."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import Result

from tests.support.admin import AdminClient
from tests.support.gate import START, Gate, Home, command, gate, home, python_server
from tests.support.waiting import until
from thoughtgate.app.admin_token import TOKEN_FILE
from thoughtgate.cli.exits import Exit
from thoughtgate.testing.fake_http import fake_http

FAKE = python_server("fake", "thoughtgate.testing.fake_server", tags=["demo"])
SECRET = "canary-4711"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """A gateway that the tests of this file share; each uses names of its own."""
    with gate(home(tmp_path_factory.mktemp("admin"), FAKE)) as running:
        yield running


@pytest.fixture
def admin(running: Gate) -> AdminClient:
    return AdminClient(url=running.url(), token=token_of(running.home))


def token_of(place: Home) -> str:
    return (place.state / TOKEN_FILE).read_text(encoding="utf-8").strip()


def base(running: Gate) -> str:
    return running.url().removesuffix("/mcp")


def far(running: Gate, *arguments: object, fails: bool = False) -> Result:
    """Run a command against the gateway from a home that knows nothing of it but the token."""
    elsewhere = running.home.folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    options = ("--server", base(running), "--token-file", running.home.state / TOKEN_FILE)
    result = home(elsewhere).invoke(*options, *arguments)
    assert (result.exit_code != 0) is fails, result.output
    assert not (elsewhere / "state").exists()
    return result


def told(running: Gate, *arguments: object) -> Any:
    return json.loads(far(running, *arguments, "--json").stdout)


def test_the_token_is_for_its_owner_alone_and_nobody_else_sees_it(running: Gate) -> None:
    file = running.home.state / TOKEN_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.stat().st_uid == os.geteuid()
    token = token_of(running.home)
    told = AdminClient(url=running.url(), token=token).ask("GET", "/nothing")
    assert token not in json.dumps([told.body, dict(told.headers)])
    assert token not in running.words
    seen = Path(f"/proc/{running.process.pid}/cmdline")
    if seen.exists():
        assert token.encode() not in seen.read_bytes()
        assert token.encode() not in Path(f"/proc/{running.process.pid}/environ").read_bytes()


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604])
def test_a_gateway_does_not_start_with_a_token_that_others_may_know(
    tmp_path: Path, mode: int
) -> None:
    place = home(tmp_path)
    place.state.mkdir()
    file = place.state / TOKEN_FILE
    file.write_text("x" * 43, encoding="ascii")
    file.chmod(mode)
    refused = place.run("serve", "--port", "0")
    assert refused.returncode == Exit.USAGE
    assert f"cannot use the token file {file}" in refused.stderr
    assert "chmod 600" in refused.stderr
    assert "x" * 43 not in refused.stderr


def test_a_gateway_without_admin_api_has_none_and_makes_no_token(tmp_path: Path) -> None:
    place = home(tmp_path, 'admin = "off"\n')
    with gate(place) as running:
        answer = AdminClient(url=running.url(), token="x" * 43).ask("GET", "/status")
        assert answer.status == 404
        assert not (place.state / TOKEN_FILE).exists()


HOSTILE = [
    ({"Host": "evil.example"}, 421),
    ({"Host": "127.0.0.1.evil.example"}, 421),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "http://localhost:1"}, 403),
    ({"Origin": "null"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Authorization": "Bearer wrong"}, 401),
    ({"Authorization": "Basic wrong"}, 401),
]


@pytest.mark.parametrize(("headers", "number"), HOSTILE)
@pytest.mark.parametrize("path", ["/status", "/openapi.json", "/servers/web", "/reload", "/no"])
def test_hostile_requests_get_nowhere_on_any_route(
    admin: AdminClient, path: str, headers: dict[str, str], number: int
) -> None:
    for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
        answer = admin.ask(method, path, **headers)
        assert (answer.status, answer.code) == (number, answer.body["code"])
        assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_form_of_another_page_changes_nothing(admin: AdminClient) -> None:
    form = {"Content_Type": "text/plain", "If_None_Match": "*"}
    answer = admin.ask("PUT", "/servers/form", b'{"url":"http://a"}', **form)
    assert answer.status == 415
    assert admin.ask("GET", "/servers/form").status == 404


def test_a_body_that_is_too_large_is_refused(admin: AdminClient) -> None:
    told = {"Content_Length": str(5 * 2**20), "If_Match": "*"}
    answer = admin.ask("PUT", "/servers/big", b'"', **told)
    assert (answer.status, answer.code) == (413, "malformed")


COMMANDS = [
    {"command": ["touch", "{canary}"]},
    {"url": "http://127.0.0.1:9", "argv": ["touch", "{canary}"]},
    {"url": "http://127.0.0.1:9", "Command": "touch {canary}"},
    {"transport": {"type": "stdio", "command": "touch", "args": ["{canary}"]}},
    {"type": "stdio", "url": "touch {canary}"},
    {"url": "stdio:touch {canary}"},
    {"url": "http://127.0.0.1:9", "env": {"LD_PRELOAD": "{canary}"}},
    {"url": "http://127.0.0.1:9", "cwd": "/"},
    {"mcpServers": {"x": {"command": "touch", "args": ["{canary}"]}}},
]


@pytest.mark.parametrize("body", COMMANDS, ids=json.dumps)
def test_no_command_comes_over_the_network(
    admin: AdminClient, tmp_path: Path, body: dict[str, Any]
) -> None:
    canary = tmp_path / "canary"
    sent = json.dumps(body).replace("{canary}", str(canary)).encode()
    for name, match in (("evil", {"If_None_Match": "*"}), ("fake", {"If_Match": "*"})):
        answer = admin.ask("PUT", f"/servers/{name}", sent, **match)
        assert answer.status in {403, 422}
        assert answer.code == ("refused" if name == "evil" else answer.code)
    assert admin.ask("GET", "/servers/evil").status == 404
    assert admin.get("/servers/fake")["source"] == "config"
    assert not canary.exists()


def test_of_writers_at_once_exactly_one_wins_and_all_learn_it(admin: AdminClient) -> None:
    admin.do("PUT", "/domains/race", {"instructions": "0"}, If_None_Match="*")
    tag = admin.ask("GET", "/domains/race").tag
    statuses: list[int] = []

    def write(number: int) -> None:
        body = {"instructions": f"writer {number}"}
        statuses.append(admin.ask("PUT", "/domains/race", body, If_Match=tag).status)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(statuses) == [200] + [412] * 7
    assert admin.get("/domains/race")["revision"] == 2


async def test_a_change_by_the_local_command_line_reaches_the_gateway_by_itself(
    running: Gate, admin: AdminClient
) -> None:
    before = admin.get("/status")["domains"]
    done = running.home.invoke("domain", "set", "local", "--instructions", "from here")
    assert done.exit_code == 0, done.output
    # the status tells what is served, and does not look at the registry itself
    await until(lambda: admin.get("/status")["domains"] == before + 1)
    assert admin.get("/domains/local")["rules"]["instructions"] == "from here"


def test_what_is_put_is_served_when_the_reply_comes(running: Gate, admin: AdminClient) -> None:
    admin.do("PUT", "/domains/soon", {"include": ["fake/*"]}, If_None_Match="*")
    assert served(running.url("soon")) != 404
    admin.do("DELETE", "/domains/soon", If_Match="*")
    assert served(running.url("soon")) == 404


def served(url: str) -> int:
    """Return the status of an endpoint's answer to a request that means nothing."""
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=20)
    try:
        connection.request("POST", place.path, b"{}", {"Content-Type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_gateway_of_one_client_is_known_to_run_too(tmp_path: Path) -> None:
    place = home(tmp_path)
    with subprocess.Popen(
        command("serve", "--stdio"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=place.environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        process.stdin.flush()
        process.stdout.readline()
        [found] = json.loads(place.invoke("status", "--json").stdout)
        process.stdin.close()
        process.wait(START)
    assert (found["pid"], found["url"]) == (process.pid, "")
    assert not (place.state / TOKEN_FILE).exists()


async def test_a_signal_and_the_api_read_the_file_again_and_refuse_a_bad_one(
    tmp_path: Path,
) -> None:
    place = home(tmp_path)
    good = place.config.read_text(encoding="utf-8")
    with gate(place) as running:
        admin = AdminClient(url=running.url(), token=token_of(place))
        place.config.write_text(f'{good}[domains.one]\ninclude = ["a/*"]\n', encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        running.hear("the configuration was read again")
        assert admin.get("/domains/one")["source"] == "config"
        place.config.write_text(f"{good}[domains.two]\nx = 1\ny = 2\n", encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        running.hear("the old state stays")
        refused = admin.ask("POST", "/reload")
        assert (refused.status, refused.code) == (422, "config_error")
        assert len(refused.body["data"]["problems"]) == 2
        checked = place.invoke("config", "check")
        assert all(problem in checked.output for problem in refused.body["data"]["problems"])
        assert [one["name"] for one in admin.get("/domains")["domains"]] == ["default", "one"]
        assert running.process.poll() is None


async def test_reload_asks_every_gateway_that_listens_here(tmp_path: Path) -> None:
    place = home(tmp_path)
    good = place.config.read_text(encoding="utf-8")
    nobody = place.invoke("reload")
    assert (nobody.exit_code, "no gateway listens here" in nobody.output) == (2, True)
    with gate(place) as one, gate(place) as other:
        place.config.write_text(
            f'{good}[domains.one]\ninclude = ["a/*"]\n[limits]\ncall_depth = 3\n', encoding="utf-8"
        )
        told = place.said("reload")
        assert len(told) == 2
        for done in told:
            assert (done["domains"], done["restart"]) == (["one"], ["limits"])
        far_told = json.loads(place.invoke("--server", one.url(), "reload", "--json").stdout)
        assert (far_told[0]["domains"], far_told[0]["restart"]) == ([], ["limits"])
        place.config.write_text(f"{good}[domains.two]\nx = 1\n", encoding="utf-8")
        refused = place.invoke("--server", other.url(), "reload")
        assert refused.exit_code == 2
        assert "domains.two" in refused.output


def use_a_server(running: Gate, url: str) -> None:
    far(running, "server", "add", "web", "--url", url, "--header", f"K={SECRET}")
    assert (
        "registered already"
        in far(running, "server", "add", "web", "--url", url, fails=True).stderr
    )
    far(running, "server", "add", "web", "--url", url, "--replace", "--trusted")
    rows = {row["name"]: row for row in told(running, "server", "list", "--check")}
    assert (rows["web"]["state"], rows["fake"]["state"]) == ("ready", "ready")
    assert rows["web"]["tools"] > 0
    assert told(running, "server", "show", "web")["trusted"] is True
    tools = told(running, "tool", "list")["tools"]
    name = next(one["name"] for one in tools if one["server"] == "web")
    own = name.partition("__")[2]
    assert told(running, "tool", "show", name)["server"] == "web"
    far(running, "tool", "set", f"web/{own}", "--effect", "read")
    assert told(running, "tool", "show", name)["effect"] == "read"
    assert [stage for stage, _ in told(running, "explain", name)][-1] == "sent"
    far(running, "server", "disable", "web")
    far(running, "server", "enable", "web")
    far(running, "server", "rm", "web")


async def test_a_check_over_the_network_fails_for_a_server_that_has_gone(running: Gate) -> None:
    async with fake_http() as peer:
        await asyncio.to_thread(far, running, "server", "add", "gone", "--url", peer.url)
        await asyncio.to_thread(far, running, "server", "list", "--check")
    result = await asyncio.to_thread(
        far, running, "server", "list", "--check", "--json", fails=True
    )
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows["gone"]["state"] == "degraded"
    assert "Connection refused" in rows["gone"]["reason"]
    assert rows["fake"]["state"] == "ready"
    await asyncio.to_thread(far, running, "server", "rm", "gone")


async def test_the_command_line_does_over_the_network_what_it_does_at_home(running: Gate) -> None:
    async with fake_http() as peer:
        await asyncio.to_thread(use_a_server, running, peer.url)
    assert "web" not in {row["name"] for row in told(running, "server", "list")}
    assert SECRET not in running.words


def test_domains_and_records_are_changed_and_read_over_the_network(running: Gate) -> None:
    far(running, "domain", "set", "small", "--include", "fake/echo", "--instructions", "few")
    far(running, "domain", "set", "small", "--rename", "fake/echo=say", "--fix", "fake/echo:x=1")
    shown = told(running, "domain", "show", "small")
    assert (shown["instructions"], shown["revision"]) == ("few", 2)
    assert [(one["name"], one["fixed"]) for one in shown["tools"]] == [("say", {"x": 1})]
    assert "small" in {row["name"] for row in told(running, "domain", "list")}
    far(running, "domain", "rm", "small")
    assert "no domain is named small" in far(running, "domain", "show", "small", fails=True).stderr
    actions = {row["row"]["action"] for row in told(running, "audit", "list", "--last", "100")}
    assert {"admin.put_domain", "admin.delete_domain"} <= actions
    assert told(running, "audit", "verify")["ok"] is True
    copied = far(running, "registry", "backup", "copy.db").stderr
    assert str(running.home.state / "backups" / "copy.db") in copied
    refused = far(running, "registry", "backup", "/tmp/copy.db", fails=True)
    assert "without folders" in refused.stderr


def test_command_lines_at_once_lose_nothing_of_each_other(running: Gate) -> None:
    options = ("--server", base(running), "--token-file", running.home.state / TOKEN_FILE)
    far(running, "domain", "set", "many", "--instructions", "begin")
    words = [("--include", "fake/echo"), ("--exclude", "fake/slow"), ("--max-tools", "7")]
    processes = [
        subprocess.Popen(
            command(*options, "domain", "set", "many", *word), env=running.home.environment
        )
        for word in words
    ]
    assert [process.wait(START) for process in processes] == [Exit.OK] * 3
    shown = told(running, "domain", "show", "many")
    assert (shown["include"], shown["exclude"], shown["max_tools"]) == (
        ["fake/echo"], ["fake/slow"], 7,
    )  # fmt: skip
    assert (shown["instructions"], shown["revision"]) == ("begin", 4)


def test_status_says_who_runs_here_and_how_it_fares_there(running: Gate) -> None:
    here = json.loads(running.home.invoke("status", "--json").stdout)
    assert [(one["pid"], one["url"]) for one in here] == [(running.process.pid, base(running))]
    there = told(running, "status")
    assert there["pid"] == running.process.pid
    assert {one["name"] for one in there["servers"]} >= {"fake", "thoughtgate"}
    assert f"process {running.process.pid}" in far(running, "status").stdout


def test_status_without_a_gateway_says_so(tmp_path: Path) -> None:
    place = home(tmp_path)
    result = place.invoke("status")
    assert (result.exit_code, result.stdout.strip()) == (
        Exit.FAILED, "no gateway runs here; start one with: thoughtgate serve",
    )  # fmt: skip
    with gate(place):
        assert place.invoke("status").exit_code == Exit.OK
    assert place.invoke("status").exit_code == Exit.FAILED


LOCAL_ONLY = [
    ("serve",), ("config", "check"), ("config", "show"), ("tool", "call", "x"),
    ("tool", "search", "x"), ("registry", "restore", "x"), ("run", "start", "x"),
    ("server", "import", "x"),
]  # fmt: skip


@pytest.mark.parametrize("words", LOCAL_ONLY, ids=" ".join)
def test_a_command_that_makes_no_sense_there_says_so(running: Gate, words: tuple[str, ...]) -> None:
    result = far(running, *words, fails=True)
    assert "works on this machine only" in result.stderr
    assert result.exit_code == Exit.USAGE


def test_a_command_is_not_registered_from_afar(running: Gate) -> None:
    result = far(running, "server", "add", "evil", "--", "touch", "x", fails=True)
    assert result.exit_code == Exit.REFUSED
    assert "local command line" in result.stderr


WRONG = [
    (("--server", "http://127.0.0.1:1"), Exit.UPSTREAM, "no gateway answers at"),
    (("--server", "ftp://127.0.0.1"), Exit.USAGE, "takes a URL such as"),
    (("--server", "http://127.0.0.1:99999"), Exit.USAGE, "takes a URL such as"),
    (("--server", "http://tools.example"), Exit.USAGE, "use https"),
    (("--server", "http://127.0.0.1.example:1"), Exit.USAGE, "use https"),
]


@pytest.mark.parametrize(("options", "code", "words"), WRONG)
def test_a_gateway_that_cannot_be_asked_is_said_to_be(
    running: Gate, tmp_path: Path, options: tuple[str, ...], code: Exit, words: str
) -> None:
    file = running.home.state / TOKEN_FILE
    result = home(tmp_path).invoke(*options, "--token-file", file, "status")
    assert (result.exit_code, words in result.stderr) == (code, True), result.stderr
    assert token_of(running.home) not in result.output


def test_a_wrong_token_and_a_missing_one_are_told_apart(running: Gate, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("x" * 43, encoding="ascii")
    wrong.chmod(0o600)
    place = home(tmp_path)
    refused = place.invoke("--server", base(running), "--token-file", wrong, "status")
    assert refused.exit_code == Exit.REFUSED
    missing = place.invoke("--server", base(running), "status")
    assert missing.exit_code == Exit.USAGE
    assert str(place.state / TOKEN_FILE) in missing.stderr
    wrong.chmod(0o644)
    open_ = place.invoke("--server", base(running), "--token-file", wrong, "status")
    assert "chmod 600" in open_.stderr


def test_the_environment_may_name_the_gateway(running: Gate, tmp_path: Path) -> None:
    file = str(running.home.state / TOKEN_FILE)
    place = home(tmp_path, THOUGHTGATE_SERVER=base(running), THOUGHTGATE_TOKEN_FILE=file)
    assert json.loads(place.invoke("status", "--json").stdout)["pid"] == running.process.pid


def test_a_program_hears_the_same_error_from_afar_as_at_home(running: Gate) -> None:
    result = far(running, "domain", "show", "no", "--json", fails=True)
    assert json.loads(result.stdout)["error"] == "not_found"
