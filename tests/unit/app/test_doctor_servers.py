"""The doctor and tool servers: real faults of real processes and sockets, found and explained."""

import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from tests.support.logins import make_login
from tests.support.patient import TINY, Patient
from tests.support.raw_http import Wire, raw_http
from thoughtgate.app.doctor.findings import Severity
from thoughtgate.app.logins import stored
from thoughtgate.app.stores import open_registry
from thoughtgate.config.files import load
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import HttpTransport, Server
from thoughtgate.testing.fake_http import Manners, fake_http
from thoughtgate.upstream.auth import Account, Login

OBJECT = {"type": "object"}
WELL = {"name": "well", "inputSchema": OBJECT}


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient(tmp_path)


@pytest.mark.parametrize("command", ["no-such-command-here", "./no/such/file"])
async def test_a_missing_command_is_named(patient: Patient, command: str) -> None:
    patient.write(patient.stdio(command))
    found = await patient.finding("it")
    assert found.code == "command_missing"
    assert command.rpartition("/")[2] in found.mend
    assert found.severity is Severity.PROBLEM


@pytest.mark.parametrize(("launcher", "brings"), [("npx", "Node.js"), ("uvx", "uv")])
async def test_a_launcher_that_is_not_installed_is_told_with_what_brings_it(
    patient: Patient, launcher: str, brings: str
) -> None:
    patient.environ["PATH"] = str(patient.folder)
    patient.write(patient.stdio(launcher, "-y", "some-server", env={"PATH": str(patient.folder)}))
    found = await patient.finding("it")
    assert found.code == "launcher_missing"
    assert launcher in found.what
    assert brings in found.mend


async def test_a_launcher_whose_interpreter_is_gone_is_told(patient: Patient) -> None:
    patient.script("npx", "#!/usr/bin/env node\n")
    patient.write(patient.stdio("npx", "some-server", env={"PATH": str(patient.folder)}))
    found = await patient.finding("it")
    assert (found.code, "node" in found.what) == ("interpreter_missing", True)
    assert "Node.js" in found.mend


async def test_a_file_that_may_not_be_executed_is_told_with_its_chmod(patient: Patient) -> None:
    program = patient.script("server.sh", "#!/bin/sh\n", mode=0o644)
    patient.write(patient.stdio(program))
    found = await patient.finding("it")
    assert found.code == "command_not_executable"
    assert found.mend == f"chmod +x {program}"


async def test_a_program_of_another_machine_is_told(patient: Patient) -> None:
    program = patient.script("server", "")
    ident = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    program.write_bytes(ident + struct.pack("<HH", 2, 22) + bytes(44))  # 22: s390x
    patient.write(patient.stdio(program))
    found = await patient.finding("it")
    assert found.code == "wrong_architecture"
    assert str(program) in found.mend


async def test_a_missing_folder_is_told(patient: Patient) -> None:
    patient.write(patient.stdio("cat", cwd=str(patient.folder / "gone")))
    found = await patient.finding("it")
    assert found.code == "folder_missing"
    assert "mkdir -p" in found.mend
    assert "gone" in found.mend


async def test_a_server_that_prints_too_much_is_shown_with_its_first_line(patient: Patient) -> None:
    patient.write(patient.tiny(WELL))
    program = patient.script("tiny.py", "")
    program.write_text(
        "print('\\x1b[1mStarting\\x07 up', flush=True)\nprint('more', flush=True)\n" + TINY,
        encoding="utf-8",
    )
    found = await patient.finding("it")
    assert found.code == "prints_to_stdout"
    assert "2 lines" in found.what
    assert "Starting" in found.what
    assert "\x1b" not in found.what
    assert found.severity is Severity.WARNING


async def test_a_server_that_ends_at_once_is_shown_with_its_last_words(patient: Patient) -> None:
    program = patient.script("dies.sh", "#!/bin/sh\necho no key was given >&2\nexit 3\n")
    patient.write(patient.stdio(program))
    found = await patient.finding("it")
    assert found.code == "server_ends"
    assert "code 3" in found.what
    assert "no key was given" in found.what
    assert str(program) in found.mend


