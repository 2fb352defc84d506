"""The one repair that is made unasked: a null for an optional member that refuses null goes.

Never changes a valid value, and never anything but such a null; a new value is built.
"""

from collections.abc import Iterator
from typing import Protocol

from thoughtgate.core.json import JsonValue
from thoughtgate.schema.dialects import dialect_of
from thoughtgate.schema.leaves import has_type
from thoughtgate.schema.phrases import declared, resolved
from thoughtgate.schema.pointers import Step, pointer

_MAX_DEPTH = 64
_MAX_SCHEMAS = 64


class Verdict(Protocol):
    """Whatever tells whether a value is valid; a `Check` does."""

    def is_valid(self, value: JsonValue) -> bool:
        """Return the verdict."""
        ...


def drop_nulls(
    value: JsonValue, schema: JsonValue, check: Verdict
) -> tuple[JsonValue, tuple[str, ...]]:
    """Return `value` without the nulls that its schema refuses, and where they stood.

    A null goes when its member is declared, not required, and cannot be null by its schema. Where
    a union leaves open which schema applies, nothing goes.
    """
    if check.is_valid(value):
        return value, ()
    mender = _Mender(schema, into_unions=False)
    return mender.mended(value, [schema], ()), tuple(mender.dropped)


def without_refused_nulls(value: JsonValue, schema: JsonValue) -> tuple[JsonValue, tuple[str, ...]]:
    """Return `value` without the nulls that a strict view added for optional members.

    Asks no verdict, and looks into unions too: a null goes when some branch that declares its
    member refuses it and no branch requires it.
    """
    mender = _Mender(schema, into_unions=True)
    return mender.mended(value, [schema], ()), tuple(mender.dropped)


class _Mender:
    """One walk over a value and the schemas that apply to it."""

    def __init__(self, root: JsonValue, *, into_unions: bool) -> None:
        self.dropped: list[str] = []
        self._root = root
        self._hides = dialect_of(root).ref_hides_siblings
        self._refusals: dict[int, bool] = {}
        self._into_unions = into_unions

    def mended(
        self, value: JsonValue, schemas: list[JsonValue], path: tuple[Step, ...]
    ) -> JsonValue:
        """Return `value` mended below; the same object when nothing changed."""
        if len(path) >= _MAX_DEPTH or not isinstance(value, dict | list):
            return value
        applied = list(self._applied(schemas))
        if not applied:
            return value
        if isinstance(value, list):
            items = [
                self.mended(item, _items(applied, index), (*path, index))
                for index, item in enumerate(value)
            ]
            changed = any(new is not old for new, old in zip(items, value, strict=True))
            return items if changed else value
        return self._mended_object(value, applied, path)

    def _mended_object(
        self,
        value: dict[str, JsonValue],
        applied: list[dict[str, JsonValue]],
        path: tuple[Step, ...],
    ) -> JsonValue:
        required = {name for schema in applied for name in schema.get("required", ())}
        members: dict[str, JsonValue] = {}
        for name, item in value.items():
            own = [declared(schema)[name] for schema in applied if name in declared(schema)]
            if item is None and name not in required and self._refused(own):
                self.dropped.append(pointer((*path, name)))
            else:
                members[name] = self.mended(item, own, (*path, name))
        same = len(members) == len(value) and all(members[n] is value[n] for n in members)
        return value if same else members

    def _refused(self, schemas: list[JsonValue]) -> bool:
        return any(self._refuses_null(schema) for schema in schemas)

    def _applied(self, schemas: list[JsonValue]) -> Iterator[dict[str, JsonValue]]:
        """Yield the schemas that surely apply: references, `allOf`, a union with null alone."""
        todo = list(schemas)
        for _ in range(_MAX_SCHEMAS):
            if not todo:
                return
            schema = todo.pop()
            if not isinstance(schema, dict):
                continue
            if "$ref" in schema:
                todo.append(resolved(schema, self._root))
                if self._hides:
                    continue
            yield schema
            todo.extend(schema.get("allOf", ()))
            for keyword in ("anyOf", "oneOf"):
                rest = [part for part in schema.get(keyword, ()) if not _is_null(part)]
                if len(rest) == 1 or self._into_unions:
                    todo.extend(rest)

    def _refuses_null(self, schema: JsonValue, depth: int = 0) -> bool:
        """Tell whether `schema` surely refuses null; False when that takes more than a look."""
        if not isinstance(schema, dict):
            return schema is False
        known = self._refusals.get(id(schema))
        if known is None:
            known = depth < _MAX_DEPTH and self._judged(schema, depth + 1)
            self._refusals[id(schema)] = known
        return known

    def _judged(self, schema: dict[str, JsonValue], depth: int) -> bool:
        if "$ref" in schema:
            refused = self._refuses_null(resolved(schema, self._root), depth)
            if refused or self._hides:
                return refused
        if _refuses_itself(schema):
            return True
        if any(self._refuses_null(part, depth) for part in schema.get("allOf", ())):
            return True
        unions = [schema[keyword] for keyword in ("anyOf", "oneOf") if keyword in schema]
        return any(all(self._refuses_null(part, depth) for part in parts) for parts in unions)


def _refuses_itself(schema: dict[str, JsonValue]) -> bool:
    if "type" in schema and not has_type(None, schema["type"]):
        return True
    if "enum" in schema and None not in schema["enum"]:
        return True
    return "const" in schema and schema["const"] is not None


def _items(applied: list[dict[str, JsonValue]], index: int) -> list[JsonValue]:
    found: list[JsonValue] = []
    for schema in applied:
        items = schema.get("items")
        prefix = items if isinstance(items, list) else schema.get("prefixItems", [])
        if index < len(prefix):
            found.append(prefix[index])
        elif isinstance(items, dict):
            found.append(items)
    return found


def _is_null(schema: JsonValue) -> bool:
    if not isinstance(schema, dict):
        return False
    constant = "const" in schema and schema["const"] is None
    return constant or schema.get("type") == "null" or schema.get("enum") == [None]
