"""Admission: each tool on its own, what is kept of it, and what holds one back."""

import pytest

from thoughtgate.catalog import MAX_DEFINITION, admit
from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonObject, JsonValue, digest
from thoughtgate.core.servers import NullPolicy, ResultPolicy
from thoughtgate.core.tools import Effect
from thoughtgate.testing.values import make_definition, make_listing, make_server


def accept(schema: JsonObject) -> SchemaRejected | None:
    return None


def reject_int(schema: JsonObject) -> SchemaRejected | None:
    wrong = schema.get("properties", {}).get("n", {}).get("type") == "int"
    return (
        SchemaRejected(rule="metaschema", message="no such type", pointer="/x") if wrong else None
    )


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        (["t"], "not_an_object"),
        ({"inputSchema": {"type": "object"}}, "bad_name"),
        (make_definition(""), "bad_name"),
        (make_definition("x" * 129), "bad_name"),
        (make_definition("two words"), "bad_name"),
        (make_definition("s\u0435nd"), "bad_name"),
        (make_definition("line\n"), "bad_name"),
        ({"name": 5, "inputSchema": {"type": "object"}}, "bad_name"),
        (make_definition("t", description=5), "bad_field"),
        (make_definition("t", annotations=[]), "bad_field"),
        (make_definition("t", description="x" * MAX_DEFINITION), "too_large"),
        ({"name": "t", "inputSchema": False}, "input_not_object"),
        ({"name": "t", "inputSchema": {"type": "string"}}, "input_not_object"),
        ({"name": "t", "inputSchema": {"properties": {"n": {"type": "int"}}}}, "metaschema"),
        (make_definition("t", outputSchema=5), "bad_output_schema"),
        (make_definition("t", outputSchema={"properties": {"n": {"type": "int"}}}), "metaschema"),
        (
            make_definition(
                "t",
                inputSchema={
                    "type": "object",
                    "properties": {"a": {"type": "string", "x-mcp-header": "not a token"}},
                },
            ),
            "x-mcp-header",
        ),
        (make_definition("good"), "duplicate_name"),
    ],
)
def test_one_bad_tool_is_held_back_and_the_others_stay(bad: JsonValue, rule: str) -> None:
    listing = make_listing("files", "good", bad, "_also.good")
    part = admit(listing, server=make_server(), effects={}, reject=reject_int)
    assert [tool.name for tool in part.tools] == ["good", "_also.good"]
    assert [held.rule for held in part.quarantined] == [rule]
    assert part.quarantined[0].reason


def test_a_name_that_was_held_back_is_not_taken_by_a_later_tool() -> None:
    listing = make_listing("files", make_definition("t", title=5), "t")
    part = admit(listing, server=make_server(), effects={}, reject=accept)
    assert not part.tools
    assert [held.rule for held in part.quarantined] == ["bad_field", "duplicate_name"]


def test_names_that_differ_only_in_case_are_admitted_with_a_warning() -> None:
    listing = make_listing("files", "Send_email", "send_email")
    part = admit(listing, server=make_server(), effects={}, reject=accept)
    assert len(part.tools) == 2
    assert part.warnings == ("tools Send_email and send_email of files differ only in case",)


def test_the_definition_is_kept_whole_and_pinned_whole() -> None:
    definition = make_definition(
        "t",
        outputSchema={"definitions": {"d": {}}, "$ref": "#/definitions/d"},
        annotations={"title": None, "x-own": [1, {"deep": None}]},
        unknownField={"n": 2**70},
    )
    part = admit(make_listing("files", definition), server=make_server(), effects={}, reject=accept)
    (tool,) = part.tools
    assert tool.definition is definition
    assert tool.output_schema is definition["outputSchema"]
    assert tool.digest == digest(definition)


@pytest.mark.parametrize("schema", [True, {}, None])
def test_a_schema_that_says_nothing_takes_any_object(schema: JsonValue) -> None:
    listing = make_listing("files", {"name": "t", "inputSchema": schema})
    part = admit(listing, server=make_server(), effects={}, reject=accept)
    assert part.tools[0].input_schema == {"type": "object"}


def test_a_missing_schema_takes_any_object() -> None:
    part = admit(
        make_listing("files", {"name": "t"}), server=make_server(), effects={}, reject=accept
    )
    assert part.tools[0].input_schema == {"type": "object"}


@pytest.mark.parametrize(
    ("hints", "trusted", "said", "effect"),
    [
        ({"readOnlyHint": True}, True, None, Effect.READ),
        ({"idempotentHint": True}, True, None, Effect.IDEMPOTENT),
        ({"readOnlyHint": False, "idempotentHint": False}, True, None, Effect.WRITE),
        ({"readOnlyHint": "yes"}, True, None, Effect.WRITE),
        (None, True, None, Effect.WRITE),
        ({"readOnlyHint": True}, False, None, Effect.WRITE),
        ({"readOnlyHint": True}, False, Effect.READ, Effect.READ),
        ({"readOnlyHint": True}, True, Effect.WRITE, Effect.WRITE),
    ],
)
def test_the_effect_is_the_operators_word_then_a_trusted_servers(
    hints: JsonValue, trusted: bool, said: Effect | None, effect: Effect
) -> None:
    listing = make_listing("files", make_definition("t", annotations=hints))
    effects = {} if said is None else {"t": said}
    part = admit(listing, server=make_server(trusted=trusted), effects=effects, reject=accept)
    assert part.tools[0].effect is effect


def test_a_tool_carries_its_servers_policies() -> None:
    server = make_server(
        tags=frozenset({"ops"}),
        results=ResultPolicy.STRICT,
        nulls=NullPolicy.PASS,
        call_timeout=7.0,
    )
    (tool,) = admit(make_listing("files", "t"), server=server, effects={}, reject=accept).tools
    assert (tool.tags, tool.results, tool.nulls, tool.call_timeout) == (
        frozenset({"ops"}),
        ResultPolicy.STRICT,
        NullPolicy.PASS,
        7.0,
    )
