"""What is wrong with a configuration, in words, and what of it can be used all the same.

Never stops at the first fault: who mends a file wants to hear all of them.
"""

import re
from difflib import get_close_matches
from typing import Annotated, Any, get_args, get_origin

import msgspec

from thoughtgate.config.settings import NAME_PATTERN, Name

_NAME_RULE = "use 1 to 40 lower-case letters, digits and hyphens, beginning with a letter or digit"
_PLACE = re.compile(r" - at `\$([^`]*)`\Z")


class Fault(msgspec.Struct, kw_only=True, frozen=True):
    """One fault: the key where it is, empty for the whole file, and what is wrong with it.

    `variable` names the variable that is not set, where that is the fault.
    """

    key: str
    text: str
    variable: str = ""

    def said(self, where: str) -> str:
        """Return the fault in one line; `where` names the file."""
        return ": ".join(filter(None, (where, self.key, self.text)))


class Sieve:
    """Takes the usable part of a value, and keeps what was wrong with the rest in `faults`."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def usable(self, value: object, kind: Any, path: str = "") -> object:
        """Return what can be used of `value` as a `kind`, `UNUSABLE` when nothing can."""
        if get_origin(kind) is Annotated and get_origin(get_args(kind)[0]) is dict:
            kind = get_args(kind)[0]
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self._table(value, kind, path)
        if get_origin(kind) is dict and _is_table(get_args(kind)[1]):
            return self._entries(value, get_args(kind), path)
        return self._leaf(value, kind, path)

    def _table(self, value: object, kind: type[msgspec.Struct], path: str) -> object:
        if not isinstance(value, dict):
            return self._refuse(path, "must be a table")
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        kept = {}
        for key, item in value.items():
            here = f"{path}.{key}" if path else key
            if key not in fields:
                self._refuse(here, f"unknown key; {_hint(key, fields)}")
            elif (found := self.usable(item, fields[key].type, here)) is not UNUSABLE:
                kept[key] = found
        missing = [key for key, field in fields.items() if field.required and key not in value]
        for key in missing:
            self._refuse(path, f"{key} is missing")
        lost = any(field.required and key not in kept for key, field in fields.items())
        return UNUSABLE if lost else kept

    def _entries(self, value: object, kinds: tuple[Any, ...], path: str) -> object:
        if not isinstance(value, dict):
            return self._refuse(path, "must be a table")
        named, entry = kinds
        kept = {}
        for key, item in value.items():
            if named is Name and re.fullmatch(NAME_PATTERN, key) is None:
                noun = path.rpartition(".")[2].removesuffix("s")
                self._refuse(path, f'"{key[:60]}" is no {noun} name; {_NAME_RULE}')
            elif (found := self.usable(item, entry, f"{path}.{key}")) is not UNUSABLE:
                kept[key] = found
        return kept

    def _leaf(self, value: object, kind: Any, path: str) -> object:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            text = str(error)
            place = _PLACE.search(text)
            return self._refuse(f"{path}{place[1] if place else ''}", _PLACE.sub("", text))
        return value

    def _refuse(self, key: str, text: str) -> object:
        self.faults.append(Fault(key=key, text=text))
        return UNUSABLE


UNUSABLE = object()
"""Stands for a value that cannot be used."""


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _hint(key: str, known: dict[str, Any]) -> str:
    near = get_close_matches(key, known, n=1)
    return f"did you mean {near[0]}?" if near else f"the keys here are {', '.join(sorted(known))}"
