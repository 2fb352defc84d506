"""The servers that clients on this machine know, registered for a new configuration.

Never changes a client's file; a file that cannot be imported keeps no other one from it.
"""

from collections.abc import Mapping
from pathlib import Path

from thoughtgate.cli.importing import ImportOrder, imported
from thoughtgate.cli.output import note
from thoughtgate.cli.settings import loaded_or_fail, machine
from thoughtgate.config.clients.edits import entries
from thoughtgate.config.clients.places import CLIENTS, place
from thoughtgate.config.files import Loaded
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
    loaded = loaded_or_fail(config)
    lines = [_imported(loaded, file, names) for file, names in files.items()]
    return lines or ["no client on this machine has servers to import"]


def _imported(loaded: Loaded, file: Path, names: tuple[str, ...]) -> str:
    try:
        found, _ = imported(loaded, ImportOrder(file=file, only=names))
    except GateError as error:
        first = error.message.splitlines()[-1].strip()
        return f"{file}: not imported: {first}; again: thoughtgate server import {file}"
    for remark in found.notes:
        note(f"note: {remark}")
    return f"{file}: imported {', '.join(names)}"