async def test_a_server_that_says_nothing_is_told_after_its_time(patient: Patient) -> None:
    patient.write(patient.stdio("sleep", "60", start_timeout=0.2))
    found = await patient.finding("it")
    assert found.code == "server_silent"
    assert "0.2 s" in found.what


async def test_a_server_that_speaks_something_else_has_failed(patient: Patient) -> None:
    program = patient.script(
        "odd.sh",
        "#!/bin/sh\nwhile read -r line; do\n"
        'id=$(echo "$line" | sed -n \'s/.*"id":\\([0-9]*\\).*/\\1/p\')\n'
        'echo "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":$id,\\"result\\":{\\"odd\\":1}}"\ndone\n',
    )
    patient.write(patient.stdio(program, start_timeout=5))
    found = await patient.findings("it")
    assert [one.code for one in found] == ["server_failed"]


def web(url: str) -> str:
    return f'[servers.web]\nurl = "{url}"\nstart_timeout = 2\n'


async def test_a_dead_port_is_told_as_refused(patient: Patient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closing:
        port = closing.getsockname()[1]
    patient.write(web(f"http://127.0.0.1:{port}/mcp"))
    found = await patient.finding("web")
    assert found.code == "url_refused"
    assert f"127.0.0.1:{port}" in found.mend


async def test_a_host_without_an_address_is_told(patient: Patient) -> None:
    patient.write(web("http://nowhere.invalid/mcp"))
    found = await patient.finding("web")
    assert found.code == "url_unresolved"
    assert "nowhere.invalid" in found.mend


async def test_a_certificate_that_nobody_vouches_for_is_told(patient: Patient) -> None:
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(serving)

    async def silent(wire: Wire) -> None:
        await wire.request()

    async with raw_http(silent, tls=serving) as server:
        patient.write(web(server.url))
        found = await patient.finding("web")
    assert found.code == "url_tls"
    assert "certificate" in found.mend


async def test_a_host_that_never_answers_is_told(patient: Patient) -> None:
    async def hang(wire: Wire) -> None:
        await wire.request()
        await wire.request()

    async with raw_http(hang) as server:
        patient.write(f'[servers.web]\nurl = "{server.url}"\nstart_timeout = 0.3\n')
        found = await patient.finding("web")
    assert found.code == "url_timeout"
    assert server.url.rpartition("/")[0] in found.mend


@asynccontextmanager
async def answering(status: int, date: str = "") -> AsyncIterator[str]:
    head = f"date: {date}\r\n" if date else ""

    async def reply(wire: Wire) -> None:
        while await wire.request() is not None:
            text = f"HTTP/1.1 {status} It\r\n{head}content-length: 0\r\n\r\n"
            await wire.write(text.encode())

    async with raw_http(reply) as server:
        yield server.url


async def test_a_path_where_nothing_is_is_told(patient: Patient) -> None:
    async with answering(404) as url:
        patient.write(web(url))
        found = await patient.finding("web")
    assert found.code == "url_not_found"
    assert "404" in found.what
    assert "server add web" in found.mend


@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_wants_a_login_is_told_with_the_command(
    patient: Patient, status: int
) -> None:
    async with answering(status) as url:
        patient.write(web(url))
        found = await patient.finding("web")
    assert found.code == "login_needed"
    assert "thoughtgate server login web" in found.mend


def keep(patient: Patient, login: Login) -> None:
    server = Server(name="web", transport=HttpTransport(url=login.account.url))
    registry = open_registry(load(patient.config, patient.environ))
    try:
        registry.put_server(server)
        registry.put_login(stored(login))
    finally:
        registry.close()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"refused": "invalid_grant"}, "login_expired"),
        ({"refresh_token": "", "expires_at": 1.0}, "login_expired"),
        ({"expires_at": 1.0}, ""),
        ({"expires_at": time.time() + 3600}, "login_expired"),
    ],
    ids=["over", "ended", "renewed when used", "refused by the server"],
)
async def test_a_login_that_expired_is_told_with_the_command(
    patient: Patient, fields: dict[str, object], code: str
) -> None:
    async with answering(401) as url:
        origin = url.rpartition("/")[0]
        keep(patient, make_login(origin, account=Account("web", url), **fields))
        found = await patient.findings("web")
        assert [one.code for one in found] == [code] * bool(code)
    assert all(one.mend == "thoughtgate server login web" for one in found)
    assert "good" not in str(found)


