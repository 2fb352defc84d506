"""What callers are told: where, what was expected, what came, and what to do."""

from typing import Any

import pytest

from thoughtgate.core.json import JsonValue
from thoughtgate.core.problems import Problem
from thoughtgate.schema.checks import Check
from thoughtgate.schema.explain import arguments_report, result_report

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "location": {"type": "string"},
        "units": {"enum": ["metric", "imperial"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "tags": {"type": "array", "items": {"type": "string"}},
        "note": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
    },
    "required": ["location"],
    "additionalProperties": False,
}
CARD = {
    "type": "object",
    "properties": {"kind": {"const": "card"}, "number": {"type": "string"}},
    "required": ["kind", "number"],
    "additionalProperties": False,
}
IBAN = {
    "type": "object",
    "properties": {"kind": {"const": "iban"}, "iban": {"type": "string"}},
    "required": ["kind", "iban"],
    "additionalProperties": False,
}
PAYMENT: dict[str, Any] = {
    "properties": {"pay": {"oneOf": [{"$ref": "#/$defs/card"}, {"$ref": "#/$defs/iban"}]}},
    "$defs": {"card": CARD, "iban": IBAN},
}


def problems(schema: JsonValue, value: JsonValue) -> tuple[Problem, ...]:
    return Check(schema).problems(value)


def hint(schema: JsonValue, value: JsonValue) -> str:
    (problem,) = problems({"properties": {"x": schema}}, {"x": value})
    assert problem.pointer == "/x"
    return problem.hint


def expected(schema: JsonValue, value: JsonValue) -> str:
    (problem,) = problems(schema, value)
    return problem.expected


def test_a_report_reads_as_text_and_as_data() -> None:
    report = Check(WEATHER).report({"location": "Bern", "units": "kelvin", "days": "3"})

    text, data = arguments_report("weather", report.problems, digest="sha256:0")

    assert text == (
        "Arguments for 'weather' are invalid (2 problems). "
        '1) /units: got string "kelvin"; expected one of "metric", "imperial". '
        '2) /days: got string "3"; expected integer 1–14. Send 3, not "3".'
    )
    assert data == {
        "code": "invalid_arguments",
        "tool": "weather",
        "problems": [
            {
                "pointer": "/units",
                "keyword": "enum",
                "expected": 'one of "metric", "imperial"',
                "got": {"type": "string", "preview": '"kelvin"'},
            },
            {
                "pointer": "/days",
                "keyword": "type",
                "expected": "integer 1–14",
                "got": {"type": "string", "preview": '"3"'},
                "hint": 'send 3, not "3"',
            },
        ],
        "truncated": False,
        "schema_digest": "sha256:0",
    }


def test_a_result_report_blames_the_tool_and_not_the_arguments() -> None:
    report = Check({"type": "object"}).report([])

    text, data = result_report("weather", report.problems, truncated=report.truncated)

    assert data["code"] == "invalid_result"
    assert "do not retry with other arguments" in text


def test_missing_members_come_first_and_unknown_ones_last() -> None:
    found = problems(WEATHER, {"loc": "Bern", "days": 15})

    assert [(problem.pointer, problem.got_type) for problem in found] == [
        ("/location", "absent"),
        ("/days", "integer"),
        ("/loc", "string"),
    ]
    assert found[0].expected == "string (required)"
    assert found[0].hint == 'rename "loc" to "location"'
    assert found[2].expected.startswith('no property of this name (allowed: "location", "units"')
    assert found[2].hint == 'did you mean "location"?'


def test_at_most_ten_problems_are_told_and_the_rest_is_said_to_exist() -> None:
    schema = {"required": [f"r{i}" for i in range(12)]}

    report = Check(schema).report({})
    text, data = arguments_report("t", report.problems, truncated=report.truncated)

    assert len(report.problems) == 10
    assert data["truncated"] is True
    assert "(10 or more problems)" in text


