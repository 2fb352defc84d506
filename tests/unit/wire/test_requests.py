"""Requests between a message and the parts of a call: what one side reads, the other writes."""

from typing import Any

import pytest

from thoughtgate.core.json import JsonObject
from thoughtgate.core.tools import Item
from thoughtgate.testing.values import make_tool
from thoughtgate.wire.messages import BadMessage
from thoughtgate.wire.requests import offers, read_request, write_request
from thoughtgate.wire.stateless import request_headers

ROUND_TRIPS: list[tuple[str, JsonObject]] = [
    ("prompts/get", {"name": "p", "arguments": {"a": "1"}, "x": None}),
    ("prompts/get", {"name": "p"}),
    ("resources/read", {"uri": "file:///a b", "x-own": {"n": 2**70}}),
    ("resources/subscribe", {"uri": "a:b"}),
    ("resources/unsubscribe", {"uri": "a:b"}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "p", "title": "P"},
            "argument": {"name": "a", "value": "x"},
            "context": {"arguments": {"b": "1"}},
            "more": 1,
        },
    ),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "a:{b}"}, "argument": {"name": "b", "value": ""}},
    ),
    ("skills/list", {"cursor": "c", "deep": [1, {"a": None}]}),
]


@pytest.mark.parametrize(("method", "params"), ROUND_TRIPS)
def test_what_is_read_is_written_again_without_loss(method: str, params: JsonObject) -> None:
    wanted = read_request(method, {**params, "_meta": {"own": 1}, "requestState": "s"})
    assert wanted.kind is not None
    assert wanted.meta.kept == {"own": 1}
    item = Item(kind=wanted.kind, server="s", name=wanted.name)
    assert write_request(item, wanted.arguments, wanted.extra) == (method, params)


def test_a_tool_s_unknown_members_travel_along() -> None:
    wanted = read_request("tools/call", {"name": "t", "arguments": {"a": 1}, "task": {"ttl": 5}})
    assert (wanted.kind, wanted.extra) == (None, {"task": {"ttl": 5}})
    method, params = write_request(make_tool("s", "own"), wanted.arguments, wanted.extra)
    assert (method, params) == (
        "tools/call",
        {"name": "own", "arguments": {"a": 1}, "task": {"ttl": 5}},
    )


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {}),
        ("tools/call", {"name": "t", "arguments": []}),
        ("prompts/get", {"name": 1}),
        ("resources/read", {"uri": None}),
        ("completion/complete", {"ref": {"type": "ref/other"}, "argument": {}}),
        ("completion/complete", {"ref": {"type": "ref/prompt"}, "argument": {}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}}),
        ("completion/complete", {"ref": {"type": []}, "argument": {}}),
        ("skills/list", {"_meta": 1}),
    ],
)
def test_params_that_do_not_fit_their_method_are_refused(method: str, params: JsonObject) -> None:
    with pytest.raises(BadMessage) as caught:
        read_request(method, params)
    assert caught.value.rpc_code == -32602


@pytest.mark.parametrize(
    ("capabilities", "method", "params", "answer"),
    [
        ({"elicitation": {}}, "elicitation/create", {}, True),
        ({"elicitation": {"form": {}}}, "elicitation/create", {"mode": "form"}, True),
        ({"elicitation": {"url": {}}}, "elicitation/create", {"mode": "form"}, False),
        ({"elicitation": {"url": {}}}, "elicitation/create", {"mode": "url"}, True),
        ({"elicitation": {}}, "elicitation/create", {"mode": "url"}, False),
        ({"elicitation": None}, "elicitation/create", {}, False),
        ({"sampling": {}}, "sampling/createMessage", {}, True),
        ({"sampling": {}}, "sampling/createMessage", {"tools": []}, False),
        ({"sampling": {"tools": {}}}, "sampling/createMessage", {"tools": []}, True),
        ({"roots": {}}, "roots/list", {}, True),
        ({}, "roots/list", {}, False),
        ({"tools": {}}, "tools/call", {}, False),
    ],
)
def test_a_client_is_asked_only_for_what_it_declared(
    capabilities: JsonObject, method: str, params: JsonObject, answer: bool
) -> None:
    assert offers(capabilities, method, params) is answer


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("prompts/get", {"name": "p"}, "p"),
        ("resources/read", {"uri": "a:b"}, "a:b"),
        ("tasks/get", {"taskId": "7"}, "7"),
        ("tasks/get", {}, None),
        ("skills/list", {"name": "x"}, None),
    ],
)
def test_headers_name_what_a_request_is_for(
    method: str, params: dict[str, Any], name: str | None
) -> None:
    assert request_headers(method, params).get("mcp-name") == name
