"""Commands that are imported when they are first used, so that every other command starts fast.

Never imports a command to list it: the table tells what each one is for.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import NamedTuple

import click

_WHOLE = 1000
"""More characters than a first sentence has."""


class Place(NamedTuple):
    """Where a command is, `module:name`, and the first sentence of its help."""

    target: str
    help: str


class Group(click.Group):
    """A group that says in a whole sentence what each command is for, however narrow the screen."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names of the commands and what they are for."""
        del ctx
        rows = [(name, one.get_short_help_str(_WHOLE)) for name, one in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows))


class LazyCommands(MutableMapping[str, click.Command]):
    """The commands of a group by name; those of the table are imported when they are taken."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        self._places = places
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        """Return a command, imported by now."""
        if name not in self._loaded:
            module, _, attribute = self._places[name].target.partition(":")
            self._loaded[name] = getattr(import_module(module), attribute)
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        """Put in a command that is there already."""
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        """Forget a command; one of the table is imported again when it is taken."""
        del self._loaded[name]

    def __contains__(self, name: object) -> bool:
        """Say whether there is such a command."""
        return name in self._loaded or name in self._places

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._places.keys() | self._loaded.keys())

    def __len__(self) -> int:
        """Count the commands."""
        return len(self._places.keys() | self._loaded.keys())

    def help_of(self, name: str) -> str:
        """Return in a whole sentence what a command is for, without importing it."""
        if name in self._loaded:
            return self._loaded[name].get_short_help_str(_WHOLE)
        return self._places[name].help
