"""Arguments: what is sent is what was given, and only what fits is sent."""

import pytest

from tests.unit.calls.conftest import FLIGHT, Bench
from thoughtgate.core.calls import Source
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.errors import InvalidArguments
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.servers import NullPolicy
from thoughtgate.testing.values import make_definition


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "Oslo"},
        {"to": ""},
        {"to": "Oslo", "seat": 0},
        {"to": "Oslo", "meal": None},
        {"to": "Oslo", "seat": 9007199254740993},
        {"to": "Oslo", "seat": 10**400},
    ],
)
async def test_arguments_that_fit_are_sent_as_they_came(
    bench: Bench, arguments: JsonObject
) -> None:
    bench.offer("air", FLIGHT)
    await bench.call("air__book", arguments)
    assert bench.sender.sent[0].arguments is arguments


async def test_the_callers_own_meta_is_sent_along(bench: Bench) -> None:
    bench.offer("air", FLIGHT)
    meta = {"com.example/tenant": {"id": 2**60}}
    await bench.call("air__book", {"to": "Oslo"}, meta=meta)
    assert bench.sender.sent[0].meta is meta


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [
        ({}, ""),
        ({"to": 5}, "/to"),
        ({"to": "Oslo", "seat": "3"}, "/seat"),
        ({"to": "Oslo", "seat": 1.5}, "/seat"),
        ({"to": None}, "/to"),
        ({"to": "Oslo", "colour": "red"}, "/colour"),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_and_nothing_is_sent(
    bench: Bench, arguments: JsonObject, pointer: str
) -> None:
    bench.offer("air", FLIGHT)
    with pytest.raises(InvalidArguments) as caught:
        await bench.call("air__book", arguments)
    assert caught.value.problems[0].pointer.startswith(pointer)
    assert caught.value.data
    assert not bench.sender.sent


async def test_references_within_a_schema_are_followed(bench: Bench) -> None:
    schema = {
        "type": "object",
        "definitions": {"n": {"type": "integer"}},
        "properties": {"n": {"$ref": "#/definitions/n"}},
    }
    bench.offer("air", make_definition("count", inputSchema=schema))
    await bench.call("air__count", {"n": 1})
    with pytest.raises(InvalidArguments):
        await bench.call("air__count", {"n": "one"})


@pytest.mark.parametrize(
    ("policy", "source", "sent", "notes"),
    [
        (NullPolicy.DROP, Source.CLIENT, {"to": "Oslo"}, ("repaired:/seat",)),
        (NullPolicy.PASS, Source.CLIENT, {"to": "Oslo", "seat": None}, ("passed:/seat",)),
        (NullPolicy.PASS, Source.ENGINE, {"to": "Oslo", "seat": None}, ("passed:/seat",)),
        (NullPolicy.REJECT, Source.CLIENT, None, ()),
        (NullPolicy.DROP, Source.ENGINE, None, ()),
    ],
)
async def test_a_null_for_an_optional_argument_goes_by_the_servers_policy(
    bench: Bench, policy: NullPolicy, source: Source, sent: JsonValue, notes: tuple[str, ...]
) -> None:
    bench.offer("air", FLIGHT, nulls=policy)
    arguments = {"to": "Oslo", "seat": None}
    if sent is None:
        with pytest.raises(InvalidArguments) as caught:
            await bench.call("air__book", arguments, source=source)
        assert "null" in caught.value.problems[0].hint
        assert not bench.sender.sent
    else:
        result = await bench.call("air__book", arguments, source=source)
        assert bench.sender.sent[0].arguments == sent
        assert result.notes == notes


@pytest.mark.parametrize("policy", [NullPolicy.DROP, NullPolicy.PASS])
async def test_a_null_is_no_excuse_for_anything_else(bench: Bench, policy: NullPolicy) -> None:
    bench.offer("air", FLIGHT, nulls=policy)
    for arguments in ({"to": None}, {"to": 5, "seat": None}):
        with pytest.raises(InvalidArguments):
            await bench.call("air__book", arguments)
    assert not bench.sender.sent


async def test_a_null_that_the_schema_takes_is_never_dropped(bench: Bench) -> None:
    bench.offer("air", FLIGHT)
    result = await bench.call("air__book", {"to": "Oslo", "meal": None, "seat": None})
    assert bench.sender.sent[0].arguments == {"to": "Oslo", "meal": None}
    assert result.notes == ("repaired:/seat",)


def hide(bench: Bench, fixed: JsonObject) -> None:
    bench.domains = (Domain(name="default", dress={"air/book": ToolDress(fixed=fixed)}),)
    bench.offer("air", FLIGHT)


async def test_a_hidden_argument_is_added(bench: Bench) -> None:
    hide(bench, {"agency": "top-secret-agency"})
    await bench.call("air__book", {"to": "Oslo"})
    assert bench.sender.sent[0].arguments == {"to": "Oslo", "agency": "top-secret-agency"}


async def test_a_hidden_argument_cannot_be_sent(bench: Bench) -> None:
    hide(bench, {"agency": "top-secret-agency"})
    with pytest.raises(InvalidArguments) as caught:
        await bench.call("air__book", {"to": "Oslo", "agency": "mine"})
    assert caught.value.problems[0].pointer == "/agency"
    assert not bench.sender.sent
    assert bench.audit.rows[0].outcome == "invalid_arguments"


@pytest.mark.parametrize(
    "arguments", [{"to": 5}, {}, {"to": "Oslo", "agenci": "mine"}, {"to": None, "x": [1]}]
)
async def test_a_hidden_argument_is_in_no_report(bench: Bench, arguments: JsonObject) -> None:
    hide(bench, {"agency": "top-secret-agency"})
    with pytest.raises(InvalidArguments) as caught:
        await bench.call("air__book", arguments)
    told = f"{caught.value.message}{caught.value.data}{bench.audit.rows}{bench.recorder.spans}"
    assert "secret" not in told
    assert "agency" not in told


async def test_arguments_that_clash_with_a_hidden_one_are_refused_without_naming_it(
    bench: Bench,
) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "not": {"required": ["a", "b"]},
    }
    bench.domains = (Domain(name="default", dress={"air/t": ToolDress(fixed={"b": "hush"})}),)
    bench.offer("air", make_definition("t", inputSchema=schema))
    with pytest.raises(InvalidArguments) as caught:
        await bench.call("air__t", {"a": "x"})
    assert "hush" not in f"{caught.value.message}{caught.value.data}"