async def test_a_server_that_breaks_is_told_as_it_says(patient: Patient) -> None:
    async with answering(500) as url:
        patient.write(web(url))
        found = await patient.finding("web")
    assert found.code == "server_failed"
    assert "500" in found.what


async def test_a_clock_that_differs_from_a_server_s_is_told(patient: Patient) -> None:
    async with answering(500, "Tue, 01 Jan 2030 00:00:00 GMT") as url:
        patient.write(web(url))
        found = await patient.findings()
    clock = next(one for one in found if one.code == "clock_off")
    assert "behind" in clock.what
    assert url.partition("://")[2].partition("/")[0] in clock.where
    assert "timedatectl" in clock.mend


async def test_a_bad_schema_is_told_with_the_reason(patient: Patient) -> None:
    bad = {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": "no"}}}}
    patient.write(patient.tiny(WELL, bad))
    found = [one for one in await patient.findings() if one.code == "tool_quarantined"]
    assert [one.where for one in found] == ["tool it/bad"]
    assert "inputSchema" in found[0].what


async def test_a_name_too_long_for_a_client_names_tool_client_and_limit(patient: Patient) -> None:
    long = "x" * 50
    patient.write(patient.tiny({"name": long, "inputSchema": OBJECT}))
    found = [one for one in await patient.findings() if one.code == "name_too_long"]
    assert {one.what.split(" takes ")[0] for one in found} == {"Claude Code", "Cursor", "VS Code"}
    claude = next(one for one in found if one.what.startswith("Claude Code"))
    assert "46 characters" in claude.what
    assert f"it/{long}=SHORTER" in claude.mend


async def test_names_that_collide_are_told_where_they_do(patient: Patient) -> None:
    one, two = patient.tiny(WELL, WELL, name="one"), patient.tiny(WELL, name="two")
    patient.write(f"{one}{two}[domains.plain]\nprefixed = false\n")
    found = [found for found in await patient.findings() if found.code == "names_collide"]
    assert {"tool one/well", "domain plain"} <= {one.where for one in found}
    assert all("--rename" in one.mend or "one" in one.mend for one in found)


async def test_a_healthy_server_over_http_has_no_finding(patient: Patient) -> None:
    async with fake_http(manners=Manners()) as endpoint:
        patient.write(web(endpoint.url))
        checks = await patient.look("web")
    assert [check.findings for check in checks] == [()]


async def test_servers_are_asked_at_once(patient: Patient) -> None:
    """Each waits for the other: one after the other they would both be silent."""
    gate = patient.folder / "gate"
    both = "".join(
        patient.stdio(
            patient.script(
                f"{name}.sh",
                f"#!/bin/sh\n: > {gate}.{name}\n"
                f"until [ -e {gate}.{other} ]; do sleep 0.05; done\nexit 7\n",
            ),
            name=name,
            start_timeout=10,
        )
        for name, other in (("a", "b"), ("b", "a"))
    )
    patient.write(both)
    assert {one.code for one in await patient.findings("a", "b")} == {"server_ends"}


async def test_a_disabled_server_is_not_started(patient: Patient) -> None:
    mark = patient.folder / "started"
    program = patient.script("it.sh", f"#!/bin/sh\n: > {mark}\n")
    patient.write(patient.stdio(program, enabled=False))
    [check] = await patient.look("it")
    assert (check.said, check.findings) == ("disabled", ())
    assert mark.name not in {file.name for file in listed(patient.folder)}


def listed(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_a_command_that_no_system_takes_does_not_stop_the_doctor(patient: Patient) -> None:
    patient.write('[servers.it]\ncommand = ["a\\u0000b"]\n')
    checks = {check.name: check for check in await patient.look()}
    assert checks["server it"].findings
    assert checks["versions"].findings == ()


async def test_a_name_that_is_none_is_refused(patient: Patient) -> None:
    with pytest.raises(ConfigError, match="no check and no server is named nothing"):
        await patient.look("nothing")
