"""The reference engine as a reporter: jsonschema with bounded work and exact leaves.

Never prints a value into a message, never runs Python's `re` on a pattern, never looks at more
than its budget: it finds the first problems, not all.
"""

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from itertools import islice
from typing import Any, Final

from jsonschema import validators
from jsonschema.exceptions import ValidationError

from thoughtgate.core.json import JsonValue
from thoughtgate.schema.branches import choose
from thoughtgate.schema.dialects import Dialect, Remotes, registry
from thoughtgate.schema.evaluated import evaluated_items, evaluated_properties
from thoughtgate.schema.leaves import LEAVES, Leaf, follows_format
from thoughtgate.schema.patterns import matcher
from thoughtgate.schema.structure import REFERENCES

MAX_ERRORS: Final = 20
"""How many errors are looked for, at the top and in each branch."""

MAX_WORK: Final = 20_000
"""How many keywords are applied before the search is given up."""


MAX_NESTING: Final = 100
"""How many keywords may stand inside one another.

Each takes four or five frames of Python's stack, and near its end the native library below
`referencing` does not raise RecursionError: it panics, past every `except Exception`.
"""


class Exhausted(Exception):
    """The search took more work than it may; what was found so far stands."""


Errors = Iterable[ValidationError]
Keyword = Callable[[Any, Any, Any, Any], Errors | None]
"""jsonschema's shape: (validator, the keyword's argument, the value, the schema around it)."""


@dataclass(slots=True, kw_only=True)
class Run:
    """One search: what it may still do, and what it learns on its way.

    `hidden` are the `id()`s of values that a secret subschema was applied to. `optional` and
    `wanted` are (id of the object, name) of members that are null, by whether a schema requires
    them. `seen` remembers what a reference found for a value, so that a graph of references
    costs its size and not its paths; None where one reference can mean two targets.
    """

    left: int = MAX_WORK
    nesting: int = 0
    formats: bool = False
    secrets: frozenset[int] = frozenset()
    hidden: set[int] = field(default_factory=set)
    optional: set[tuple[int, str]] = field(default_factory=set)
    wanted: set[tuple[int, str]] = field(default_factory=set)
    seen: dict[tuple[str, int], list[ValidationError]] | None = field(default_factory=dict)


_RUN: ContextVar[Run] = ContextVar("thoughtgate_schema_run")


def search(
    schema: JsonValue, dialect: Dialect, value: JsonValue, run: Run, remotes: Remotes | None = None
) -> tuple[list[ValidationError], bool]:
    """Return the first errors of `value`, and whether the search came to its end.

    The errors are flat (of a union only the branch that was chosen) and carry no message. For
    `required` the argument is the missing name; unknown members are named by their path.
    """
    found: list[ValidationError] = []
    token = _RUN.set(run)
    try:
        engine = _class(dialect)(schema, registry=registry(dialect, remotes))
        for error in engine.iter_errors(value):
            found.append(error)
            if len(found) >= MAX_ERRORS:
                return found, False
    except (Exhausted, RecursionError):
        return found, False
    finally:
        _RUN.reset(token)
    return found, True


@lru_cache(maxsize=16)
def _class(dialect: Dialect) -> Any:
    """Return jsonschema's class for a dialect with our keywords in place of its own."""
    base: Any = dialect.reference
    own: dict[str, Keyword] = {name: _leaf(leaf) for name, leaf in LEAVES.items()}
    own |= _KEYWORDS
    for name in ("items", "additionalItems"):
        if name in base.VALIDATORS:
            own[name] = _unless_false(name, base.VALIDATORS[name])
    for name in REFERENCES:
        if name in base.VALIDATORS:
            own[name] = _remembered(name, base.VALIDATORS[name])
    table = {
        name: _counted(own[name]) if name in LEAVES else _nested(own.get(name, keyword))
        for name, keyword in base.VALIDATORS.items()
    }
    # the new dialects dropped the keyword; the Rust engine enforces it in all, and so do we
    table.setdefault("dependencies", _nested(_dependencies))
    extend: Any = validators.extend  # its stub leaves the arguments untyped
    return extend(base, table)


