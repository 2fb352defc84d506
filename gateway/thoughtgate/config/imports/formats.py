"""The files in which clients keep their servers: what they look like, and where the servers stand.

Never reads a server's table; that is done in `servers`.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from thoughtgate.config import documents
from thoughtgate.config.imports.places import Place, Remark
from thoughtgate.config.texts import Unreadable
from thoughtgate.config.toml import read as read_toml
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.json import JsonValue

AUTO = "auto"


class JsonTable(dict[str, Any]):
    """A JSON object that remembers which of its keys were given more than once."""

    repeated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one client writes its file.

    `tables` are the ways to the servers, the usual one first. `predefined` says that the client
    fills in names such as `${userHome}`.
    """

    tables: tuple[tuple[str, ...], ...]
    toml: bool = False
    predefined: bool = True


_MCP_SERVERS = Format(tables=(("mcpServers",),))

FORMATS: Mapping[str, Format] = {
    "claude": _MCP_SERVERS,
    "cursor": _MCP_SERVERS,
    "windsurf": _MCP_SERVERS,
    "vscode": Format(tables=(("servers",), ("mcp", "servers"), ("settings", "mcp", "servers"))),
    "zed": Format(tables=(("context_servers",),), predefined=False),
    "codex": Format(tables=(("mcp_servers",),), toml=True, predefined=False),
}
"""The clients whose files are read, by the name that `--format` takes."""

_BARE = Format(tables=((),))
"""A file that holds nothing but the servers, as people paste them."""

_EXPECTED = "mcpServers, servers, context_servers or mcp_servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A parsed file: its servers by name, where they stand, and the inputs that it declares."""

    servers: Mapping[str, Any]
    place: Place
    predefined: bool
    inputs: tuple[Any, ...] = ()
    remarks: tuple[Remark, ...] = ()


def read_document(text: str, *, format_name: str, toml: bool) -> Document:
    """Find the servers in a file; `toml` says that its name ends in `.toml`.

    Raises:
        ConfigError: It is not JSON or TOML, holds no servers, or holds them in several places.
    """
    chosen = FORMATS.get(format_name)
    is_toml = chosen.toml if chosen else toml or not text.lstrip().startswith(("{", "//", "/*"))
    root = _parsed(text, read_toml if is_toml else _read_json)
    if not isinstance(root, Mapping):
        raise ConfigError(message=f"the file is no table of servers; expected {_EXPECTED}")
    formats = [chosen] if chosen else list(dict.fromkeys(FORMATS.values()))
    found = {
        path: (format_, table)
        for format_ in formats
        for path in format_.tables
        if isinstance(table := _at(root, path), Mapping)
    }
    if not found and chosen is None and _is_bare(root):
        found[()] = (_BARE, root)
    if not found:
        expected = " or ".join(".".join(path) for path in chosen.tables) if chosen else _EXPECTED
        raise ConfigError(message=f"the file holds no servers; expected {expected}")
    if len(found) > 1:
        places = " and ".join(".".join(path) for path in found)
        raise ConfigError(message=f"the file holds servers at {places}; choose with --format")
    ((path, (format_, table)),) = found.items()
    parent = _at(root, path[:-1])
    if path and isinstance(parent, JsonTable) and path[-1] in parent.repeated:
        raise ConfigError(message=f"{'.'.join(path)} is given more than once; keep one of them")
    inputs = _at(root, (*path[:-1], "inputs"))
    place = Place(steps=path, toml=is_toml)
    return Document(
        servers=table,
        place=place,
        predefined=format_.predefined,
        inputs=tuple(inputs) if isinstance(inputs, list) else (),
        remarks=_beside(root),
    )


def _parsed(text: str, read: Callable[[str], Any]) -> JsonValue:
    try:
        root: JsonValue = read(text)
    except Unreadable as error:
        raise ConfigError(message=str(error)) from None
    return root


def _read_json(text: str) -> Any:
    """Return what a text says; each object in it is a `JsonTable`."""
    return documents.parse(text, _TABLES)[1]


def _table(pairs: list[tuple[str, Any]]) -> JsonTable:
    table = JsonTable(pairs)
    if len(table) < len(pairs):
        given = Counter(key for key, _ in pairs)
        table.repeated = tuple(key for key, times in given.items() if times > 1)
    return table


_TABLES = json.JSONDecoder(object_pairs_hook=_table, parse_constant=documents.refuse)


def _at(root: JsonValue, path: tuple[str, ...]) -> JsonValue:
    value = root
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _is_bare(root: Mapping[str, Any]) -> bool:
    return bool(root) and all(
        isinstance(table, Mapping) and {"command", "url", "serverUrl"} & table.keys()
        for table in root.values()
    )


def _beside(root: Mapping[str, Any]) -> tuple[Remark, ...]:
    """Tell of servers that stand elsewhere in the file, one set for each project."""
    projects = root.get("projects")
    if not isinstance(projects, Mapping):
        return ()
    text = "servers of this project only; not imported"
    return tuple(
        Remark(server="", key=str(Place(steps=("projects", name, "mcpServers"))), text=text)
        for name, project in projects.items()
        if isinstance(project, Mapping) and project.get("mcpServers")
    )
