"""Rules of protovalidate and field_behavior: in the schema, in the writer, or in words."""

import pytest

from tests.support.protos import descriptors
from thoughtgate.core.json import JsonValue
from thoughtgate.protos.descriptors import encode
from thoughtgate.protos.values import ProtoValueError
from thoughtgate.schema.checks import Check
from thoughtgate.schema.registration import admit

HELD = descriptors()
ANY = "type.googleapis.com/rules."
NEEDED = {
    "name": "a", "count": 1, "texts": {}, "list": ["a"], "this_one": "", "not_zero": "1",
}  # fmt: skip
"""A value of rules.Needed that lacks nothing."""

SAID_BY_THE_SCHEMA = [
    ("Texts", "exact", "yes", "no"),
    ("Texts", "sized", "äé", "ä"),
    ("Texts", "long_as", "ab", "abc"),
    ("Texts", "matching", "abc", "aBc"),
    ("Texts", "fixed", "a.mz", "a.z"),
    ("Texts", "fixed", "a.mz", "a.m!z"),
    ("Texts", "fixed", "a.mz", "abmz"),
    ("Texts", "picked", "b", "c"),
    ("Texts", "unpicked", "c", "b"),
    ("Texts", "uuid", "0b54cb60-26bf-4a3e-93ef-5d4b6a3b5d5c", "0b54"),
    ("Texts", "boxed", "ab", "a"),
    ("Numbers", "between", 1, 10),
    ("Numbers", "big_between", 10, 11),
    ("Numbers", "real", 1, 0),
    ("Numbers", "real", 0.5, "NaN"),
    ("Numbers", "real", 0.5, "Infinity"),
    ("Numbers", "single", 0.1, 0.09),
    ("Numbers", "single", "Infinity", "-Infinity"),
    ("Numbers", "finite", 1e300, "Infinity"),
    ("Numbers", "big_picked", "2", "3"),
    ("Numbers", "big_picked", 1, 3),
    ("Numbers", "unpicked", 3, 2),
    ("Numbers", "agreed", True, False),
    ("Numbers", "size", "SIZE_SMALL", "SIZE_UNSPECIFIED"),
    ("Numbers", "same_size", "SIZE_LARGE", "SIZE_SMALL"),
    ("Numbers", "exact", "7", "8"),
    ("Groups", "texts", ["a", "b"], ["a", "a"]),
    ("Groups", "texts", [], [""]),
    ("Groups", "texts", ["a"], ["a", "b", "c"]),
    ("Groups", "pairs", {"a": 4}, {"abc": 4}),
    ("Groups", "pairs", {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}),
    ("Groups", "pairs", {"a": 4}, {"a": 5}),
    ("Groups", "numbered", {"1": "a"}, {"1": ""}),
    ("Groups", "any", {"@type": f"{ANY}Texts"}, {"@type": f"{ANY}Numbers"}),
    ("Needed", "spare", "", "a"),
    ("Needed", "unchecked", "a", 1),
    ("Needed", "list", ["a"], []),
    ("Needed", "count", 1, 0),
    ("Needed", "name", "a", ""),
    ("Needed", "texts", {}, None),
]

SAID_BY_THE_WRITER = [
    ("Texts", "bytes_sized", "abc", "äé", "/bytes_sized"),
    ("Numbers", "big_between", "10", "11", "/big_between"),
    ("Numbers", "outside", 4, 7, "/outside"),
    ("Numbers", "boxed", "5", "4", "/boxed"),
    ("Groups", "numbers", ["5"], ["5", "4"], "/numbers/1"),
    ("Groups", "pairs", {"a": "4"}, {"a": "5"}, "/pairs/a"),
    ("Groups", "numbered", {"1": "a"}, {"0": "a"}, "/numbered/0"),
    ("Groups", "raw", "AA==", "", "/raw"),
    ("Groups", "raw", "AAA=", "AAAA", "/raw"),
    ("Groups", "started", "AQ==", "Ag==", "/started"),
    ("Groups", "number_of_peer", "AAAAAA==", "AA==", "/number_of_peer"),
    ("Groups", "wait", "1s", "60s", "/wait"),
    ("Groups", "wait", "59.5s", "0.5s", "/wait"),
    ("Groups", "since", "1970-01-01T00:00:01Z", "1970-01-01T00:00:00Z", "/since"),
    ("Groups", "waits", ["1s"], ["0s", "2s"], "/waits/1"),
    ("Needed", "not_zero", "1", "0", "/not_zero"),
]


