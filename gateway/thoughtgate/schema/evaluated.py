"""Which members and items a schema has looked at, for `unevaluatedProperties` and `…Items`.

Never runs quadratic in the value and never uses Python's `re`.
"""

from collections.abc import Iterator
from typing import Any

from referencing.jsonschema import lookup_recursive_ref

from thoughtgate.core.json import JsonValue
from thoughtgate.schema.patterns import matcher


def evaluated_properties(validator: Any, value: dict[str, JsonValue], *, top: bool) -> set[str]:
    """Return the members of `value` that the validator's schema has evaluated.

    `top` marks the schema whose own `unevaluatedProperties` is being judged.
    """
    schema = validator.schema
    if not isinstance(schema, dict):
        return set()
    if "additionalProperties" in schema or ("unevaluatedProperties" in schema and not top):
        return set(value)
    names: set[str] = schema.get("properties", {}).keys() & value.keys()
    for pattern in schema.get("patternProperties", ()):
        names.update(filter(matcher(pattern), value))
    for inner in _applied(validator, value):
        names |= evaluated_properties(inner, value, top=False)
    return names


def evaluated_items(validator: Any, value: list[JsonValue], *, top: bool) -> set[int]:
    """Return the indexes of `value` that the validator's schema has evaluated."""
    schema = validator.schema
    if not isinstance(schema, dict):
        return set()
    items = schema.get("items")
    rest = items is not None and not isinstance(items, list)
    if rest or (isinstance(items, list) and "additionalItems" in schema):
        return set(range(len(value)))
    if "unevaluatedItems" in schema and not top:
        return set(range(len(value)))
    prefix = items if isinstance(items, list) else schema.get("prefixItems", ())
    indexes = set(range(min(len(prefix), len(value))))
    if "contains" in schema and "$recursiveRef" not in validator.VALIDATORS:
        # since 2020-12 what `contains` matches is evaluated; 2019-09 says nothing of it
        contained = validator.evolve(schema=schema["contains"])
        indexes.update(i for i, item in enumerate(value) if contained.is_valid(item))
    for inner in _applied(validator, value):
        indexes |= evaluated_items(inner, value, top=False)
    return indexes


def _applied(validator: Any, value: JsonValue) -> Iterator[Any]:
    """Yield validators of what the schema applies to the same value and what accepts it.

    What must accept it anyway (`$ref`, `allOf`, …) is not asked: when it refuses, the value is
    invalid whatever was evaluated.
    """
    schema = validator.schema
    yield from _referenced(validator)
    for keyword in ("anyOf", "oneOf"):
        for part in schema.get(keyword, ()):
            inner = validator.evolve(schema=part)
            if inner.is_valid(value):
                yield inner
    yield from (validator.evolve(schema=part) for part in schema.get("allOf", ()))
    if isinstance(value, dict):
        for name, part in schema.get("dependentSchemas", {}).items():
            if name in value:
                yield validator.evolve(schema=part)
    if "if" in schema:
        condition = validator.evolve(schema=schema["if"])
        holds = condition.is_valid(value)
        if holds:
            yield condition
        branch = "then" if holds else "else"
        if branch in schema:
            yield validator.evolve(schema=schema[branch])


def _referenced(validator: Any) -> Iterator[Any]:
    schema = validator.schema
    # jsonschema offers no public way to ask where a reference leads during a validation
    resolver = validator._resolver  # noqa: SLF001  # see above
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema and keyword in validator.VALIDATORS:
            found = resolver.lookup(schema[keyword])
            yield validator.evolve(schema=found.contents, _resolver=found.resolver)
    if "$recursiveRef" in schema and "$recursiveRef" in validator.VALIDATORS:
        found = lookup_recursive_ref(resolver)
        yield validator.evolve(schema=found.contents, _resolver=found.resolver)
