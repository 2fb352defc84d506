"""The servers that clients on this machine know, registered for a new configuration.

Never changes a client's file; a file that cannot be imported keeps no other one from it.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path

from thoughtgate.cli.server_import import import_
from thoughtgate.cli.settings import machine
from thoughtgate.config.clients.edits import entries
from thoughtgate.config.clients.places import CLIENTS, place
from thoughtgate.config.imports.names import proper_name
from thoughtgate.config.originals import read
from thoughtgate.config.texts import Unreadable
from thoughtgate.core.errors import GateError


def found_files() -> Mapping[Path, tuple[str, ...]]:
    """Return the clients' files that hold servers, with the names that no file before it has."""
    found: dict[Path, tuple[str, ...]] = {}
    taken: set[str] = set()
    for client in CLIENTS.values():
        file = place(client, machine())
        try:
            names = tuple(entries(read(file).text, client)) if file.is_file() else ()
        except (GateError, Unreadable):
            names = ()
        new = tuple(name for name in names if proper_name(name) not in taken)
        taken.update(map(proper_name, new))
        if new:
            found[file] = new
    return found


def import_all(config: Path, files: Mapping[Path, tuple[str, ...]]) -> list[str]:
    """Register the servers of each file, and return what became of it in one line each."""
    return list(_imported(config, files)) or ["no client on this machine has servers to import"]


def _imported(config: Path, files: Mapping[Path, tuple[str, ...]]) -> Iterator[str]:
    for file, names in files.items():
        words = [word for name in names for word in ("--only", name)]
        try:
            with redirect_stdout(sys.stderr):  # our own answer is all that stdout gets
                import_.main([str(file), *words], standalone_mode=False, obj=config)
        except GateError as error:
            first = error.message.splitlines()[-1].strip()
            yield f"{file}: not imported: {first}; again: thoughtgate server import {file}"
        else:
            yield f"{file}: imported {', '.join(names)}"