def schema_of(message: str) -> dict[str, JsonValue]:
    return HELD.schemas.accepted(HELD.message(f"rules.{message}"))


def whole(message: str, field: str, value: JsonValue) -> JsonValue:
    return {**(NEEDED if message == "Needed" else {}), field: value}


@pytest.mark.parametrize(("message", "field", "good", "bad"), SAID_BY_THE_SCHEMA)
def test_a_rule_that_a_schema_can_say_is_in_the_schema(
    message: str, field: str, good: JsonValue, bad: JsonValue
) -> None:
    check = Check(schema_of(message))
    assert check.problems(whole(message, field, good)) == ()
    (problem,) = check.problems(whole(message, field, bad))
    assert problem.pointer.startswith(f"/{field}")


@pytest.mark.parametrize(("message", "field", "good", "bad", "where"), SAID_BY_THE_WRITER)
def test_a_rule_that_no_schema_can_say_is_checked_before_anything_is_sent(
    message: str, field: str, good: JsonValue, bad: JsonValue, where: str
) -> None:
    check = Check(schema_of(message))
    assert check.is_valid(whole(message, field, bad))
    assert encode(HELD, f"rules.{message}", whole(message, field, good))
    with pytest.raises(ProtoValueError) as caught:
        encode(HELD, f"rules.{message}", whole(message, field, bad))
    assert caught.value.pointer == where


@pytest.mark.parametrize(
    ("message", "field", "words"),
    [
        ("Texts", "address", "address"),
        ("Texts", "strange", r"\Aa\z"),
        ("Numbers", "outside", "more than 10 or less than 5"),
        ("Groups", "past", "in the past"),
        ("Groups", "wait", "at least 1s"),
        ("Needed", "last", "this != 'x'"),
        ("Behaves", "made", "Set by the server."),
        ("Behaves", "fixed", "Cannot be changed later."),
    ],
)
def test_what_only_the_server_can_judge_is_told_in_words(
    message: str, field: str, words: str
) -> None:
    assert words in schema_of(message)["properties"][field]["description"]


def test_rules_of_a_whole_message_are_told_in_words() -> None:
    said = schema_of("Needed")["description"]
    assert "first comes before last." in said
    assert "Exactly one of first, last." in said


@pytest.mark.parametrize(
    ("field", "format_"),
    [("email", "email"), ("uri", "uri"), ("ipv4", "ipv4"), ("uuid", "uuid")],
)
def test_kinds_of_text_are_formats(field: str, format_: str) -> None:
    assert schema_of("Texts")["properties"][field]["format"] == format_


def test_what_is_required_may_not_be_left_out() -> None:
    schema = schema_of("Needed")
    assert schema["required"] == ["name", "count", "texts", "list", "not_zero"]
    assert Check(schema).is_valid(NEEDED)
    without = {name: value for name, value in NEEDED.items() if name != "this_one"}
    assert not Check(schema).is_valid(without)
    assert not Check(schema).is_valid({**NEEDED, "that_one": ""})


def test_field_behavior_is_in_the_schema() -> None:
    schema = schema_of("Behaves")
    assert schema["required"] == ["title"]
    assert schema["properties"]["made"]["readOnly"] is True
    assert schema["properties"]["title"]["description"] == "What it is called."


@pytest.mark.parametrize("message", ["Texts", "Numbers", "Groups", "Needed", "Behaves"])
def test_schemas_with_rules_may_be_registered_and_still_take_null(message: str) -> None:
    schema = schema_of(message)
    admit(schema)
    needed = set(schema.get("required", ()))
    nulls = dict.fromkeys(name for name in schema["properties"] if name not in needed)
    here = NEEDED if message == "Needed" else dict.fromkeys(needed, "a")
    assert Check(schema).problems({**nulls, **here}) == ()
