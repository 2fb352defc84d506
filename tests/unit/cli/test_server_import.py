"""`server import`: what it registers, what it says, and that it is all or nothing."""

import json
import os
import pty
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.gate import START, Home, command, home
from thoughtgate.app.stores import open_registry
from thoughtgate.config.files import load
from thoughtgate.core.servers import HttpTransport, NullPolicy, Server, StdioTransport

SECRET = "canary-s3cret-2"

INPUTS = """{
  // what VS Code keeps in a project
  "inputs": [
    {"type": "promptString", "id": "key", "description": "Your key", "password": true},
    {"type": "pickString", "id": "at", "description": "Where", "options": ["eu", "us"]},
  ],
  "servers": {
    "Web Tools": {
      "type": "http",
      "url": "https://${input:at}.example/mcp",
      "headers": {"Authorization": "Bearer ${input:key}"},
    },
    "notes": {"command": "notes-server", "args": ["${workspaceFolder}"], "hat": 1},
  },
}
"""


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return home(tmp_path, '[servers.fixed]\ncommand = ["x"]\n', KEY=SECRET)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    file = tmp_path / "project" / ".vscode" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(INPUTS, encoding="utf-8")
    return file


def saved(place: Home, servers: object, name: str = "servers.json") -> Path:
    file = place.folder / name
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return file


def registered(place: Home) -> dict[str, Server]:
    registry = open_registry(load(place.config, place.environment))
    try:
        return {server.name: server for server in registry.servers()}
    finally:
        registry.close()


def refused(place: Home, *arguments: object, given: str | None = None) -> tuple[int, str]:
    result = place.invoke("server", "import", *arguments, given=given)
    assert result.exit_code != 0, result.output
    return result.exit_code, result.stderr


ANSWERS = ("--input", f"key={SECRET}", "--input", "at=eu")


def test_the_servers_of_a_file_are_registered_and_told(place: Home, project: Path) -> None:
    result = place.invoke("server", "import", project, *ANSWERS)
    assert result.exit_code == 0, result.output
    root = str(project.parent.parent)
    assert {name: server.transport for name, server in registered(place).items()} == {
        "web-tools": HttpTransport(
            url="https://eu.example/mcp", headers={"Authorization": f"Bearer {SECRET}"}
        ),
        "notes": StdioTransport(argv=("notes-server", root), cwd=root),
    }
    head, web, notes = (line.split() for line in result.stdout.splitlines())
    assert head == ["NAME", "STATE", "TRANSPORT", "SECRETS", "DONE"]
    assert web == ["web-tools", "enabled", "https://eu.example/mcp", "Authorization", "added"]
    assert notes == ["notes", "enabled", "notes-server", root, "added"]
    assert "note: notes: /servers/notes/hat: unknown key; left out" in result.stderr
    assert "note: Web Tools: /servers/Web Tools: is called web-tools here" in result.stderr
    assert SECRET not in result.output


def test_a_password_within_an_argument_is_not_shown(place: Home) -> None:
    address = f"postgresql://ada:{SECRET}@db.example/notes"
    result = place.invoke(
        "server", "import", saved(place, {"a": {"command": "x", "args": [address]}})
    )
    assert "postgresql://***@db.example/notes" in result.stdout
    assert "note: a: /mcpServers/a/args: may hold a secret" in result.stderr
    for question in (("server", "list"), ("server", "show", "a")):
        assert SECRET not in place.invoke(*question).output


def test_no_secret_of_a_file_is_stored_in_the_clear(place: Home, project: Path) -> None:
    place.invoke("server", "import", project, *ANSWERS)
    stored = [path.read_bytes() for path in place.state.iterdir() if path.suffix != ".key"]
    assert stored
    assert not any(SECRET.encode() in data for data in stored)


