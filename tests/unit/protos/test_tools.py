"""Methods as MCP tools: names, hints, streaming shapes, and schemas that stay within bounds."""

import json
import re

import pytest
from google.protobuf import descriptor_pb2

from tests.support.protos import descriptors
from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonObject, canonical
from thoughtgate.core.servers import Streaming
from thoughtgate.protos import schemas
from thoughtgate.protos.descriptors import Descriptors, Method, decode, encode
from thoughtgate.protos.tools import tool_name, tool_of
from thoughtgate.schema import graph, lint
from thoughtgate.schema.checks import Check
from thoughtgate.schema.dialects import DRAFT_2020_12
from thoughtgate.schema.limits import Profile, limit
from thoughtgate.schema.registration import admit, normalise_input

File = descriptor_pb2.FileDescriptorProto


def tool(name: str, streaming: Streaming = Streaming.ARRAY) -> JsonObject:
    (method,) = (one for one in descriptors().methods("kinds.v1.Kinds") if one.name == name)
    return tool_of(method, descriptors(), streaming=streaming)


def named(service: str, name: str) -> str:
    return tool_name(Method(service=service, name=name, request="", response=""))


def test_a_tool_is_named_after_its_method() -> None:
    assert named("acme.v1.Orders", "Get") == "acme-v1-Orders-Get"


def test_names_that_differ_only_in_dots_and_underscores_stay_apart() -> None:
    assert named("a.b_c.S", "M") != named("a_b.c.S", "M")


def test_a_long_name_keeps_its_end_and_is_the_same_every_time() -> None:
    first = named("a" * 60 + ".Orders", "GetManyOfThem")
    assert first == named("a" * 60 + ".Orders", "GetManyOfThem")
    assert first != named("a" * 61 + ".Orders", "GetManyOfThem")
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", first)
    assert "-Orders-GetManyOfThem-" in first


def test_comments_become_descriptions() -> None:
    echo = tool("Echo")
    assert echo["description"] == "Returns what came."
    assert echo["title"] == "Kinds.Echo"
    properties = echo["inputSchema"]["properties"]
    assert properties["whole_number"]["description"] == "How many."
    colour = echo["inputSchema"]["$defs"]["kinds.v1.Colour"]
    assert colour["description"] == "What a thing is coloured with.\nCOLOUR_RED: Like blood."
    assert properties["old"]["deprecated"] is True


def test_without_comments_a_description_names_the_method() -> None:
    assert tool("Put")["description"] == (
        "Calls Put of the gRPC service kinds.v1.Kinds. Deprecated."
    )


def test_the_idempotency_level_becomes_hints() -> None:
    assert tool("Echo")["annotations"] == {"readOnlyHint": True, "idempotentHint": True}
    assert tool("Put")["annotations"] == {"readOnlyHint": False, "idempotentHint": True}
    assert "annotations" not in tool("Watch")


def test_streams_are_arrays_of_messages() -> None:
    gather, watch, talk = tool("Gather"), tool("Watch"), tool("Talk")
    assert gather["inputSchema"]["required"] == ["messages"]
    assert "messages" not in gather["outputSchema"]["properties"]
    assert "messages" not in watch["inputSchema"]["properties"]
    assert watch["outputSchema"]["required"] == ["messages", "truncated"]
    assert talk["inputSchema"]["required"] == ["messages"]
    assert talk["outputSchema"]["required"] == ["messages", "truncated"]
    for one in (gather, watch, talk):
        admit(one["inputSchema"])
        admit(one["outputSchema"])


def test_of_a_stream_only_the_last_message_may_be_wanted() -> None:
    watch = tool("Watch", Streaming.LAST)
    assert "label" in watch["outputSchema"]["properties"]


def test_a_whole_message_that_is_no_object_stands_under_value() -> None:
    now, guess = tool("Now"), tool("Guess")
    assert now["outputSchema"]["required"] == ["value"]
    assert guess["inputSchema"]["properties"] == {"value": {"type": "string"}}
    wire = encode(descriptors(), "google.protobuf.StringValue", {"value": "a"})
    assert decode(descriptors(), "google.protobuf.StringValue", wire) == {"value": "a"}


