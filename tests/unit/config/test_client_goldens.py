"""Each client's file before and after it is connected, byte by byte.

`tests/data/clients/CLIENT/CASE.before.*` is connected to `CASE.after.*`, and disconnected to what
it was. With GOLDEN=write, the files after are written again, to be looked at as a diff.
"""

import os
from pathlib import Path

import pytest

from tests.support.source import ROOT
from thoughtgate.config.clients.edits import FORMS, connected, disconnected, entries
from thoughtgate.config.clients.entries import Endpoint, connection, entry_for, pipe
from thoughtgate.config.clients.places import CLIENTS
from thoughtgate.config.originals import BACKUP, backups, read, write

DATA = ROOT / "tests" / "data" / "clients"
AFTER = sorted(DATA.glob("*/*.after.*"))
IDS = [f"{path.parent.name}-{path.name.partition('.')[0]}" for path in AFTER]

COMMAND = "/opt/thoughtgate/bin/thoughtgate"
HERE = pipe((COMMAND,), "work", "", {})


@pytest.fixture(params=AFTER, ids=IDS)
def after(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def before_of(after: Path) -> Path:
    return after.with_name(after.name.replace(".after.", ".before."))


def copied(after: Path, folder: Path) -> Path:
    """Copy the file before into a folder of its own; there is none in the case `missing`."""
    before, copy = before_of(after), folder / "config"
    if before.exists():
        copy.write_bytes(before.read_bytes())
    return copy


def connect(path: Path, client: str) -> None:
    file = read(path)
    chosen = CLIENTS[client]
    write(file, connected(file.text, chosen, "thoughtgate", entry_for(chosen, HERE)))


def test_every_client_has_a_usual_file_and_one_that_is_missing() -> None:
    for client in CLIENTS:
        assert (DATA / client / f"usual.before.{suffix(client)}").exists()
        assert (DATA / client / f"missing.after.{suffix(client)}").exists()
    cases = {path.name.partition(".")[0] for path in AFTER}
    assert cases >= {
        "usual", "crlf", "bom", "empty-file", "empty-object", "one-line", "trailing-comma",
        "odd-indent", "comments-only",
    }  # fmt: skip


def suffix(client: str) -> str:
    return CLIENTS[client].form


def test_connecting_makes_exactly_the_file_that_is_expected(after: Path, tmp_path: Path) -> None:
    copy = copied(after, tmp_path)
    connect(copy, after.parent.name)
    if os.environ.get("GOLDEN") == "write":
        after.write_bytes(copy.read_bytes())
    assert copy.read_bytes() == after.read_bytes()


def test_the_entry_that_was_written_is_found_again(after: Path) -> None:
    client = CLIENTS[after.parent.name]
    found = entries(after.read_bytes().decode(), client)
    led = connection("thoughtgate", found["thoughtgate"])
    assert led is not None
    assert (led.how, led.domain) == ("stdio", "work")
    assert led.target == f"{COMMAND} serve --stdio --domain work"


def test_connecting_twice_changes_nothing(after: Path) -> None:
    text = after.read_bytes().decode()
    client = CLIENTS[after.parent.name]
    assert connected(text, client, "thoughtgate", entry_for(client, HERE)) == text


def test_disconnecting_gives_back_the_very_bytes(after: Path, tmp_path: Path) -> None:
    copy = copied(after, tmp_path)
    was = copy.read_bytes() if copy.exists() else None
    connect(copy, after.parent.name)
    file = read(copy)
    earlier = [*backups(file), None]
    write(file, disconnected(file.text, CLIENTS[after.parent.name], "thoughtgate", earlier))
    assert (copy.read_bytes() if copy.exists() else None) == was
    assert copy.with_name(f"config{BACKUP}").exists()


def test_without_a_backup_all_values_and_comments_are_still_as_they_were(after: Path) -> None:
    """Only an emptied object that was not there before may stay."""
    client = CLIENTS[after.parent.name]
    form = FORMS[client.form]
    before = before_of(after).read_bytes().decode() if before_of(after).exists() else ""
    left = disconnected(after.read_bytes().decode(), client, "thoughtgate")
    assert left is not None
    kept = form.read(left)
    assert {client.servers: {}, **kept} == {client.servers: {}, **form.read(before)}
    assert marks(left) == marks(before)


def marks(text: str) -> list[str]:
    return [
        line.strip() for line in text.splitlines() if line.strip().startswith(("//", "#", "/*"))
    ]


def test_a_connection_by_url_replaces_the_command_and_back(after: Path) -> None:
    client = CLIENTS[after.parent.name]
    if not client.url_key:
        return
    text = after.read_bytes().decode()
    by_url = entry_for(client, Endpoint(url="http://127.0.0.1:8765/mcp/work"))
    over = connected(text, client, "thoughtgate", by_url)
    assert entries(over, client)["thoughtgate"] == by_url
    again = connected(over, client, "thoughtgate", entry_for(client, HERE))
    assert FORMS[client.form].read(again) == FORMS[client.form].read(text)