def test_what_was_done_is_told_to_programs(place: Home, project: Path) -> None:
    said = place.said("server", "import", project, *ANSWERS)
    assert [(row["name"], row["was"], row["done"]) for row in said["servers"]] == [
        ("web-tools", "Web Tools", "added"),
        ("notes", "notes", "added"),
    ]
    assert said["notes"][0] == {
        "server": "notes", "key": "/servers/notes/hat", "text": "unknown key; left out",
    }  # fmt: skip
    assert SECRET not in json.dumps(said)


def test_one_bad_server_keeps_every_other_from_being_imported(place: Home) -> None:
    file = saved(place, {
        "good": {"command": "x"}, "fixed": {"command": "x"},
        "bad": {"command": "x", "env": {"A": "${NO_SUCH_1}", "B": "${env:NO_SUCH_2}"}},
    })  # fmt: skip
    place.invoke("server", "add", "good", "--", "before")
    code, said = refused(place, file)
    assert code == 2
    lines = said.splitlines()
    assert lines[0] == f"error: nothing was imported from {file}: 4 problems"
    assert [line.split(";")[0] for line in lines[1:]] == [
        "  bad: /mcpServers/bad/env/A: the variable NO_SUCH_1 is not set",
        "  bad: /mcpServers/bad/env/B: the variable NO_SUCH_2 is not set",
        "  good: /mcpServers/good: server good is registered already",
        f"  fixed: /mcpServers/fixed: server fixed comes from {place.config}",
    ]
    assert [server.transport.argv for server in registered(place).values()
            if isinstance(server.transport, StdioTransport)] == [("before",)]  # fmt: skip


def test_problems_are_told_to_programs_one_by_one(place: Home) -> None:
    result = place.invoke("server", "import", saved(place, {"a": {}}), "--json")
    value = json.loads(result.stdout)
    assert value["error"] == "config_error"
    assert value["data"]["problems"] == [
        {"server": "a", "key": "/mcpServers/a", "text": "neither a command nor a URL"}
    ]


def test_the_same_again_changes_nothing(place: Home) -> None:
    file = saved(place, {"a": {"command": "x", "env": {"K": "${KEY}"}}, "b": {"url": "http://h"}})
    place.said("server", "import", file)
    before = registered(place)
    said = place.said("server", "import", file, "--replace")
    assert [row["done"] for row in said["servers"]] == ["unchanged", "unchanged"]
    assert registered(place) == before


def test_replacing_keeps_what_the_file_does_not_say(place: Home) -> None:
    settings = ("--trusted", "--tag", "disk", "--nulls", "reject", "--call-timeout", "7")
    place.invoke("server", "add", "a", *settings, "--", "old")
    place.invoke("server", "disable", "a")
    said = place.said("server", "import", saved(place, {"a": {"command": "new"}}), "--replace")
    assert [row["done"] for row in said["servers"]] == ["replaced"]
    after = registered(place)["a"]
    assert isinstance(after.transport, StdioTransport)
    assert after.transport.argv == ("new",)
    assert after.trusted
    assert not after.enabled
    assert (after.tags, after.nulls) == (frozenset({"disk"}), NullPolicy.REJECT)
    assert after.call_timeout == 7.0
    place.said("server", "import", saved(place, {"a": {"command": "n", "enabled": True}}),
               "--replace")  # fmt: skip
    assert registered(place)["a"].enabled


def test_a_dry_run_says_what_would_be_done_and_does_nothing(place: Home, project: Path) -> None:
    result = place.invoke("server", "import", project, "--dry-run")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].split()[-2:] == ["WOULD", "BE"]
    assert "note: key: a value will be asked for: Your key" in result.stderr
    assert registered(place) == {}


def test_standard_input_is_read_for_a_hyphen(place: Home) -> None:
    text = '{"web": {"url": "http://h/mcp"}}'
    assert place.invoke("server", "import", "-", given=text).exit_code == 0
    assert list(registered(place)) == ["web"]
    code, said = refused(place, "-", given="{")
    assert (code, "error: standard input: line 1, column 2: not valid JSON" in said) == (2, True)


