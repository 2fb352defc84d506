"""Header values and mirrored arguments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonValue
from thoughtgate.wire.headers import (
    ParamHeader,
    decode_value,
    encode_value,
    mirrored,
    mismatch,
    param_headers,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "opts": {
            "type": "object",
            "properties": {"n": {"type": "integer", "x-mcp-header": "N"}},
        },
        "flag": {"type": "boolean", "x-mcp-header": "X-Flag"},
        "default": {"default": {"x-mcp-header": "not a schema"}},
    },
}
WANTED = mirrored(SCHEMA)


@given(st.text())
def test_a_value_survives_its_header(value: str) -> None:
    sent = encode_value(value)
    assert sent.isascii()
    assert sent == sent.strip()
    assert decode_value(sent) == value


@pytest.mark.parametrize("sent", ["=?base64?!!?=", "=?base64?eB==?=", "=?base64?/w==?="])
def test_a_broken_wrapper_is_no_value(sent: str) -> None:
    assert decode_value(sent) is None


def test_mirrored_arguments_are_found_where_they_stand() -> None:
    assert set(WANTED) == {
        ParamHeader(path=("region",), header="mcp-param-region", type="string"),
        ParamHeader(path=("opts", "n"), header="mcp-param-n", type="integer"),
        ParamHeader(path=("flag",), header="mcp-param-x-flag", type="boolean"),
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"x-mcp-header": "Root"},
        {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
        {"properties": {"a": {"x-mcp-header": "A"}}},
        {"properties": {"a": {"type": ["string"], "x-mcp-header": "A"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "no space"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": ""}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": 10**9}}},
        {"anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]},
        {"$defs": {"a": {"type": "string", "x-mcp-header": "A"}}},
        {"properties": {"a": {"items": {"type": "string", "x-mcp-header": "A"}}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "A"},
                        "b": {"type": "string", "x-mcp-header": "a"}}},
    ],
)  # fmt: skip
def test_a_forbidden_annotation_is_refused(schema: JsonValue) -> None:
    with pytest.raises(SchemaRejected):
        mirrored(schema)


@pytest.mark.parametrize("schema", [None, True, [], {"properties": []}, {"properties": {"a": 1}}])
def test_a_schema_without_positions_mirrors_nothing(schema: JsonValue) -> None:
    assert mirrored(schema) == ()


ARGUMENTS = {"region": "é", "opts": {"n": 10**30}, "flag": False}


def test_what_we_send_is_what_a_server_wants() -> None:
    sent = param_headers(WANTED, ARGUMENTS)
    assert sent["mcp-param-n"] == str(10**30)
    assert sent["mcp-param-x-flag"] == "false"
    assert mismatch(WANTED, ARGUMENTS, sent) is None
    assert param_headers(WANTED, {"region": None, "opts": 7}) == {}


@pytest.mark.parametrize(
    ("arguments", "sent", "agrees"),
    [
        ({}, {}, True),
        ({"region": None}, {}, True),
        ({"region": "a"}, {}, False),
        ({}, {"mcp-param-region": "a"}, False),
        ({"region": "a"}, {"mcp-param-region": "b"}, False),
        ({"region": ["a"]}, {"mcp-param-region": "a"}, False),
        ({"opts": {"n": 42}}, {"mcp-param-n": "42.0"}, True),
        ({"opts": {"n": 42.0}}, {"mcp-param-n": "42"}, True),
        ({"opts": {"n": 42}}, {"mcp-param-n": "42.5"}, False),
        ({"opts": {"n": 42}}, {"mcp-param-n": "4.2e1"}, False),
        ({"opts": {"n": 2**53 + 1}}, {"mcp-param-n": str(2**53)}, False),
        ({"opts": {"n": True}}, {"mcp-param-n": "1"}, False),
        ({"opts": {"n": 1}}, {"mcp-param-n": "1" * 5000}, False),
        ({"flag": True}, {"mcp-param-x-flag": "True"}, False),
    ],
)
def test_headers_and_arguments_are_there_together_and_equal(
    arguments: JsonValue, sent: dict[str, str], *, agrees: bool
) -> None:
    assert (mismatch(WANTED, arguments, sent) is None) is agrees
