"""Commands that are imported only when they are used."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import pytest

from tests.support.gate import home
from thoughtgate.cli.lazy import LazyCommands
from thoughtgate.cli.root import PLACES, cli

UNASKED = {"alembic", "requests", "opentelemetry.sdk"}
HEAVY = UNASKED | {"sqlalchemy", "mako", "jsonschema", "aiohttp"}

LOADED = """
import sys
from thoughtgate.cli.lazy import LazyCommands
from thoughtgate.cli.root import cli
try:
    cli.main(sys.argv[1:])
finally:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""


def imported(args: list[str], environment: Mapping[str, str] | None = None) -> set[str]:
    """Run a command in a process of its own; return the modules that it imported."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *args],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    return set(done.stderr.splitlines())


@pytest.mark.parametrize("args", [["version"], ["--help"], ["completion", "bash"]])
def test_what_needs_nothing_imports_nothing_heavy(args: list[str]) -> None:
    assert imported(args) & {*HEAVY, "thoughtgate.cli.server"} == set()


def test_a_command_imports_neither_migrations_nor_exporters_that_it_does_not_use(
    tmp_path: Path,
) -> None:
    place = home(tmp_path)
    first, second = (imported(["server", "list"], place.environment) for _ in range(2))
    assert "alembic" in first, "the registry was made"
    assert second & UNASKED == set()


@pytest.mark.parametrize("name", PLACES)
def test_the_table_tells_of_a_command_what_the_command_tells_of_itself(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert command.get_short_help_str(100) == PLACES[name].help


def test_an_unknown_command_is_no_command() -> None:
    assert cli.get_command(click.Context(cli), "servre") is None


def test_a_command_is_listed_alike_before_and_after_it_was_used() -> None:
    commands = LazyCommands(PLACES)
    before = {name: commands.help_of(name).rstrip(".") for name in commands}
    assert all(commands[name].name == name for name in PLACES)
    assert {name: commands.help_of(name).rstrip(".") for name in commands} == before
