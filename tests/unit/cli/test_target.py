"""Whom a command is about: nobody is taken for somebody else."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from thoughtgate.cli.exits import Exit
from thoughtgate.cli.root import cli


def run(home: Path, *words: str, **environ: str) -> Result:
    return CliRunner(env={"THOUGHTGATE_HOME": str(home), **environ}).invoke(cli, list(words))


@pytest.mark.parametrize("command", [["server", "list"], ["status"], ["doctor"]])
def test_an_empty_server_is_not_this_machine(tmp_path: Path, command: list[str]) -> None:
    result = run(tmp_path / "state", "--server", "", *command)
    assert result.exit_code == Exit.USAGE
    assert "--server" in result.stderr
    assert not (tmp_path / "state").exists()


def test_an_unset_variable_means_this_machine(tmp_path: Path) -> None:
    assert run(tmp_path, "server", "list", THOUGHTGATE_SERVER="").exit_code == Exit.OK


def test_a_token_that_is_named_for_nobody_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path, "--token-file", str(tmp_path / "token"), "server", "list")
    assert result.exit_code == Exit.USAGE
    assert "give --server too" in result.stderr
    kept = run(tmp_path, "server", "list", THOUGHTGATE_TOKEN_FILE=str(tmp_path / "token"))
    assert kept.exit_code == Exit.OK