def test_a_recursive_message_is_defined_once() -> None:
    schema = descriptors().schemas.accepted(descriptors().message("kinds.v1.Tree"))
    assert sorted(schema["$defs"]) == ["kinds.v1.Leaf", "kinds.v1.Tree"]
    assert schema["properties"]["left"] == {"$ref": "#/$defs/kinds.v1.Tree"}


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("name", ["Scalars", "Choice", "Tree", "Maps", "WellKnown", "Holder"])
def test_every_provider_can_be_shown_the_schema(name: str, profile: Profile) -> None:
    schema = descriptors().schemas.accepted(descriptors().message(f"kinds.v1.{name}"))
    admit(limit(schema, profile).schema)


def test_a_model_is_told_which_members_of_a_oneof_are_too_many() -> None:
    schema = descriptors().schemas.accepted(descriptors().message("kinds.v1.Choice"))
    (problem,) = Check(schema).problems({"text": "a", "small": {}})
    assert problem.expected.endswith('this matches "text" and "small"')


def test_a_number_for_an_enum_is_not_told_to_be_put_in_quotes() -> None:
    schema = descriptors().schemas.accepted(descriptors().message("kinds.v1.Scalars"))
    problems = Check(schema).problems({"colour": 1})
    assert {problem.hint for problem in problems} == {""}
    assert '"COLOUR_RED"' in problems[0].expected


def test_the_limits_are_those_of_a_registered_schema() -> None:
    assert schemas.MAX_SUBSCHEMAS == graph.MAX_SUBSCHEMAS
    assert schemas.MAX_BYTES == lint.MAX_BYTES


def chained(count: int, *, fields: int = 1) -> Descriptors:
    """Return so many messages, each of which holds the next, and the last the first."""
    file = File(name="chain.proto", package="chain", syntax="proto3")
    for number in range(count):
        message = file.message_type.add(name=f"M{number}")
        for index in range(fields):
            message.field.add(
                name=f"f{index}",
                number=index + 1,
                label=1,
                type=11,
                type_name=f".chain.M{(number + 1) % count}",
            )
    file.service.add(name="S").method.add(
        name="Call", input_type=".chain.M0", output_type=".chain.M0"
    )
    return Descriptors.of([file.SerializeToString()])


def test_a_long_circle_of_messages_may_be_registered() -> None:
    held = chained(300)
    (method,) = held.methods("chain.S")
    made = tool_of(method, held, streaming=Streaming.ARRAY)
    admit(made["inputSchema"])
    admit(made["outputSchema"])
    assert len(made["inputSchema"]["$defs"]) == 300


def test_a_method_that_reaches_too_much_becomes_a_tool_that_is_not_admitted_and_says_why() -> None:
    held = chained(10_000)
    (method,) = held.methods("chain.S")
    made = tool_of(method, held, streaming=Streaming.ARRAY)
    assert len(held.schemas.shapes) < 2_001 * 2
    assert "outputSchema" not in made
    with pytest.raises(SchemaRejected) as caught:
        admit(normalise_input(made["inputSchema"]))
    assert "reaches more than 2000 fields" in caught.value.message


def test_a_message_of_too_many_fields_is_too_large() -> None:
    held = chained(2, fields=2_001)
    with pytest.raises(SchemaRejected) as caught:
        held.schemas.accepted(held.message("chain.M0"))
    assert caught.value.rule == "too_large"


def test_counted_subschemas_are_as_many_as_the_registry_counts() -> None:
    for name in descriptors().schemas.types:
        whole = json.loads(canonical(descriptors().schemas.accepted(descriptors().message(name))))
        seen = graph.build(whole, DRAFT_2020_12)
        assert schemas.subschemas(whole) == len(seen.nodes)
