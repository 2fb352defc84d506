"""What a schema must be like before it is registered, rule by rule."""

from typing import Any

import pytest

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonValue
from thoughtgate.schema.checks import Check
from thoughtgate.schema.dialects import DIALECTS, Dialect, dialect_of
from thoughtgate.schema.lint import inspect
from thoughtgate.schema.registration import admit, normalise_input


def rule_of(schema: JsonValue) -> tuple[str, str]:
    with pytest.raises(SchemaRejected) as caught:
        admit(schema, where="input schema")
    assert caught.value.message.startswith("input schema: ")
    return caught.value.rule, caught.value.pointer


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


def chain(length: int) -> dict[str, Any]:
    steps = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}]} for i in range(length)}
    return {"$defs": {**steps, f"d{length}": {"type": "object"}}, "$ref": "#/$defs/d0"}


def doubling(levels: int, *, deeper: bool) -> dict[str, Any]:
    """Return a schema whose anyOf doubles the paths on each level, in place or member by member."""
    steps: dict[str, Any] = {f"d{levels}": {"type": "string"}}
    for i in range(levels):
        target = {"$ref": f"#/$defs/d{i + 1}"}
        steps[f"d{i}"] = {"anyOf": [{"properties": {"c": target}} if deeper else target] * 2}
    return {"$defs": steps, "$ref": "#/$defs/d0"}


def unevaluated(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {"a": True}}
    for _ in range(levels):
        schema = {"allOf": [schema], "unevaluatedProperties": False}
    return schema


