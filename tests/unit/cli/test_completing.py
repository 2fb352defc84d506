"""Names for the shell: what cannot be looked at completes nothing, and disturbs nobody."""

from pathlib import Path

import click
import pytest

from thoughtgate.cli.completing import domain_names, server_names, tool_names, tool_paths
from thoughtgate.cli.root import cli

NAMES = [domain_names, server_names, tool_names, tool_paths]


@pytest.mark.parametrize("names", NAMES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("folder", ["x" * 300, "file/state"])
def test_an_odd_state_folder_does_not_disturb_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, names: object
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("THOUGHTGATE_HOME", str(tmp_path / folder))
    assert callable(names)
    assert names(click.Context(cli), click.Argument(["name"]), "x") == []