def test_a_place_is_an_escaped_json_pointer() -> None:
    schema = {"properties": {"a/b": {"properties": {"~": {"items": {"type": "null"}}}}}}

    (problem,) = problems(schema, {"a/b": {"~": [None, 1]}})

    assert problem.pointer == "/a~1b/~0/1"


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        ({"type": "integer"}, "3", 'send 3, not "3"'),
        ({"type": "number"}, "3.5", 'send 3.5, not "3.5"'),
        ({"type": "boolean"}, "true", 'send true, not "true"'),
        ({"type": ["integer", "null"]}, "3", 'send 3, not "3"'),
        ({"type": "integer"}, "three", ""),
        ({"type": "integer"}, "3.5", ""),
        ({"type": "string"}, 3, 'send "3", not 3'),
        ({"type": "string"}, True, 'send "true", not true'),
        ({"type": "array"}, '["a"]', "send the JSON array itself, not a string that holds it"),
        ({"type": "object"}, '{"a":1}', "send the JSON object itself, not a string that holds it"),
        ({"type": "object"}, "[1]", ""),
        ({"type": "object"}, "{not json", ""),
        ({"type": "object"}, "[" * 5_000, ""),
        ({"type": "array"}, "a", "send an array, even of one item"),
        ({"type": "array"}, {"a": 1}, "send an array, even of one item"),
        ({"type": "integer"}, None, "omit it instead of null"),
        ({"enum": ["metric", "imperial"]}, "metrik", 'did you mean "metric"?'),
        ({"enum": ["metric", "imperial"]}, " METRIC ", 'did you mean "metric"?'),
        ({"enum": ["metric", "imperial"]}, "kelvin", ""),
        ({"enum": ["SHADE_RED", "SHADE_BLUE"]}, "RED", 'did you mean "SHADE_RED"?'),
        ({"enum": ["FIRST_RED", "OTHER_RED"]}, "RED", ""),
        ({"enum": ["metric", None]}, "kelvin", ""),
        ({"enum": ["metric", None]}, "null", 'send null, not "null"'),
        ({"pattern": "^[0-9]+s$", "description": "Like 3s."}, "x", "it should be: Like 3s"),
        ({"pattern": "^[0-9]+s$", "description": "Long. " * 30}, "x", ""),
        ({"enum": [1, 2]}, "2", 'send 2, not "2"'),
        ({"enum": ["1", "2"]}, 2, 'send "2", not 2'),
        ({"const": "on"}, "On", 'did you mean "on"?'),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "3", 'send 3, not "3"'),
    ],
)
def test_a_hint_says_what_to_send(schema: JsonValue, value: JsonValue, wanted: str) -> None:
    assert hint(schema, value) == wanted


def test_a_null_for_a_required_member_is_not_to_be_omitted() -> None:
    schema = {"properties": {"x": {"type": "string"}}, "allOf": [{"required": ["x"]}]}

    (problem,) = problems(schema, {"x": None})

    assert problem.hint == ""


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        ({"type": "integer", "minimum": 1}, 0, "integer ≥ 1"),
        ({"minimum": 1, "maximum": 5}, 9, "number 1–5"),
        ({"exclusiveMaximum": 5}, 5, "number < 5"),
        ({"multipleOf": 0.01}, 0.005, "a multiple of 0.01"),
        ({"minLength": 1}, "", "at least 1 character"),
        ({"maxLength": 2}, "abc", "at most 2 characters"),
        ({"minItems": 2}, [1], "at least 2 items"),
        ({"maxProperties": 1}, {"a": 1, "b": 2}, "at most 1 property"),
        ({"uniqueItems": True}, [1, 1.0], "items that all differ"),
        ({"pattern": "^a"}, "b", 'text that matches the pattern "^a"'),
        ({"const": {"a": 1}}, 1, "exactly {a}"),
        ({"contains": {"type": "null"}}, [],
         "at least 1 of the items to match what must be contained"),
        ({"prefixItems": [True], "items": False}, [1, 2], "at most 1 item"),
        ({"items": [{}], "additionalItems": False,
          "$schema": "http://json-schema.org/draft-07/schema#"},
         [1, 2], "at most 1 item"),
        ({"not": {"type": "null"}}, None, "a value that the schema does not exclude"),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "a property name that the schema accepts"),
        (False, 1, "nothing here"),
        ({"type": "string", "format": "date"}, 1, 'string in the format date'),
        ({"enum": list(range(30))}, "x",
         "one of " + ", ".join(map(str, range(20))) + " … (10 more)"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1.5, "string or null"),
        ({"anyOf": [{"const": "a"}, {"enum": ["b", "c"]}]}, "z", 'one of "a", "b", "c"'),
        ({"anyOf": [{"type": "integer"}, {"const": "all"}]}, "z", 'integer or exactly "all"'),
        ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 3,
         "exactly one of the alternatives; this matches numbers 1, 2"),
        ({"oneOf": [{"title": "low", "minimum": 1}, {"title": "high", "minimum": 2}]}, 3,
         'exactly one of the alternatives; this matches "low" and "high"'),
        ({"unevaluatedItems": False}, [1], "no item here"),
    ],
)  # fmt: skip
def test_what_was_expected_is_said_in_words(
    schema: JsonValue, value: JsonValue, wanted: str
) -> None:
    assert expected(schema, value) == wanted


