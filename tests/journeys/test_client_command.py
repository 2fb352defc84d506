"""`thoughtgate client`: what it shows, asks, writes and leaves alone."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.gate import START, Home, command, gate, home
from thoughtgate.config.clients.places import CLIENTS
from thoughtgate.config.originals import BACKUP

SECRETS = """{
  // the old key was sk-old
  "mcpServers": {
    "github": {
      "command": "npx",
      "args": ["--api-key", "sk-args"],
      "env": { "GITHUB_TOKEN": "sk-env" }
    },
    "linear": { "url": "https://ana:sk-user@linear.example/mcp?key=sk-query" }
  },
  "primaryApiKey": "sk-root",
  "pin": 424242
}
"""


@pytest.fixture
def place(tmp_path: Path) -> Home:
    user = tmp_path / "user"
    user.mkdir()
    unset = dict.fromkeys(("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"), "")
    return home(tmp_path, '[domains.work]\ninclude = ["none/*"]\n', HOME=str(user), **unset)


@pytest.fixture
def cursor(place: Home) -> Path:
    file = place.folder / "user" / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(SECRETS, encoding="utf-8")
    return file


def servers(file: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(file.read_text("utf-8"))["mcpServers"]
    return found


def script() -> str:
    return str(Path(sys.executable).with_name("thoughtgate"))


def test_connecting_writes_this_installation_with_its_home_and_configuration(place: Home) -> None:
    done = place.invoke("client", "connect", "cursor", "--domain", "work", "--yes")
    assert done.exit_code == 0, done.output
    file = place.folder / "user" / ".cursor" / "mcp.json"
    config = str(place.config)
    assert servers(file) == {
        "thoughtgate": {
            "type": "stdio",
            "command": script(),
            "args": ["serve", "--stdio", "--domain", "work", "--config", config],
            "env": {"THOUGHTGATE_HOME": str(place.state)},
        }
    }
    assert "restart Cursor" in done.stderr


def test_a_configuration_that_is_named_is_the_one_that_the_client_gets(
    place: Home, tmp_path: Path
) -> None:
    other = tmp_path / "other.toml"
    other.write_text("", encoding="utf-8")
    shown = place.invoke("--config", other, "client", "connect", "cursor", "--dry-run")
    assert str(other) in shown.stdout
    assert str(place.config) not in shown.stdout


def test_variables_that_the_client_may_lack_are_named(place: Home) -> None:
    place.config.write_text(
        '[servers.x]\ncommand = ["x"]\nenv = { KEY = "${SHELL_ONLY}" }\n', encoding="utf-8"
    )
    told = Home(folder=place.folder, extra={**place.extra, "SHELL_ONLY": "sk-shell"})
    done = told.invoke("client", "connect", "cursor", "--yes")
    assert done.exit_code == 0, done.output
    assert "SHELL_ONLY" in done.stderr
    assert "sk-shell" not in done.output
    assert "SHELL_ONLY" not in told.invoke("client", "connect", "zed", "--http", "--yes").stderr


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_is_connected_listed_and_disconnected(place: Home, client: str) -> None:
    before = by_name(place)
    assert (before[client]["here"], before[client]["connections"]) == (False, [])
    done = place.invoke("client", "connect", client, "--yes")
    assert done.exit_code == 0
    assert "was never used here" in done.stderr
    row = by_name(place)[client]
    assert row["here"]
    assert [(c["name"], c["how"], c["domain"]) for c in row["connections"]] == [
        ("thoughtgate", "stdio", "default")
    ]
    assert place.invoke("client", "disconnect", client, "--yes").exit_code == 0
    assert by_name(place)[client]["connections"] == []
    assert not Path(row["file"]).exists()


def by_name(place: Home, *options: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in place.said("client", "list", *options)}


@pytest.mark.parametrize("client", [name for name, each in CLIENTS.items() if each.project])
def test_a_project_has_a_file_of_its_own(place: Home, tmp_path: Path, client: str) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    where = ("--project", str(project))
    assert place.invoke("client", "connect", client, *where, "--http", "--yes").exit_code == 0
    row = by_name(place, *where)[client]
    assert row["file"] == str(project / CLIENTS[client].project)
    assert row["connections"] == [
        {"name": "thoughtgate", "how": "http", "domain": "default",
         "target": "http://127.0.0.1:8765/mcp"},
    ]  # fmt: skip
    assert by_name(place)[client]["connections"] == []


def test_without_a_terminal_nothing_is_written_unless_told_so(place: Home, cursor: Path) -> None:
    done = place.invoke("client", "connect", "cursor")
    assert done.exit_code == 1
    assert "--yes" in done.stderr
    assert '+    "thoughtgate": {' in done.stdout
    assert cursor.read_text("utf-8") == SECRETS
    assert [path.name for path in cursor.parent.iterdir()] == ["mcp.json"]


def test_a_dry_run_shows_the_change_and_writes_nothing(place: Home, cursor: Path) -> None:
    done = place.invoke("client", "connect", "cursor", "--dry-run", "--yes")
    assert done.exit_code == 0
    assert "was never used here" not in done.stderr
    assert '+    "thoughtgate": {' in done.stdout
    assert [path.name for path in cursor.parent.iterdir()] == ["mcp.json"]
    assert cursor.read_text("utf-8") == SECRETS


def test_what_is_shown_holds_no_secret_of_other_entries(place: Home, cursor: Path) -> None:
    flat = json.dumps(json.loads(SECRETS.replace("// the old key was sk-old", "")))
    for text in (SECRETS, flat):
        cursor.write_text(text, encoding="utf-8")
        for verb in ("connect", "disconnect"):
            done = place.invoke("client", verb, "cursor", "--yes")
            assert done.exit_code == 0, done.output
            assert "thoughtgate" in done.stdout
            assert "sk-" not in done.output
            assert "424242" not in done.output
        assert cursor.read_text("utf-8") == text


def test_a_secret_in_the_url_that_is_given_is_not_shown(place: Home) -> None:
    url = "https://ana:sk-user@gate.example/mcp?key=sk-query"
    done = place.invoke("client", "connect", "cursor", "--url", url, "--yes")
    assert done.exit_code == 0, done.output
    assert "sk-" not in done.output
    assert servers(place.folder / "user" / ".cursor" / "mcp.json") == {"thoughtgate": {"url": url}}
    assert "sk-" not in place.invoke("client", "list", "--json").output


def test_connecting_again_changes_nothing_and_is_well(place: Home, cursor: Path) -> None:
    assert place.invoke("client", "connect", "cursor", "--yes").exit_code == 0
    was = cursor.read_bytes()
    again = place.invoke("client", "connect", "cursor")
    assert again.exit_code == 0
    assert "already connected, nothing changed" in again.stderr
    assert cursor.read_bytes() == was
    assert sorted(path.name for path in cursor.parent.iterdir()) == [
        "mcp.json", f"mcp.json{BACKUP}",
    ]  # fmt: skip


def test_disconnecting_what_is_not_connected_is_well(place: Home, cursor: Path) -> None:
    done = place.invoke("client", "disconnect", "cursor", "--yes")
    assert done.exit_code == 0
    assert "not connected, nothing changed" in done.stderr
    assert cursor.read_text("utf-8") == SECRETS


def test_two_entries_under_two_names_lead_to_two_domains(place: Home, cursor: Path) -> None:
    for name, domain in (("thoughtgate", "default"), ("work", "work")):
        done = place.invoke(
            "client", "connect", "cursor", "--name", name, "--domain", domain, "--yes"
        )
        assert done.exit_code == 0, done.output
    table = place.invoke("client", "list").stdout
    assert "default (stdio), work (stdio) as work" in table
    assert place.invoke("client", "disconnect", "cursor", "--yes").exit_code == 0
    assert set(servers_of_comments(cursor)) == {"github", "linear", "work"}


def servers_of_comments(file: Path) -> dict[str, object]:
    text = file.read_text("utf-8").replace("// the old key was sk-old", "")
    found: dict[str, object] = json.loads(text)["mcpServers"]
    return found


@pytest.mark.parametrize("verb", ["connect", "disconnect"])
def test_another_server_s_entry_is_never_taken(place: Home, cursor: Path, verb: str) -> None:
    for name in ("github", "linear"):
        done = place.invoke("client", verb, "cursor", "--name", name, "--yes")
        assert done.exit_code == 2
        assert "another server" in done.stderr
    assert cursor.read_text("utf-8") == SECRETS


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--domain", "nowhere"), "no domain is named nowhere"),
        (("--stdio", "--http"), "--stdio"),
        (("--stdio", "--url", "http://x/mcp"), "--stdio"),
        (("--url", "ftp://x"), "http://"),
        (("--url", "http://x/mcp", "--domain", "work"), "--domain"),
        (("--url", "http://x/mcp", "--name", "gate"), "--name"),
        (("--name", "a b"), "--name"),
        (("--name", ""), "--name"),
        (("--project", "/no/such/folder"), "no such folder"),
        (("--project", ".", "--path", "x"), "--path"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(
    place: Home, options: tuple[str, ...], says: str
) -> None:
    done = place.invoke("client", "connect", "cursor", *options, "--yes")
    assert done.exit_code == 2
    assert says in done.stderr
    assert not (place.folder / "user" / ".cursor").exists()


def test_claude_desktop_takes_no_url(place: Home) -> None:
    done = place.invoke("client", "connect", "claude-desktop", "--http", "--yes")
    assert done.exit_code == 2
    assert "commands only" in done.stderr


def test_whoever_connects_to_a_gateway_that_does_not_run_is_told_to_start_it(place: Home) -> None:
    connect = ("client", "connect", "cursor", "--yes")
    assert "thoughtgate serve" in place.invoke(*connect, "--http").stderr
    assert "thoughtgate serve" not in place.invoke(*connect, "--url", "http://h/mcp").stderr
    with gate(place):
        assert "thoughtgate serve" not in place.invoke(*connect, "--http").stderr


def test_a_port_that_nobody_knows_needs_a_url(place: Home) -> None:
    place.config.write_text("[gateway]\nport = 0\n", encoding="utf-8")
    done = place.invoke("client", "connect", "cursor", "--http", "--yes")
    assert done.exit_code == 2
    assert "--url" in done.stderr


def test_a_file_that_cannot_be_read_is_left_alone_and_named(place: Home, cursor: Path) -> None:
    cursor.write_text('{\n  "mcpServers": {\n    oops\n  }\n}\n', encoding="utf-8")
    for verb in ("connect", "disconnect"):
        done = place.invoke("client", verb, "cursor", "--yes")
        assert done.exit_code == 2
        assert f"{cursor}: line 3, column 5" in done.stderr
    assert "oops" in cursor.read_text("utf-8")
    listed = place.invoke("client", "list")
    assert listed.exit_code == 0
    assert "unreadable" in listed.stdout
    assert "line 3, column 5" in listed.stderr


def test_a_file_elsewhere_is_named_by_its_path(place: Home, tmp_path: Path) -> None:
    file = tmp_path / "Code - Insiders" / "mcp.json"
    done = place.invoke("client", "connect", "vscode", "--path", file, "--yes")
    assert done.exit_code == 0, done.output
    assert "thoughtgate" in json.loads(file.read_text("utf-8"))["servers"]


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_on_a_terminal_it_asks(place: Home, cursor: Path, answer: str, code: int) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    try:
        done = subprocess.run(
            command("client", "connect", "cursor"),
            stdin=theirs,
            capture_output=True,
            text=True,
            env=place.environment,
            timeout=START,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == code, done.stderr
    assert "change the file?" in done.stderr
    assert ("thoughtgate" in cursor.read_text("utf-8")) == (code == 0)