def test_one_server_of_many_is_imported_by_its_name(place: Home) -> None:
    file = saved(place, {"a": {"command": "x"}, "b": {}, "c": {"command": "x"}})
    said = place.said("server", "import", file, "--only", "a", "--only", "c")
    assert [row["name"] for row in said["servers"]] == ["a", "c"]


def test_a_project_may_be_named_for_a_file_without_one(place: Home, tmp_path: Path) -> None:
    file = saved(place, {"a": {"command": "x", "args": ["${workspaceFolder}"]}})
    assert "--workspace FOLDER" in refused(place, file)[1]
    assert place.invoke("server", "import", file, "--workspace", tmp_path / "p").exit_code == 0
    transport = registered(place)["a"].transport
    assert transport == StdioTransport(argv=("x", str(tmp_path / "p")), cwd=str(tmp_path / "p"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("no-such.json",), "error: no-such.json: there is no such file"),
        ((".",), "error: .: it cannot be read: Is a directory"),
        (("{project}",), "the input key has no value; give it with --input key=VALUE"),
        (("{project}", "--input", "kye=x", *ANSWERS), "--input kye: no such input; the file has"),
        (("{project}", "--input", "key"), "--input takes ID=VALUE"),
        (("{project}", "--format", "codex"), "not valid TOML"),
    ],
)
def test_what_cannot_be_imported_is_refused(
    place: Home, project: Path, arguments: tuple[str, ...], said: str
) -> None:
    words = [word.replace("{project}", str(project)) for word in arguments]
    code, text = refused(place, *words)
    assert code == 2
    assert said in text
    assert registered(place) == {}


@contextmanager
def at_a_terminal(place: Home, project: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Import a file for a person; the number is their end of the terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("server", "import", project),
        stdin=theirs, stdout=theirs, stderr=theirs, env=place.environment, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait(START)
        os.close(ours)


def test_a_person_at_a_terminal_is_asked_and_secrets_are_not_shown(
    place: Home, project: Path
) -> None:
    with at_a_terminal(place, project) as (process, ours):
        seen = heard(ours, b"Your key")
        os.write(ours, f"{SECRET}\n".encode())
        seen += heard(ours, b"Where")
        os.write(ours, b"us\n")
        seen += heard(ours, b"server list --check")
        assert process.wait(START) == 0
    assert SECRET.encode() not in seen
    assert registered(place)["web-tools"].transport == HttpTransport(
        url="https://us.example/mcp", headers={"Authorization": f"Bearer {SECRET}"}
    )


def test_what_is_registered_while_a_person_is_asked_is_not_overwritten(
    place: Home, project: Path
) -> None:
    with at_a_terminal(place, project) as (process, ours):
        heard(ours, b"Your key")
        faster = "http://h/mcp"
        assert place.invoke("server", "add", "web-tools", faster).exit_code == 0
        os.write(ours, f"{SECRET}\n".encode())
        heard(ours, b"Where")
        os.write(ours, b"us\n")
        heard(ours, b"web-tools is registered already; add --replace")
        assert process.wait(START) == 2
    assert registered(place)["web-tools"].transport == HttpTransport(url=faster)


def heard(terminal: int, wanted: bytes) -> bytes:
    """Return what a terminal shows until it shows `wanted`."""
    seen = b""
    while wanted not in seen:
        ready, _, _ = select.select([terminal], [], [], START)
        assert ready, seen
        seen += os.read(terminal, 4096)
    return seen


@pytest.mark.parametrize("again", [False, True])
def test_a_file_that_names_the_gateway_itself_leaves_it_out(place: Home, again: bool) -> None:
    ours: Any = {"command": "/opt/bin/thoughtgate", "args": ["serve", "--stdio"]}
    servers = {"thoughtgate": ours, "a": {"command": "x"}} if again else {"thoughtgate": ours}
    result = place.invoke("server", "import", saved(place, servers))
    assert result.exit_code == 0, result.output
    assert list(registered(place)) == (["a"] if again else [])
    assert "note: thoughtgate: is this gateway itself; not imported" in result.stderr
