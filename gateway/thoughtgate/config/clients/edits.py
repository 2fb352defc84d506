"""Connecting and disconnecting, as a change of one text into another.

Never changes more than the gateway's own entry, and says so only after reading the result back.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thoughtgate.config import documents, toml
from thoughtgate.config.clients import jsonc, tables
from thoughtgate.config.clients.places import Client
from thoughtgate.config.clients.text import with_value, without
from thoughtgate.config.texts import Unreadable, fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A file format: how to read it, to set and remove a value, and to show it without secrets."""

    read: Callable[[str], Any]
    put: Callable[[str, Sequence[str], Any], str]
    drop: Callable[[str, Sequence[str]], str]
    masked: Callable[[str, frozenset[str]], str]


FORMS: Mapping[str, Form] = {
    "json": Form(read=documents.read, put=jsonc.put, drop=jsonc.drop, masked=jsonc.masked),
    "toml": Form(read=toml.read, put=tables.put, drop=tables.drop, masked=tables.masked),
}
"""The formats by the name that a client's description gives."""

_NO_OBJECT = "an object is needed here"
_UNCERTAIN = "this file cannot be changed for certain; please edit it by hand"


def entries(text: str, client: Client) -> Mapping[str, Any]:
    """Return the servers that a client's file holds, by name.

    Raises:
        Unreadable: The file cannot be read, or holds something else in their place.
    """
    root = FORMS[client.form].read(text)
    if not isinstance(root, Mapping):
        raise fault(text, 0, "the file is not an object")
    found = root.get(client.servers, {})
    if not isinstance(found, Mapping):
        raise fault(text, max(text.find(json.dumps(client.servers)), 0), _NO_OBJECT)
    return found


def connected(text: str, client: Client, name: str, entry: Mapping[str, Any]) -> str:
    """Return the text with the entry in it; the same text when it says that already.

    What people added to an entry of the same kind stays, such as variables or a time limit.

    Raises:
        Unreadable: The file cannot be read, or not be changed for certain.
    """
    form = FORMS[client.form]
    at = (client.servers, name)
    old = entries(text, client).get(name)
    if not isinstance(old, Mapping) or ("command" in old) != ("command" in entry):
        return _checked(form, text, form.put(text, at, entry), {at: entry})
    changes: dict[tuple[str, ...], Any] = {}
    for key, value in entry.items():
        if isinstance(value, Mapping) and isinstance(old.get(key), Mapping):
            inner = {k: v for k, v in value.items() if old[key].get(k) != v}
            changes |= {(*at, key, k): v for k, v in inner.items()}
        elif old.get(key) != value:
            changes[*at, key] = value
    new = text
    for path, value in changes.items():
        new = form.put(new, path, value)
    return _checked(form, text, new, changes)


def disconnected(
    text: str, client: Client, name: str, earlier: Iterable[str | None] = ()
) -> str | None:
    """Return the text without an entry, None when no file should remain.

    `earlier` are texts that the file may have had before it was connected, None for no file. One
    that becomes the present text by connecting is given back to the byte.

    Raises:
        Unreadable: The file cannot be read, or not be changed for certain.
    """
    form = FORMS[client.form]
    found = entries(text, client)
    if name not in found:
        return text
    for before in earlier:
        if _becomes(before or "", text, client, name):
            return before
    new = form.drop(text, (client.servers, name))
    root = form.read(text)
    wanted = without(root, (client.servers, name))
    if not _same(form.read(new), wanted, client.servers):
        raise fault(text, 0, _UNCERTAIN)
    return new


def _becomes(before: str, text: str, client: Client, name: str) -> bool:
    """Say whether connecting makes `text` of `before`."""
    entry = entries(text, client)[name]
    try:
        if not isinstance(entry, Mapping) or name in entries(before, client):
            return False
        return connected(before, client, name, entry) == text
    except Unreadable:
        return False


def _checked(form: Form, old: str, new: str, changes: Mapping[tuple[str, ...], Any]) -> str:
    wanted = form.read(old)
    for path, value in changes.items():
        wanted = with_value(wanted, path, value)
    if form.read(new) != wanted:
        raise fault(old, 0, _UNCERTAIN)
    return new


def _same(found: Mapping[str, Any], wanted: Mapping[str, Any], key: str) -> bool:
    """Compare two files; in TOML, a table goes with its last entry."""
    return {key: {}, **found} == wanted
