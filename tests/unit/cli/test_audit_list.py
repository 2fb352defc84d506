"""`thoughtgate audit list` shows what the log holds, newest first."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from thoughtgate.app.stores import open_registry
from thoughtgate.cli.root import cli
from thoughtgate.config.files import load
from thoughtgate.core.audit import AuditRow
from thoughtgate.registry.audit import AuditWriter


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    environ = {"THOUGHTGATE_HOME": str(tmp_path), "THOUGHTGATE_CONFIG": ""}
    registry = open_registry(load(None, environ))
    writer = AuditWriter(registry)
    for outcome in ("ok", "invalid_arguments"):
        writer.append(
            AuditRow(
                at_ns=time.time_ns(),
                action="tool.call",
                principal="local",
                domain="default",
                server="files",
                tool="read\u202efile",
                outcome=outcome,
                effect="read",
            )
        )
    writer.close(within=5.0)
    registry.close()
    return environ


def listed(home: dict[str, str], *options: str) -> str:
    result = CliRunner(env=home).invoke(cli, ["audit", "list", *options])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_each_call_is_a_row_of_the_list_the_newest_first(home: dict[str, str]) -> None:
    rows = [line for line in listed(home).splitlines() if "tool.call" in line]
    assert [row.split()[-1] for row in rows] == ["invalid_arguments", "ok"]


def test_a_name_that_would_steer_the_terminal_is_made_visible(home: dict[str, str]) -> None:
    assert r"files/read\u202efile" in listed(home)


def test_json_holds_the_whole_row_and_the_limit_counts(home: dict[str, str]) -> None:
    assert len(json.loads(listed(home, "--json", "--last", "1"))) == 1
    assert {one["row"]["action"] for one in json.loads(listed(home, "--json"))} == {"tool.call"}
    rows = json.loads(listed(home, "--json"))
    [first] = [one["row"] for one in rows if one["row"].get("outcome") == "ok"]
    assert first["principal"] == "local"
    assert first["tool"] == "read\u202efile"


def test_the_logs_own_rows_are_shown_when_asked_for(home: dict[str, str]) -> None:
    assert "audit." not in listed(home)
    assert "audit.started" in listed(home, "--all")


def test_a_log_without_calls_says_so(tmp_path: Path) -> None:
    environ = {"THOUGHTGATE_HOME": str(tmp_path), "THOUGHTGATE_CONFIG": ""}
    assert listed(environ) == "no calls yet\n"


@pytest.mark.parametrize(
    "to",
    ["body = CAST(body AS TEXT)", "body = X'7B7D'", "body = substr(body, 1, 9)", "at_ns = -1"],
)
def test_a_row_that_was_made_unreadable_is_shown_as_such_and_found_broken(
    home: dict[str, str], to: str
) -> None:
    with closing(sqlite3.connect(Path(home["THOUGHTGATE_HOME"]) / "registry.db")) as connection:
        connection.execute(f"UPDATE audit SET {to} WHERE seq = 2")
        connection.commit()
    assert len(listed(home).splitlines()) == 3
    assert "unreadable" in listed(home)
    result = CliRunner(env=home).invoke(cli, ["audit", "verify"])
    assert result.exit_code == 1
    assert result.stdout.startswith("1 chain, 1 row: BROKEN\n")
    assert ": broken at row 2: " in result.stdout
