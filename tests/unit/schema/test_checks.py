"""Compiled once per digest, bounded in number, and one with its explanation."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonValue, digest
from thoughtgate.schema.checks import Check, Checks, compiled
from thoughtgate.schema.lint import inspect
from thoughtgate.schema.reference import Run, search
from thoughtgate.schema.repair import drop_nulls

INTEGER = {"type": "integer"}


def test_a_schema_is_compiled_once_per_key() -> None:
    key = digest(INTEGER)

    assert compiled(key, INTEGER) is compiled(key, {"type": "integer"})


def test_asserting_formats_is_another_check() -> None:
    store = Checks()

    assert store.compiled("k", INTEGER) is not store.compiled("k", INTEGER, formats=True)


def test_only_the_checks_used_last_are_kept() -> None:
    store = Checks(capacity=2)
    first = store.compiled("1", INTEGER)
    second = store.compiled("2", INTEGER)
    store.compiled("1", INTEGER)
    store.compiled("3", INTEGER)

    assert len(store) == 2
    assert store.compiled("1", INTEGER) is first
    assert store.compiled("2", INTEGER) is not second


def test_a_schema_that_the_lint_refuses_is_never_compiled() -> None:
    store = Checks()

    with pytest.raises(SchemaRejected):
        store.compiled("k", {"$ref": "#"})
    assert len(store) == 0


LEAVES: list[JsonValue] = [
    True,
    False,
    {},
    {"type": "string", "minLength": 2},
    {"type": ["integer", "null"], "minimum": 0},
    {"enum": ["a", 1, None, [1.0]]},
    {"const": {"a": 1}},
    {"multipleOf": 0.01},
    {"pattern": r"^\p{L}+$"},
    {"uniqueItems": True, "minItems": 1},
]


def _wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    lists = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": names,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=2),
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "propertyNames": inner,
            "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
            "dependencies": st.dictionaries(st.sampled_from("ab"), inner, max_size=1),
            "items": inner,
            "prefixItems": lists,
            "contains": inner,
            "unevaluatedItems": inner,
            "anyOf": lists,
            "oneOf": lists,
            "allOf": lists,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
        },
    )


schemas = st.recursive(st.sampled_from(LEAVES), _wider, max_leaves=8)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([10**30, 0.07, 19.99, 1e300, -0.0, 2.0])
    | st.text("ab3é \n", max_size=3)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=100)
@given(schema=schemas, value=values)
def test_there_are_problems_exactly_when_a_value_is_not_valid(
    schema: JsonValue, value: JsonValue
) -> None:
    try:
        check = Check(schema)
    except SchemaRejected:
        return
    problems = check.problems(value)

    assert (problems == ()) is check.is_valid(value)
    assert len(problems) <= 10
    assert all(len(problem.got_preview) <= 80 for problem in problems)


@settings(max_examples=100)
@given(schema=schemas, value=values)
def test_the_reporter_alone_comes_to_the_same_verdict(schema: JsonValue, value: JsonValue) -> None:
    try:
        seen = inspect(schema)
    except SchemaRejected:
        return
    errors, finished = search(seen.prepared, seen.dialect, value, Run())

    assert finished or errors
    assert (errors == []) is Check(schema).is_valid(value)


@settings(max_examples=100)
@given(schema=schemas, value=values)
def test_dropping_nulls_never_changes_a_valid_value_nor_anything_but_nulls(
    schema: JsonValue, value: JsonValue
) -> None:
    try:
        check = Check(schema)
    except SchemaRejected:
        return
    new, pointers = drop_nulls(value, schema, check)

    if check.is_valid(value):
        assert new is value
    assert _without(value, pointers) == new
    assert drop_nulls(new, schema, check)[0] == new


def _without(value: JsonValue, pointers: tuple[str, ...], place: str = "") -> JsonValue:
    if isinstance(value, list):
        return [_without(item, pointers, f"{place}/{i}") for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    gone = {name for name in value if f"{place}/{name}" in pointers}
    assert all(value[name] is None for name in gone)
    return {
        name: _without(item, pointers, f"{place}/{name}")
        for name, item in value.items()
        if name not in gone
    }