def test_a_union_reports_the_branch_that_the_discriminator_names() -> None:
    """The reference's own best match says that kind should be "iban": the wrong member."""
    found = problems(PAYMENT, {"pay": {"kind": "card", "iban": "x"}})

    assert [problem.pointer for problem in found] == ["/pay/number", "/pay/iban"]


def test_a_wrong_discriminator_is_told_with_all_its_options() -> None:
    (problem,) = problems(PAYMENT, {"pay": {"kind": "cart", "number": "1"}})

    assert problem.pointer == "/pay/kind"
    assert problem.expected == 'one of "card", "iban"'
    assert problem.hint == 'did you mean "card"?'


def test_a_missing_discriminator_is_asked_for() -> None:
    (problem,) = problems(PAYMENT, {"pay": {}})

    assert problem.pointer == "/pay/kind"
    assert problem.expected == 'one of "card", "iban" (required)'


def test_an_optional_value_is_held_against_its_one_real_branch() -> None:
    (problem,) = problems(WEATHER, {"location": "x", "note": "too long"})

    assert (problem.pointer, problem.keyword) == ("/note", "maxLength")


def test_a_union_inside_a_union_is_followed_to_its_end() -> None:
    schema = {"anyOf": [{"type": "null"}, {"properties": {"p": PAYMENT["properties"]["pay"]}}]}

    found = problems({**schema, "$defs": PAYMENT["$defs"]}, {"p": {"kind": "iban"}})

    assert [problem.pointer for problem in found] == ["/p/iban"]


def test_previews_show_the_shape_of_what_is_big() -> None:
    for value, preview in [
        ({"a": 1, "b": 2}, "{a, b}"),
        ([1], "[1 item]"),
        ([1, 2], "[2 items]"),
        ("x" * 100, '"' + "x" * 78 + "…"),
        (10**100, "1" + "0" * 78 + "…"),
        ("tab\t", '"tab\\t"'),
    ]:
        (problem,) = problems({"type": "null"}, value)
        assert problem.got_preview == preview


SECRETS: dict[str, Any] = {
    "properties": {
        "password": {"type": "string", "format": "password", "minLength": 99},
        "pin": {"writeOnly": True, "anyOf": [{"type": "integer"}, {"type": "null"}]},
        "token": {"x-sensitive": True, "type": "object", "properties": {"v": {"type": "null"}}},
        "key": {"x-secret": True, "$ref": "#/$defs/key"},
        "plain": {"type": "integer"},
        "all": {"type": "object"},
    },
    "$defs": {"key": {"type": "string"}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "value",
    [
        {"password": "hunter2"},
        {"pin": "hunter2"},
        {"pin": ["hunter2"]},
        {"token": {"v": "hunter2"}},
        {"token": "hunter2"},
        {"pasword": "hunter2"},
        {"all": '{"password": "hunter2"}'},
        "hunter2",
    ],
)
def test_a_secret_never_appears_in_a_report(value: JsonValue) -> None:
    schema = (
        {**SECRETS, "type": "object"} if isinstance(value, dict) else SECRETS["properties"]["pin"]
    )

    text, data = arguments_report("login", problems(schema, value))

    assert "hunter2" not in text + repr(data)
    assert data["problems"]


def test_beside_a_secret_plain_values_are_shown() -> None:
    (problem,) = problems(SECRETS, {"plain": "x"})

    assert problem.got_preview == '"x"'


def test_in_a_big_value_nothing_is_shown_beside_a_secret() -> None:
    """The fast engine does not say what it applied to which member."""
    schema = {**SECRETS, "properties": {**SECRETS["properties"], "many": {"type": "array"}}}

    found = problems(schema, {"many": [0] * 30_000, "password": "hunter2"})

    assert found
    assert all(problem.got_preview == "" for problem in found)
