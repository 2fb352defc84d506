"""Broken descriptors and broken messages: refused with a reason, never a crash or a flood."""

import random
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, message_factory

from tests.support.protos import NAMES, compiled, descriptors
from thoughtgate.core.errors import SchemaRejected, UpstreamGarbled
from thoughtgate.core.json import JsonValue
from thoughtgate.core.servers import Streaming
from thoughtgate.protos.descriptors import Descriptors, decode, encode
from thoughtgate.protos.tools import tool_of
from thoughtgate.protos.values import ProtoValueError

HELD = descriptors()


def test_descriptors_with_flipped_bytes_are_read_or_refused() -> None:
    chance = random.Random(5)
    refused = 0
    for _ in range(150):
        files = [bytearray(file) for file in compiled(*NAMES)]
        hit = chance.choice(files)
        for _ in range(chance.randrange(1, 6)):
            hit[chance.randrange(len(hit))] = chance.randrange(256)
        try:
            held = Descriptors.of(map(bytes, files))
        except SchemaRejected:
            refused += 1
            continue
        for service in held.services():
            for method in held.methods(service):
                tool_of(method, held, streaming=Streaming.ARRAY)
    assert 20 < refused < 150


def test_names_that_are_not_utf_8_are_refused() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", package="a", syntax="proto2")
    file.message_type.add(name="M").field.add(
        name="x", number=1, label=1, type=9, json_name="JSONNAME"
    )
    raw = file.SerializeToString().replace(b"JSONNAME", b"JSON\xff\xff\xff\xff")
    with pytest.raises(SchemaRejected) as caught:
        Descriptors.of([raw])
    assert caught.value.rule == "bad_descriptor"


def test_bytes_that_are_no_message_are_the_server_s_fault() -> None:
    chance = random.Random(7)
    garbled = 0
    for name in HELD.schemas.types:
        for _ in range(30):
            wire = bytes(chance.choice((8, 10, 18, 26, 2, 1, 0, 255)) for _ in range(12))
            try:
                decode(HELD, name, wire)
            except UpstreamGarbled:
                garbled += 1
    assert garbled


@pytest.mark.parametrize(
    "value",
    [
        {"time": {"seconds": 253_402_300_800}},
        {"time": {"nanos": -1}},
        {"duration": {"seconds": 1, "nanos": -1}},
        {"duration": {"seconds": 315_576_000_001}},
    ],
)
def test_times_that_json_cannot_say_are_the_server_s_fault(value: dict[str, JsonValue]) -> None:
    message = message_factory.GetMessageClass(HELD.message("kinds.v1.WellKnown"))(**value)
    with pytest.raises(UpstreamGarbled):
        decode(HELD, "kinds.v1.WellKnown", message.SerializeToString())


def test_a_response_that_nests_too_deeply_is_refused() -> None:
    tree = message_factory.GetMessageClass(HELD.message("kinds.v1.Tree"))
    wire = b""
    for _ in range(61):
        outer: Any = tree()
        outer.left.ParseFromString(wire)
        wire = outer.SerializeToString()
    with pytest.raises(UpstreamGarbled):
        decode(HELD, "kinds.v1.Tree", wire)


def test_an_any_inside_an_any_five_hundred_times_is_refused_both_ways() -> None:
    holder = message_factory.GetMessageClass(HELD.message("kinds.v1.Holder"))
    kind = {"@type": "type.googleapis.com/kinds.v1.Holder"}
    wire = b""
    value: JsonValue = kind
    for _ in range(500):
        outer: Any = holder()
        outer.any.type_url, outer.any.value = kind["@type"], wire
        wire, value = outer.SerializeToString(), {**kind, "any": value}
    with pytest.raises(UpstreamGarbled):
        decode(HELD, "kinds.v1.Holder", wire)
    with pytest.raises(ProtoValueError):
        encode(HELD, "kinds.v1.Holder", {"any": value})


def nested(levels: int) -> JsonValue:
    made: JsonValue = {}
    for _ in range(levels):
        made = {"left": made}
    return made


def test_what_may_be_written_may_be_read_back() -> None:
    tree = message_factory.GetMessageClass(HELD.message("kinds.v1.Tree"))
    tree.FromString(encode(HELD, "kinds.v1.Tree", nested(100)))
    with pytest.raises(ProtoValueError):
        encode(HELD, "kinds.v1.Tree", nested(101))


def test_text_that_is_not_utf_8_is_mended() -> None:
    """Only proto2 lets a server send it."""
    wire = encode(HELD, "older.Old", {"name": "NAME", "camel_number": 1, "kind": "FIRST"})
    read = decode(HELD, "older.Old", wire.replace(b"NAME", b"N\xffME"))
    assert read["name"] == "N\ufffdME"


def test_fields_may_have_the_names_of_what_messages_can_do() -> None:
    names = ("ListFields", "SerializeToString", "HasField", "SetInParent", "Extensions", "must")
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", package="a", syntax="proto2")
    made = file.message_type.add(name="M", extension_range=[{"start": 100, "end": 200}])
    for number, name in enumerate((*names, "WhichOneof"), 1):
        made.field.add(name=name, number=number, type=9, label=2 if name == "must" else 1)
    made.oneof_decl.add(name="one")
    made.field[-1].oneof_index = 0
    made.field.add(name="inner", number=50, type=11, label=1, type_name=".a.M")
    file.extension.add(name="more", extendee=".a.M", number=100, type=9, label=1)
    held = Descriptors.of([file.SerializeToString()])
    inner: dict[str, JsonValue] = {name: name for name in (*names, "WhichOneof", "[a.more]")}
    value: dict[str, JsonValue] = {**inner, "inner": inner}
    assert decode(held, "a.M", encode(held, "a.M", value)) == value
