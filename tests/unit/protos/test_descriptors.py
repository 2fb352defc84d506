"""Descriptor files become a pool: any order, nothing missing, nothing without a bound."""

from collections.abc import Callable

import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2

from tests.support.protos import NAMES, compiled, descriptors
from thoughtgate.core.errors import Missing, SchemaRejected
from thoughtgate.core.tools import Effect
from thoughtgate.protos.descriptors import Descriptors, decode, encode

File = descriptor_pb2.FileDescriptorProto


def file(name: str, *imports: str, messages: int = 0) -> File:
    made = File(name=name, package=name.removesuffix(".proto"), syntax="proto3", dependency=imports)
    for number in range(messages):
        made.message_type.add(name=f"M{number}")
    return made


def raw(*made: File) -> list[bytes]:
    return [one.SerializeToString() for one in made]


def test_files_may_come_in_any_order_and_twice() -> None:
    written = compiled(*NAMES)
    held = Descriptors.of([*reversed(written), *written])
    assert held.services() == descriptors().services()


def test_well_known_files_that_nobody_sent_are_supplied() -> None:
    own = [one for one in compiled(*NAMES) if not File.FromString(one).name.startswith("google/")]
    held = Descriptors.of(own)
    wire = encode(held, "kinds.v1.WellKnown", {"time": "2026-07-28T09:30:00Z"})
    assert decode(held, "kinds.v1.WellKnown", wire)["time"] == "2026-07-28T09:30:00Z"


def test_what_an_upstream_sends_under_a_well_known_name_does_not_count() -> None:
    fake = file(timestamp_pb2.DESCRIPTOR.name, messages=1)
    user = file("user.proto", fake.name)
    user.message_type.add(name="User").field.add(
        name="at", number=1, label=1, type=11, type_name=".google.protobuf.Timestamp"
    )
    held = Descriptors.of(raw(fake, user))
    assert encode(held, "user.User", {"at": "1970-01-01T00:00:01Z"}) == b"\x0a\x02\x08\x01"


def test_a_missing_file_is_named() -> None:
    with pytest.raises(SchemaRejected) as caught:
        Descriptors.of(raw(file("a.proto", "gone.proto")))
    assert caught.value.rule == "missing_file"
    assert caught.value.pointer == "gone.proto"


def _nested(levels: int) -> File:
    made = file("a.proto")
    inner = made.message_type.add(name="M")
    for _ in range(levels):
        inner = inner.nested_type.add(name="M")
    return made


@pytest.mark.parametrize(
    ("rule", "make"),
    [
        ("cyclic_import", lambda: raw(file("a.proto", "b.proto"), file("b.proto", "a.proto"))),
        ("cyclic_import", lambda: raw(file("a.proto", "a.proto"))),
        ("different_files", lambda: raw(file("a.proto"), file("a.proto", messages=1))),
        ("too_many_messages", lambda: raw(file("a.proto", messages=10_001))),
        ("too_deep", lambda: raw(_nested(32))),
        ("too_large", lambda: raw(*(file(f"f{number}.proto") for number in range(2_001)))),
        ("bad_descriptor", lambda: [b"\xff\xff\xff"]),
        ("bad_descriptor", lambda: [b""]),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(
    rule: str, make: Callable[[], list[bytes]]
) -> None:
    with pytest.raises(SchemaRejected) as caught:
        Descriptors.of(make())
    assert caught.value.rule == rule


def test_a_file_that_does_not_hold_together_is_named() -> None:
    broken = file("broken.proto", messages=1)
    broken.message_type[0].field.add(name="x", number=1, label=1, type=11, type_name=".no.Such")
    with pytest.raises(SchemaRejected) as caught:
        Descriptors.of(raw(broken))
    assert (caught.value.rule, caught.value.pointer) == ("bad_descriptor", "broken.proto")


def _own_timestamp(*fields: str) -> list[bytes]:
    made = file("own.proto")
    made.package = "google.protobuf"
    message = made.message_type.add(name="Timestamp")
    for number, name in enumerate(fields, start=1):
        kind = 3 if name == "seconds" else 5
        message.field.add(name=name, number=number, label=1, type=kind)
    return raw(made)


def test_a_well_known_type_in_a_file_of_another_name_is_the_same_type() -> None:
    held = Descriptors.of(_own_timestamp("seconds", "nanos"))
    value = {"value": "1970-01-01T00:00:01Z"}
    wire = encode(held, "google.protobuf.Timestamp", value)
    assert decode(held, "google.protobuf.Timestamp", wire) == value


def test_a_well_known_type_that_is_another_one_is_refused() -> None:
    with pytest.raises(SchemaRejected) as caught:
        Descriptors.of(_own_timestamp("seconds", "minutes"))
    assert caught.value.pointer == "google.protobuf.Timestamp"


def test_ten_thousand_messages_are_taken() -> None:
    held = Descriptors.of(raw(file("many.proto", messages=10_000)))
    assert encode(held, "many.M9999", {}) == b""


def test_methods_tell_kinds_effects_and_comments() -> None:
    methods = {method.name: method for method in descriptors().methods("kinds.v1.Kinds")}
    assert list(methods) == ["Echo", "Put", "Watch", "Gather", "Talk", "Now", "Guess"]
    echo, put, watch = methods["Echo"], methods["Put"], methods["Watch"]
    assert echo.path == "/kinds.v1.Kinds/Echo"
    assert echo.comment == "Returns what came."
    assert (echo.request, echo.response) == ("kinds.v1.Scalars", "kinds.v1.Scalars")
    assert (echo.effect, put.effect, watch.effect) == (Effect.READ, Effect.IDEMPOTENT, None)
    assert (put.deprecated, echo.deprecated) == (True, False)
    kinds = {name: (one.client_streaming, one.server_streaming) for name, one in methods.items()}
    assert kinds["Echo"] == (False, False)
    assert kinds["Watch"] == (False, True)
    assert kinds["Gather"] == (True, False)
    assert kinds["Talk"] == (True, True)


def test_an_unknown_service_or_message_is_missing() -> None:
    with pytest.raises(Missing):
        descriptors().methods("no.Such")
    with pytest.raises(Missing):
        encode(descriptors(), "no.Such", {})


def test_a_map_whose_entry_has_another_name_is_read_as_a_map() -> None:
    """As written by protobufjs, which some servers reflect themselves with."""
    made = file("js.proto")
    holder = made.message_type.add(name="Holder")
    holder.field.add(name="labels", number=1, label=3, type=11, type_name="Labels")
    entry = holder.nested_type.add(name="Labels")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=9)
    entry.field.add(name="value", number=2, label=1, type=9)
    held = Descriptors.of(raw(made))
    wire = encode(held, "js.Holder", {"labels": {"a": "b"}})
    assert decode(held, "js.Holder", wire) == {"labels": {"a": "b"}}
