"""Commands that are imported only when they are used."""

import subprocess
import sys

import click
import pytest

from thoughtgate.cli.root import PLACES, cli

HEAVY = {"alembic", "sqlalchemy", "opentelemetry.exporter", "mako", "jsonschema", "aiohttp"}

LOADED = """
import sys
from thoughtgate.cli.root import cli
try:
    cli.main(sys.argv[1:])
finally:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""


@pytest.mark.parametrize("args", [["version"], ["--help"], ["completion", "bash"]])
def test_what_needs_nothing_imports_nothing_heavy(args: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *args], capture_output=True, text=True, check=True
    )
    assert HEAVY & set(done.stderr.split()) == set()
    assert "thoughtgate.cli.server" not in done.stderr.split()


@pytest.mark.parametrize("name", PLACES)
def test_the_table_tells_of_a_command_what_the_command_tells_of_itself(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert command.get_short_help_str(100) == PLACES[name].help


def test_an_unknown_command_is_no_command() -> None:
    assert cli.get_command(click.Context(cli), "servre") is None