def _counted(keyword: Keyword) -> Keyword:
    @wraps(keyword)
    def counted(validator: Any, argument: Any, value: Any, schema: Any) -> Errors | None:
        run = _RUN.get()
        run.left -= 1
        if run.left < 0:
            raise Exhausted
        if id(schema) in run.secrets:
            run.hidden.add(id(value))
        return keyword(validator, argument, value, schema)

    return counted


def _nested(keyword: Keyword) -> Keyword:
    inner = _counted(keyword)

    @wraps(keyword)
    def nested(validator: Any, argument: Any, value: Any, schema: Any) -> Errors:
        run = _RUN.get()
        run.nesting += 1
        if run.nesting > MAX_NESTING:
            raise Exhausted
        try:
            yield from inner(validator, argument, value, schema) or ()
        finally:
            run.nesting -= 1

    return nested


def _leaf(leaf: Leaf) -> Keyword:
    def keyword(validator: Any, argument: Any, value: Any, schema: Any) -> Errors:
        return () if leaf(value, argument, schema) else (ValidationError(""),)

    return keyword


def _unless_false(name: str, inner: Keyword) -> Keyword:
    """Say how many items may be; the original prints the rest of them into its message."""
    prefixed_by = "prefixItems" if name == "items" else "items"

    def keyword(validator: Any, argument: Any, value: Any, schema: Any) -> Errors | None:
        if argument is not False or not isinstance(value, list):
            return inner(validator, argument, value, schema)
        prefix = schema.get(prefixed_by) if prefixed_by in validator.VALIDATORS else None
        if name == "additionalItems" and not isinstance(prefix, list):
            return ()
        allowed = len(prefix) if isinstance(prefix, list) else 0
        if len(value) <= allowed:
            return ()
        return (ValidationError("", validator="maxItems", validator_value=allowed),)

    return keyword


def _remembered(name: str, inner: Keyword) -> Keyword:
    def keyword(validator: Any, argument: Any, value: Any, schema: Any) -> Errors:
        seen = _RUN.get().seen
        if seen is None:
            yield from inner(validator, argument, value, schema) or ()
            return
        place = (f"{name} {argument}", id(value))
        if place not in seen:
            found = islice(inner(validator, argument, value, schema) or (), MAX_ERRORS)
            seen[place] = [_copy(error) for error in found]
        yield from map(_copy, seen[place])

    return keyword


def _copy(error: ValidationError) -> ValidationError:
    """Copy an error: on its way up each keyword lengthens the path of the one it was given."""
    return ValidationError(
        "",
        validator=error.validator,
        validator_value=error.validator_value,
        instance=error.instance,
        schema=error.schema,
        path=error.relative_path,
    )


def _format(validator: Any, name: Any, value: Any, schema: Any) -> Errors:
    if _RUN.get().formats and not follows_format(value, name):
        yield ValidationError("")


def _required(validator: Any, names: Any, value: Any, schema: Any) -> Errors:
    if not isinstance(value, dict) or not isinstance(names, list):
        return
    for name in names:
        if name not in value:
            yield ValidationError("", validator_value=name)
        elif value[name] is None:
            _RUN.get().wanted.add((id(value), name))


def _properties(validator: Any, declared: Any, value: Any, schema: Any) -> Errors:
    if not isinstance(value, dict):
        return
    for name, part in declared.items():
        if name in value:
            if value[name] is None:
                _RUN.get().optional.add((id(value), name))
            yield from validator.descend(value[name], part, path=name)


def _pattern_properties(validator: Any, patterns: Any, value: Any, schema: Any) -> Errors:
    if not isinstance(value, dict):
        return
    for pattern, part in patterns.items():
        for name in filter(matcher(pattern), value):
            yield from validator.descend(value[name], part, path=name)