REFUSED: list[tuple[JsonValue, tuple[str, str]]] = [
    ([], ("not_a_schema", "")),
    ("string", ("not_a_schema", "")),
    (nested(64), ("too_deep", "")),
    ({"description": "x" * 262_144}, ("too_large", "")),
    ({"default": float("nan")}, ("not_json", "")),
    ({"title": "\ud800"}, ("not_json", "")),
    ({"properties": {f"p{i}": {} for i in range(2_000)}}, ("too_many_subschemas", "")),
    ({"anyOf": [True] * 2_000}, ("too_many_subschemas", "")),
    (chain(32), ("composition_depth", "/$defs/d0")),
    (doubling(13, deeper=False), ("composition_paths", "/$defs/d0")),
    (doubling(17, deeper=True), ("composition_paths", "")),
    (unevaluated(8), ("composition_paths", "")),
    ({"$ref": "#"}, ("reference_loop", "")),
    ({"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}, ("reference_loop", "/$defs/a/not")),
    (
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        ("reference_loop", "/$defs/b/anyOf/0"),
    ),
    ({"$ref": "#/$defs/a"}, ("dangling_reference", "/$ref")),
    ({"$ref": "#nowhere"}, ("dangling_reference", "/$ref")),
    ({"$ref": "#/required", "required": ["a"]}, ("dangling_reference", "/$ref")),
    (
        {"allOf": [{}], "properties": {"a": {"$ref": "#/allOf/-1"}}},
        ("dangling_reference", "/properties/a/$ref"),
    ),
    ({"properties": {"a": {"$ref": 5}}}, ("remote_reference", "/properties/a/$ref")),
    ({"properties": {"a": {"$id": "http://example.com/"}}}, ("changed_base", "/properties/a/$id")),
    ({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}}, ("duplicate_anchor", "/$defs/b")),
    ({"$schema": "http://json-schema.org/draft-03/schema#"}, ("unknown_dialect", "/$schema")),
    ({"$schema": 7}, ("unknown_dialect", "/$schema")),
    ({"items": {"$schema": "http://example.com/"}}, ("unknown_dialect", "/items/$schema")),
    ({"properties": {"a": {"pattern": "("}}}, ("pattern", "/properties/a/pattern")),
    ({"properties": {"a": {"pattern": "(" * 500}}}, ("pattern", "/properties/a/pattern")),
    ({"pattern": "((a{100}){100}){100}"}, ("pattern", "/pattern")),
    ({"patternProperties": {"[": {}}}, ("pattern", "/patternProperties/[")),
    ({"properties": {"city": {"type": "strng"}}}, ("metaschema", "/properties/city/type")),
    ({"minimum": "3"}, ("metaschema", "/minimum")),
    ({"properties": []}, ("metaschema", "/properties")),
    ({"required": "a"}, ("metaschema", "/required")),
    # only a reference leads there, where the meta-schema does not look by itself
    ({"$ref": "#/x/y", "x": {"y": {"type": "strng"}}}, ("metaschema", "/type")),
]


@pytest.mark.parametrize(("schema", "wanted"), REFUSED)
def test_a_schema_that_breaks_a_rule_is_refused_with_the_rule_and_the_place(
    schema: JsonValue, wanted: tuple[str, str]
) -> None:
    assert rule_of(schema) == wanted


@pytest.mark.parametrize(
    "schema",
    [
        True,
        False,
        {},
        nested(63),
        chain(31),
        doubling(12, deeper=False),
        doubling(16, deeper=True),
        unevaluated(7),
        {"properties": {f"p{i}": {} for i in range(1_999)}},
        {"properties": {"$ref": {"type": "string"}, "$id": {}, "$schema": {}}},
        {"const": {"$ref": "http://example.com/"}, "default": {"$id": "x"}},
        {"enum": [{"$ref": "nowhere"}], "examples": [{"$schema": "x"}]},
        {"$id": "https://example.com/tool.json", "$ref": "#/$defs/a", "$defs": {"a": {}}},
        {"$ref": "#a", "$defs": {"x": {"$anchor": "a"}}},
        {"$ref": "#/$defs/a~1b%20c~0", "$defs": {"a/b c~": {"type": "string"}}},
        {
            "definitions": {"a": {"type": "object"}},
            "properties": {"x": {"$ref": "#/definitions/a"}},
        },
        {"properties": {"child": {"$ref": "#"}}},
        {"items": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"}},
        {"pattern": "^(?=.*[A-Z]).{8,}$"},
        {"pattern": r"^\p{Letter}+$"},
    ],
)
def test_a_schema_within_the_rules_is_taken(schema: JsonValue) -> None:
    admit(schema)
    Check(schema)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_a_dialect_is_known_in_all_its_spellings(dialect: Dialect) -> None:
    bare = dialect.uri.rstrip("#").split("://")[1]

    for spelling in (f"http://{bare}", f"https://{bare}", f"https://{bare}#", f" http://{bare}# "):
        assert dialect_of({"$schema": spelling}) is dialect


def test_a_schema_without_a_dialect_is_2020_12() -> None:
    assert dialect_of({}).name == dialect_of(True).name == "draft2020-12"


def test_a_declared_dialect_decides_what_keywords_mean() -> None:
    draft4 = {"minimum": 0, "exclusiveMinimum": True}
    tuples = {"items": [{"type": "string"}], "additionalItems": False}

    assert not Check({"$schema": "https://json-schema.org/draft-04/schema", **draft4}).is_valid(0)
    assert not Check({"$schema": "http://json-schema.org/draft-07/schema", **tuples}).is_valid([
        "a",
        "b",
    ])
    for schema in (draft4, tuples):
        with pytest.raises(SchemaRejected):
            admit(schema)


def test_what_engines_see_has_no_name_that_could_change_dialect_or_base() -> None:
    """Both engines would switch to the class that `$schema` names, ours would be lost."""
    draft7 = "http://json-schema.org/draft-07/schema#"
    seen = inspect({"$schema": draft7, "$id": "x", "items": {"$schema": draft7, "type": "null"}})

    assert seen.prepared == {"items": {"type": "null"}}


@pytest.mark.parametrize("given", [None, True, {}])
def test_a_missing_input_schema_reads_as_any_object(given: JsonValue) -> None:
    assert normalise_input(given) == {"type": "object"}


def test_the_type_of_an_input_schema_is_added_and_the_original_stays() -> None:
    original = {"properties": {"a": {"type": "string"}}}

    assert normalise_input(original) == {"type": "object", **original}
    assert original == {"properties": {"a": {"type": "string"}}}
    assert normalise_input({"type": ["object", "null"]}) == {"type": "object"}


def test_an_input_schema_with_its_type_is_passed_on_as_it_is() -> None:
    original = {"type": "object", "x-own": 1}

    assert normalise_input(original) is original


@pytest.mark.parametrize("given", [False, [], "x", {"type": "string"}, {"type": ["null"]}])
def test_an_input_schema_that_takes_no_object_is_refused(given: JsonValue) -> None:
    with pytest.raises(SchemaRejected) as caught:
        normalise_input(given)
    assert caught.value.rule == "input_not_object"
