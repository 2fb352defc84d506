"""`thoughtgate audit list` shows what the log holds, newest first."""

import json
import time
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
    rows = json.loads(listed(home, "--json"))
    [first] = [one["row"] for one in rows if one["row"].get("outcome") == "ok"]
    assert first["principal"] == "local"
    assert first["tool"] == "read\u202efile"
