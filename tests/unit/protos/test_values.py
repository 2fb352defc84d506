"""Single values both ways: places of errors, and what JSON cannot say by itself."""

from typing import Any

import pytest
from google.protobuf import message_factory

from tests.support.protos import descriptors
from thoughtgate.core.errors import InvalidArguments
from thoughtgate.core.json import JsonValue
from thoughtgate.protos.descriptors import decode, encode
from thoughtgate.protos.values import ProtoValueError
from thoughtgate.schema.checks import Check

HELD = descriptors()


def both_ways(name: str, value: JsonValue) -> JsonValue:
    return decode(HELD, name, encode(HELD, name, value))


@pytest.mark.parametrize(
    ("name", "value", "pointer"),
    [
        ("Scalars", {"whole_number": 2**31}, "/whole_number"),
        ("Scalars", {"big": "9223372036854775808"}, "/big"),
        ("Scalars", {"no/such~field": 1}, "/no~1such~0field"),
        ("Scalars", {"text": "\ud800"}, "/text"),
        ("Scalars", {"wholeNumber": 1, "whole_number": 1}, "/wholeNumber"),
        ("Lists", {"smalls": [{}, {"size": "x"}]}, "/smalls/1/size"),
        ("Lists", {"numbers": [1, None]}, "/numbers/1"),
        ("Maps", {"by_big_number": {"7": {"name": 1}}}, "/by_big_number/7/name"),
        ("Maps", {"by_number": {"x": "a"}}, "/by_number/x"),
        ("Choice", {"text": "a", "small": {}}, "/small"),
        ("WellKnown", {"time": "2026-02-30T00:00:00Z"}, "/time"),
        ("WellKnown", {"duration": "315576000001s"}, "/duration"),
        ("WellKnown", {"struct": {"a": [1, 10**400]}}, "/struct/a/1"),
        ("Holder", {"any": {"@type": "type.googleapis.com/no.Such"}}, "/any/@type"),
        (
            "Holder",
            {"anys": [{"@type": "type.googleapis.com/kinds.v1.Small", "size": "x"}]},
            "/anys/0/size",
        ),
        (
            "Holder",
            {"any": {"@type": "type.googleapis.com/google.protobuf.Duration", "value": "1"}},
            "/any/value",
        ),
        ("Scalars", [], ""),
    ],
)
def test_a_misfit_is_told_with_its_place(name: str, value: JsonValue, pointer: str) -> None:
    with pytest.raises(ProtoValueError) as caught:
        encode(HELD, f"kinds.v1.{name}", value)
    assert caught.value.pointer == pointer
    assert isinstance(caught.value, InvalidArguments)
    assert [problem.pointer for problem in caught.value.problems] == [pointer]


def test_a_misfit_never_repeats_the_value() -> None:
    with pytest.raises(ProtoValueError) as caught:
        encode(HELD, "kinds.v1.Scalars", {"big": "hunter2"})
    assert "hunter2" not in f"{caught.value} {caught.value.data}"


def test_what_is_required_by_proto2_is_asked_for_where_it_is_missing() -> None:
    whole = {"name": "a", "camel_number": "1", "kind": "FIRST"}
    with pytest.raises(ProtoValueError) as caught:
        encode(HELD, "older.Old", {**whole, "strict": {}})
    assert caught.value.pointer == "/strict/deep"
    schema = HELD.schemas.accepted(HELD.message("older.Old"))
    assert schema["required"] == ["name", "camel_number", "kind"]


def test_defaults_are_told_and_never_sent() -> None:
    properties = HELD.schemas.accepted(HELD.message("older.Old"))["properties"]
    defaults = {name: one["default"] for name, one in properties.items() if "default" in one}
    assert defaults == {
        "size": 7, "closed": "SECOND", "quoted": 'a "b"', "real": "Infinity", "raw": "Af8=",
    }  # fmt: skip
    whole = {"name": "a", "camel_number": "1", "kind": "FIRST"}
    assert both_ways("older.Old", whole) == {**whole, "many": []}


def test_groups_and_extensions_are_members() -> None:
    value = {
        "name": "a", "camel_number": "1", "kind": "FIRST", "many": [],
        "pair": {"left": "l"}, "[older.nickname]": "n", "[older.scores]": [1, 2],
        "[older.extra]": {"deep": "d"}, "[older.mood]": "SECOND",
    }  # fmt: skip
    assert Check(HELD.schemas.accepted(HELD.message("older.Old"))).problems(value) == ()
    assert both_ways("older.Old", value) == value


def test_whole_numbers_of_64_bits_stay_exact() -> None:
    read = both_ways("kinds.v1.Scalars", {"big": 2**63 - 1, "huge_count": str(2**64 - 1)})
    assert isinstance(read, dict)
    assert (read["big"], read["huge_count"]) == (str(2**63 - 1), str(2**64 - 1))


def test_an_enum_that_grew_is_returned_by_its_number_and_fits_the_schema() -> None:
    message = message_factory.GetMessageClass(HELD.message("kinds.v1.Presence"))(colour=99)
    read = decode(HELD, "kinds.v1.Presence", message.SerializeToString())
    assert read == {"colour": 99}
    assert Check(HELD.schemas.returned(HELD.message("kinds.v1.Presence"))).problems(read) == ()


def test_an_any_of_a_type_that_nobody_knows_is_returned_as_bytes() -> None:
    message: Any = message_factory.GetMessageClass(HELD.message("kinds.v1.Holder"))()
    message.any.type_url, message.any.value = "type.googleapis.com/no.Such", b"\x01"
    read = decode(HELD, "kinds.v1.Holder", message.SerializeToString())
    assert read["any"] == {"@type": "type.googleapis.com/no.Such", "value": "AQ=="}
    assert Check(HELD.schemas.returned(HELD.message("kinds.v1.Holder"))).problems(read) == ()


def test_numbers_in_a_struct_that_are_not_finite_are_returned_as_text() -> None:
    message: Any = message_factory.GetMessageClass(HELD.message("kinds.v1.WellKnown"))()
    message.value.number_value = float("nan")
    assert decode(HELD, "kinds.v1.WellKnown", message.SerializeToString())["value"] == "NaN"