def _additional_properties(validator: Any, part: Any, value: Any, schema: Any) -> Errors:
    if not isinstance(value, dict) or part is True:
        return
    declared = schema.get("properties", {})
    patterns = [matcher(pattern) for pattern in schema.get("patternProperties", ())]
    for name in value:
        if name in declared or any(matches(name) for matches in patterns):
            continue
        yield from _unknown(validator, part, value, name)


def _unevaluated_properties(validator: Any, part: Any, value: Any, schema: Any) -> Errors:
    if not isinstance(value, dict):
        return
    known = evaluated_properties(validator, value, top=True)
    for name in value:
        if name not in known:
            yield from _unknown(validator, part, value, name)


def _unevaluated_items(validator: Any, part: Any, value: Any, schema: Any) -> Errors:
    if not isinstance(value, list):
        return
    known = evaluated_items(validator, value, top=True)
    for index, item in enumerate(value):
        if index not in known:
            yield from (
                _unknown(validator, part, value, index)
                if part is False
                else (validator.descend(item, part, path=index))
            )


def _property_names(validator: Any, part: Any, value: Any, schema: Any) -> Errors:
    if not isinstance(value, dict):
        return
    engine = validator.evolve(schema=part)
    for name in value:
        if not engine.is_valid(name):
            yield ValidationError("", instance=name, path=[name])


def _unknown(validator: Any, part: Any, value: Any, name: str | int) -> Errors:
    if part is False:
        yield ValidationError("", instance=value[name], path=[name])
    else:
        yield from validator.descend(value[name], part, path=name)


def _branches(
    validator: Any, parts: Any, value: Any
) -> Iterator[tuple[int, list[ValidationError]]]:
    for index, part in enumerate(parts):
        if part is False:
            yield index, [ValidationError("", validator="false", instance=value, schema=part)]
        else:
            yield index, list(islice(validator.descend(value, part), MAX_ERRORS))


def _any_of(validator: Any, parts: Any, value: Any, schema: Any) -> Errors:
    refused = []
    for _, branch in _branches(validator, parts, value):
        if not branch:
            return
        refused.append(branch)
    yield from choose("anyOf", value, refused)


def _one_of(validator: Any, parts: Any, value: Any, schema: Any) -> Errors:
    refused, accepted = [], []
    for index, branch in _branches(validator, parts, value):
        if branch:
            refused.append(branch)
        else:
            accepted.append(index)
    if not accepted:
        yield from choose("oneOf", value, refused)
    elif len(accepted) > 1:
        yield ValidationError("", validator_value=tuple(accepted))


def _not(validator: Any, part: Any, value: Any, schema: Any) -> Errors:
    if validator.evolve(schema=part).is_valid(value):
        yield ValidationError("")


def _contains(validator: Any, part: Any, value: Any, schema: Any) -> Errors:
    if not isinstance(value, list):
        return
    counts = "dependentRequired" in validator.VALIDATORS
    least = schema.get("minContains", 1) if counts else 1
    most = schema.get("maxContains", len(value)) if counts else len(value)
    engine = validator.evolve(schema=part)
    matches = sum(engine.is_valid(item) for item in value)
    if matches > most:
        yield ValidationError("", validator="maxContains", validator_value=most)
    elif matches < least:
        yield ValidationError("", validator="minContains", validator_value=least)


def _dependencies(validator: Any, wanted: Any, value: Any, schema: Any) -> Errors:
    if not isinstance(value, dict) or not isinstance(wanted, dict):
        return
    for name, dependency in wanted.items():
        if name not in value:
            continue
        if isinstance(dependency, list):
            for other in dependency:
                if other not in value:
                    yield ValidationError("", validator="required", validator_value=other)
        else:
            yield from validator.descend(value, dependency)


_KEYWORDS: Final[dict[str, Keyword]] = {
    "format": _format,
    "required": _required,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "propertyNames": _property_names,
    "additionalProperties": _additional_properties,
    "unevaluatedProperties": _unevaluated_properties,
    "unevaluatedItems": _unevaluated_items,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "contains": _contains,
    "dependencies": _dependencies,
}
