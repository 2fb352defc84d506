"""Views of a schema for clients and providers, and the way back to true arguments."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.servers import Era
from thoughtgate.schema.checks import Check
from thoughtgate.schema.limit_gemini import MAX_NODES
from thoughtgate.schema.limits import Profile, limit, limit_output
from thoughtgate.schema.registration import admit
from thoughtgate.schema.structure import parts

UNION: dict[str, Any] = {
    "type": "object",
    "properties": {"mode": {"type": "string"}},
    "oneOf": [
        {"properties": {"a": {"type": "string"}, "c": {"type": "null"}}, "required": ["a", "x"]},
        {"properties": {"b": {"type": "string"}, "c": {"type": "string"}}, "required": ["b", "x"]},
    ],
}
KEYS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "StartTime<": {"type": "string"},
        "uids[]": {"type": "array", "items": {"$ref": "#/$defs/deep"}},
        "x" * 65: {"type": "integer"},
        "plain.key-1": {"type": "string"},
    },
    "required": ["StartTime<", "plain.key-1"],
    "dependentRequired": {"uids[]": ["StartTime<"]},
    "$defs": {"deep": {"type": "object", "properties": {"é": {"type": "string"}}}},
}
STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "q": {"type": "string"},
        "limit": {"type": "integer", "default": 5},
        "sort": {"enum": ["a", "b"], "type": "string"},
        "note": {"type": ["string", "null"]},
        "tags": {"type": "array"},
        "where": {"$ref": "#/$defs/where"},
        "pick": {"oneOf": [{"$ref": "#/$defs/where"}, {"type": "object", "properties": {}}]},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["q"],
    "$defs": {"where": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "root": {"$ref": "#/$defs/node"},
        "ids": {"type": ["array", "null"], "items": {"type": "string"}},
        "size": {"enum": [1, 2], "description": "How big."},
        "unit": {"const": "m"},
        "either": {"type": ["string", "integer"]},
        "when": {"type": "string", "format": "date"},
        "opt": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "both": {"allOf": [{"properties": {"a": {"type": "string"}}}, {"required": ["a"]}]},
    },
    "additionalProperties": False,
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "integer"}},
        }
    },
}
ALL = [UNION, KEYS, STRICT, TREE, {"type": "object"}]


def every(schema: JsonValue) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for part in parts(schema):
            yield from every(part.schema)


@pytest.mark.parametrize("schema", ALL)
@pytest.mark.parametrize("profile", list(Profile))
def test_every_view_is_a_schema_of_type_object_and_leaves_the_original(
    schema: JsonObject, profile: Profile
) -> None:
    before = repr(schema)

    shown = limit(schema, profile).schema

    admit({k: v for k, v in shown.items() if k != "nullable"})
    assert shown["type"] == "object"
    assert repr(schema) == before


def test_the_default_view_is_the_schema_itself() -> None:
    limited = limit(UNION, Profile.MCP)
    arguments = {"a": "1"}

    assert limited.schema is UNION
    assert limited.to_true(arguments) is arguments


@pytest.mark.parametrize("profile", [p for p in Profile if p is not Profile.MCP])
def test_a_root_union_is_folded_and_its_members_stay_visible(profile: Profile) -> None:
    limited = limit(UNION, profile)

    assert not {"oneOf", "anyOf", "allOf"} & limited.schema.keys()
    assert set(limited.schema["properties"]) >= {"mode", "a", "b", "c"}
    assert limited.notes
    if profile is Profile.ANTHROPIC:
        assert limited.schema["required"] == ["x"]
        assert limited.schema["properties"]["c"] == {
            "anyOf": [{"type": "null"}, {"type": "string"}]
        }


def test_a_root_reference_and_all_of_are_joined() -> None:
    schema = {
        "$ref": "#/$defs/a",
        "allOf": [{"properties": {"y": {"type": "null"}}, "required": ["y"]}],
        "$defs": {"a": {"type": "object", "properties": {"x": {}}, "required": ["x"]}},
    }

    shown = limit(schema, Profile.ANTHROPIC).schema

    assert set(shown["properties"]) == {"x", "y"}
    assert sorted(shown["required"]) == ["x", "y"]
    assert "$ref" not in shown


def test_foreign_keys_get_aliases_that_lead_back() -> None:
    limited = limit(KEYS, Profile.ANTHROPIC)
    names = [name for part in every(limited.schema) for name in part.get("properties", {})]
    alias = {name.split("_")[0]: name for name in limited.schema["properties"]}
    (inner,) = limited.schema["$defs"]["deep"]["properties"]

    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in names)
    assert limited.schema["required"] == [alias["StartTime"], "plain.key-1"]
    assert limited.schema["dependentRequired"] == {alias["uids"]: [alias["StartTime"]]}
    given = {alias["StartTime"]: "1", alias["uids"]: [{inner: "2", "free<": 3}], "plain.key-1": ""}
    assert limited.to_true(given) == {
        "StartTime<": "1",
        "uids[]": [{"é": "2", "free<": 3}],
        "plain.key-1": "",
    }


def test_names_that_would_share_an_alias_do_not() -> None:
    schema = {"type": "object", "properties": {"a<": {}, "a>": {}, "a_": {}}}

    assert len(limit(schema, Profile.ANTHROPIC).schema["properties"]) == 3


def test_openai_gets_properties_and_items() -> None:
    shown = limit({"type": "object"}, Profile.OPENAI).schema
    arrays = limit(STRICT, Profile.OPENAI).schema

    assert shown == {"type": "object", "properties": {}}
    assert arrays["properties"]["tags"] == {"type": "array", "items": {}}


def test_a_strict_view_requires_everything_and_closes_every_object() -> None:
    limited = limit(STRICT, Profile.OPENAI_STRICT)

    for part in every(limited.schema):
        assert "oneOf" not in part
        assert "default" not in part
        if "properties" in part:
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
    shown = limited.schema["properties"]
    assert shown["q"] == {"type": "string"}
    assert shown["limit"] == {"type": ["integer", "null"]}
    assert shown["sort"] == {"enum": ["a", "b", None], "type": ["string", "null"]}
    assert shown["where"] == {"anyOf": [{"$ref": "#/$defs/where"}, {"type": "null"}]}
    assert limited.notes


def test_the_nulls_of_a_strict_view_are_taken_out_again() -> None:
    limited = limit(STRICT, Profile.OPENAI_STRICT)
    given: dict[str, Any] = {
        "q": "x",
        "limit": None,
        "sort": None,
        "note": None,
        "tags": [],
        "where": {"city": None},
        "pick": {"city": None},
        "map": None,
    }

    true = limited.to_true(given)

    assert true == {"q": "x", "note": None, "tags": [], "where": {}, "pick": {}}
    assert Check(STRICT).is_valid({k: v for k, v in true.items() if k != "pick"})


def test_gemini_gets_no_references_type_lists_or_foreign_keywords() -> None:
    limited = limit(TREE, Profile.GEMINI)

    for part in every(limited.schema):
        assert not {"$ref", "$defs", "additionalProperties", "const", "default"} & part.keys()
        assert isinstance(part.get("type", ""), str)
        assert all(isinstance(option, str) for option in part.get("enum", []))
    shown = limited.schema["properties"]
    assert shown["ids"] == {"type": "array", "items": {"type": "string"}, "nullable": True}
    assert shown["size"] == {"description": "How big. One of: 1, 2."}
    assert shown["unit"] == {"enum": ["m"], "type": "string"}
    assert shown["either"] == {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    assert shown["when"] == {"type": "string"}
    assert shown["opt"] == {"type": "string", "nullable": True}
    assert shown["both"] == {"properties": {"a": {"type": "string"}}, "required": ["a"]}


def test_recursion_is_cut_where_it_begins_again() -> None:
    limited = limit(TREE, Profile.GEMINI)

    node = limited.schema["properties"]["root"]
    assert node["properties"]["next"] == {"type": "object"}
    assert limited.notes


def test_inlining_is_bounded_in_size() -> None:
    """Each level names the next one twice: 2^20 copies without a bound."""
    defs: dict[str, Any] = {
        f"d{i}": {"properties": {name: {"$ref": f"#/$defs/d{i + 1}"} for name in "ab"}}
        for i in range(20)
    }
    defs["d20"] = {"type": "string"}
    schema = {"type": "object", "properties": {"r": {"$ref": "#/$defs/d0"}}, "$defs": defs}

    assert sum(1 for _ in every(limit(schema, Profile.GEMINI).schema)) <= MAX_NODES


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "object", "properties": {}}, True),
        ({"type": "array"}, False),
        ({"$ref": "#/$defs/a", "$defs": {"a": {}}}, False),
        (True, False),
        (None, False),
    ],
)
def test_old_clients_see_output_schemas_of_type_object_only(schema: JsonValue, shown: bool) -> None:
    assert (limit_output(schema, Era.HANDSHAKE) is not None) is shown
    if isinstance(schema, dict):
        assert limit_output(schema, Era.STATELESS) is schema
