"""Which nulls are dropped, and that nothing else ever is."""

from typing import Any

import pytest

from thoughtgate.core.json import JsonValue
from thoughtgate.schema.checks import Check
from thoughtgate.schema.repair import drop_nulls

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "nick": {"type": ["string", "null"]},
        "flat": {"$ref": "#/$defs/place"},
        "places": {"type": "array", "items": {"$ref": "#/$defs/place"}},
        "maybe": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]},
        "either": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "object"}]},
        "kind": {"enum": ["a", "b"]},
        "any": {},
    },
    "required": ["name"],
    "$defs": {
        "place": {
            "allOf": [{"properties": {"city": {"type": "string"}, "zip": {"type": "string"}}}],
            "required": ["city"],
        }
    },
}


def dropped(value: JsonValue, schema: JsonValue = PERSON) -> tuple[JsonValue, tuple[str, ...]]:
    return drop_nulls(value, schema, Check(schema))


@pytest.mark.parametrize(
    ("value", "wanted", "pointers"),
    [
        ({"name": "A", "age": None}, {"name": "A"}, ("/age",)),
        ({"name": "A", "age": None, "nick": None}, {"name": "A", "nick": None}, ("/age",)),
        ({"name": "A", "kind": None, "any": None}, {"name": "A", "any": None}, ("/kind",)),
        ({"name": "A", "flat": None}, {"name": "A", "flat": None}, ()),
        (
            {"name": "A", "flat": {"city": "B", "zip": None}},
            {"name": "A", "flat": {"city": "B"}},
            ("/flat/zip",),
        ),
        (
            {"name": "A", "places": [{"city": "B", "zip": None}, {"city": "C", "zip": "1"}]},
            {"name": "A", "places": [{"city": "B"}, {"city": "C", "zip": "1"}]},
            ("/places/0/zip",),
        ),
        (
            {"name": "A", "maybe": {"city": "B", "zip": None}},
            {"name": "A", "maybe": {"city": "B"}},
            ("/maybe/zip",),
        ),
    ],
)
def test_a_null_goes_where_its_member_is_optional_and_refuses_null(
    value: JsonValue, wanted: JsonValue, pointers: tuple[str, ...]
) -> None:
    assert dropped(value) == (wanted, pointers)


@pytest.mark.parametrize(
    "value",
    [
        {"name": None},
        {"name": "A", "flat": {"city": None}},
        {"name": "A", "places": [None]},
        {"name": 1, "unknown": None},
        {"name": "A", "age": "3"},
        {"name": "A", "age": ""},
        {"name": 1, "either": {"city": "B", "zip": None}},
    ],
)
def test_nothing_else_is_repaired(value: JsonValue) -> None:
    """Required members, items, unknown members, other mistakes, and what a union leaves open."""
    new, pointers = dropped(value)

    assert new is value
    assert pointers == ()


def test_a_valid_value_is_passed_on_as_it_is() -> None:
    schema = {"properties": {"a": {"type": "integer"}}, "not": {"required": ["b"]}}
    value = {"c": None}

    assert dropped(value, schema) == (value, ())


def test_the_given_value_is_not_changed() -> None:
    value = {"name": "A", "age": None, "places": [{"city": "B", "zip": None}]}

    dropped(value)

    assert value == {"name": "A", "age": None, "places": [{"city": "B", "zip": None}]}


def test_beside_a_reference_draft_7_ignores_what_stands_there() -> None:
    """`x` beside the `$ref` says nothing in draft 7, so its null is not refused by it."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/a",
        "properties": {"x": {"type": "string"}},
        "definitions": {"a": {"properties": {"y": {"type": "string"}}}},
    }

    assert dropped({"x": None, "y": None}, schema) == ({"x": None}, ("/y",))
