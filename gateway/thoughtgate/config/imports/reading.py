"""All servers of another client's file, or everything that keeps them from being imported.

Never opens a file and never stores anything: text, variables and folders in, values out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from thoughtgate.config.clients.entries import starts_gateway
from thoughtgate.config.imports.fields import Fields
from thoughtgate.config.imports.folders import Folders
from thoughtgate.config.imports.formats import Document, JsonTable
from thoughtgate.config.imports.inputs import Input, read_inputs
from thoughtgate.config.imports.names import proper_name
from thoughtgate.config.imports.places import Remark
from thoughtgate.config.imports.servers import Found, read_server
from thoughtgate.config.imports.variables import Filler, Surroundings
from thoughtgate.core.hosts import is_loopback
from thoughtgate.core.servers import BUILT_IN, HttpTransport, StdioTransport, Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One server to import: its name here, its name in the file, and what the file says."""

    name: str
    was: str
    found: Found


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What a file holds; with any problem nothing of it may be used.

    `inputs` are the ids of all that may be answered. `wanted` are those whose answer is needed and
    not known yet: ask for them, and read again.
    """

    entries: tuple[Entry, ...]
    problems: tuple[Remark, ...]
    notes: tuple[Remark, ...]
    wanted: tuple[Input, ...]
    inputs: frozenset[str]


def read_servers(
    document: Document, around: Surroundings, folders: Folders, only: Sequence[str] = ()
) -> Import:
    """Return the servers of a document, those named in `only` when that is not empty."""
    inputs, problems = read_inputs(document)
    if not around.asking:
        defaults = {id_: one.default for id_, one in inputs.items() if one.default is not None}
        around = replace(around, inputs={**defaults, **around.inputs})
    predefined = folders.variables() if document.predefined else {}
    to_ask = [id_ for id_, one in inputs.items() if one.asked and around.asking]
    fill = Filler(around, predefined, to_ask)
    entries: list[Entry] = []
    notes = list(document.remarks)
    problems += _repeated(document.servers, document, "")
    for was, table in document.servers.items():
        name = proper_name(was)
        if only and not {was, name} & set(only):
            continue
        place = document.place.at(was)
        if not isinstance(table, Mapping):
            problems.append(Remark(server=was, key=str(place), text="must be a table"))
            continue
        fields = Fields(table, was, place, fill)
        found = read_server(fields, folders)
        if found is not None and _is_ours(found.transport, name):
            notes.append(Remark(server=was, key="", text="is this gateway itself; not imported"))
            continue
        problems += [*_repeated(table, document, was), *fields.problems]
        notes += fields.notes
        if found is not None:
            entries.append(Entry(name=name, was=was, found=found))
    problems += [*_missing(document, only), *_name_problems(document, entries)]
    notes += [_renamed(document, entry) for entry in entries if entry.name != entry.was]
    return Import(
        entries=tuple(entries),
        problems=tuple(problems),
        notes=tuple(notes),
        wanted=tuple(inputs[id_] for id_ in inputs if id_ in fill.wanted),
        inputs=frozenset(inputs) | fill.used,
    )


def _repeated(table: Mapping[str, Any], document: Document, server: str) -> list[Remark]:
    """Refuse keys that were given twice, in a server's table and one level below."""
    place = document.place.at(server) if server else document.place
    twice = [(place.at(key), key) for key in _twice(table)]
    if server:
        for key, inner in table.items():
            twice += [(place.at(key, name), name) for name in _twice(inner)]
    text = "given more than once; keep one of them"
    return [Remark(server=server or key, key=str(at), text=text) for at, key in twice]


def _twice(table: object) -> tuple[str, ...]:
    return table.repeated if isinstance(table, JsonTable) else ()


def _is_ours(transport: Transport, name: str) -> bool:
    """Say whether a client's entry leads back to us: a gateway behind itself would never end."""
    if isinstance(transport, StdioTransport):
        return starts_gateway(transport.argv)
    if not isinstance(transport, HttpTransport) or name != BUILT_IN:
        return False
    try:
        return is_loopback(urlsplit(transport.url).hostname or "")
    except ValueError:
        return False


def _missing(document: Document, only: Sequence[str]) -> list[Remark]:
    names = {*document.servers, *map(proper_name, document.servers)}
    known = ", ".join(sorted(document.servers)) or "none"
    return [
        Remark(server=name, key="", text=f"not in the file; its servers are {known}")
        for name in only
        if name not in names
    ]


def _name_problems(document: Document, entries: Sequence[Entry]) -> list[Remark]:
    """Refuse names that are taken: by the gateway, or by another server of the file."""
    first: dict[str, Entry] = {}
    problems = []
    for entry in entries:
        other = first.setdefault(entry.name, entry)
        if entry.name == BUILT_IN:
            text = f"the name {BUILT_IN} is the gateway's own; rename it in the file"
        elif other is not entry:
            text = f"becomes {entry.name}, as {other.was} does; rename one of them in the file"
        else:
            continue
        place = document.place.at(entry.was)
        problems.append(Remark(server=entry.was, key=str(place), text=text))
    return problems


def _renamed(document: Document, entry: Entry) -> Remark:
    key = str(document.place.at(entry.was))
    return Remark(server=entry.was, key=key, text=f"is called {entry.name} here")
