"""Words of a command line become what the tool takes."""

import pytest

from thoughtgate.cli.words import values_of
from thoughtgate.core.json import JsonValue

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
MAYBE = {"type": ["string", "null"]}
CHOICE = {"anyOf": [{"type": "string"}, {"type": "integer"}]}


@pytest.mark.parametrize(
    ("word", "schema", "value"),
    [
        ("5", TEXT, "5"),
        ("true", TEXT, "true"),
        ("{}", TEXT, "{}"),
        ('"5"', TEXT, "5"),
        ("five", TEXT, "five"),
        ("5", NUMBER, 5),
        ("null", MAYBE, None),
        ("5", MAYBE, "5"),
        ("5", CHOICE, 5),
        ("5.5", CHOICE, "5.5"),
        ("5", {}, 5),
        ("5", True, 5),
        ("five", NUMBER, "five"),
        ("[1", TEXT, "[1"),
    ],
)
def test_a_word_is_text_where_only_text_fits(
    word: str, schema: JsonValue, value: JsonValue
) -> None:
    assert values_of({"x": word}, {"properties": {"x": schema}}) == {"x": value}


def test_a_word_for_what_no_schema_names_is_json_or_text() -> None:
    assert values_of({"x": "5", "y": "five"}, {}) == {"x": 5, "y": "five"}
