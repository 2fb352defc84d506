"""Prompts, resources and the rest: how they are listed and asked for, in both eras."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.callers import ABLE, Client
from tests.support.upstreams import Rig, fake_stdio, http_server, rig
from tests.support.waiting import until, within
from thoughtgate.core.calls import Retry
from thoughtgate.core.errors import UpstreamReplied
from thoughtgate.core.servers import Era
from thoughtgate.core.tools import Kind
from thoughtgate.testing.fake_http import FakeHttp, fake_http
from thoughtgate.testing.fake_server import FakeServer
from thoughtgate.testing.fake_turn import Script

PEERS = [(transport, era) for transport in ("stdio", "http") for era in Era]


@pytest.fixture(params=PEERS, ids=lambda case: f"{case[0]}-{case[1]}")
async def peer(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    transport, era = request.param
    if transport == "stdio":
        async with rig(fake_stdio("--offers", era=era)) as made:
            yield made
    else:
        async with offering() as endpoint, rig(http_server(endpoint.url, era=era)) as made:
            yield made


def offering(**script: Any) -> Any:
    return fake_http(FakeServer(Script(offers=True, **script)))


async def test_everything_that_a_server_declares_is_listed_as_it_was_sent(peer: Rig) -> None:
    listing = await within(peer.upstreams.discover("peer"), 10.0)
    assert [prompt["name"] for prompt in listing.prompts] == ["greet", "part"]
    assert listing.prompts[0]["x-unknown"] == [1]
    assert [resource["uri"] for resource in listing.resources] == ["mem://one", "mem://two"]
    assert listing.templates == ({"uriTemplate": "mem://{id}", "name": "any"},)
    assert listing.capabilities["extensions"] == {"example.org/x": {"on": True}}
    assert listing.warnings == ()


async def test_a_list_that_fails_costs_a_warning_and_no_other_list() -> None:
    async with (
        offering(broken_prompts=True) as endpoint,
        rig(http_server(endpoint.url)) as made,
    ):
        listing = await within(made.upstreams.discover("peer"))
    assert listing.tools
    assert listing.resources
    assert listing.prompts == ()
    assert "prompts" in listing.warnings[0]


async def test_only_what_changed_is_listed_again_and_what_fails_stays_as_it_was() -> None:
    async with offering() as endpoint, rig(http_server(endpoint.url, era=Era.STATELESS)) as made:
        first = await within(made.upstreams.discover("peer"))
        endpoint.server.script = replace(endpoint.server.script, broken_prompts=True)
        client = Client()
        await client.call(made, "announce", {"method": "notifications/prompts/list_changed"})
        await until(lambda: len(made.listings) == 2)
        again = made.listings[-1]
        asked = [message.get("method") for message in endpoint.server.seen]
    assert (again.tools, again.prompts) == (first.tools, first.prompts)
    assert (again.resources, again.templates) == (first.resources, first.templates)
    assert "prompts" in again.warnings[0]
    assert (asked.count("tools/list"), asked.count("prompts/list")) == (1, 2)


@pytest.mark.parametrize(
    ("kind", "name", "arguments", "expected"),
    [
        (Kind.PROMPT, "greet", {"who": "you"}, {"name": "greet", "arguments": {"who": "you"}}),
        (Kind.RESOURCE, "mem://one", {}, {"uri": "mem://one"}),
        (
            Kind.PROMPT_COMPLETION,
            "greet",
            {"argument": {"name": "who", "value": "y"}},
            {
                "ref": {"type": "ref/prompt", "name": "greet"},
                "argument": {"name": "who", "value": "y"},
            },
        ),
        (
            Kind.RESOURCE_COMPLETION,
            "mem://{id}",
            {"argument": {"name": "id", "value": "o"}, "context": {"arguments": {}}},
            {
                "ref": {"type": "ref/resource", "uri": "mem://{id}"},
                "argument": {"name": "id", "value": "o"},
                "context": {"arguments": {}},
            },
        ),
        (Kind.METHOD, "example.org/do", {"x": [1]}, {"x": [1]}),
    ],
)
async def test_each_item_is_asked_for_by_its_own_method(
    peer: Rig, kind: Kind, name: str, arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert (await Client().ask_for(peer, kind, name, arguments))["asked"] == expected


async def test_members_that_we_do_not_know_reach_the_server(peer: Rig) -> None:
    asked = await Client().ask_for(peer, Kind.PROMPT, "greet", extra={"x-mine": {"deep": [1]}})
    assert asked["asked"] == {"name": "greet", "x-mine": {"deep": [1]}}


async def test_a_method_that_the_server_does_not_know_is_its_own_error(peer: Rig) -> None:
    with pytest.raises(UpstreamReplied) as caught:
        await Client().ask_for(peer, Kind.METHOD, "example.org/never")
    assert caught.value.rpc_code == -32601


@pytest.mark.parametrize(
    ("kind", "name", "header"),
    [(Kind.PROMPT, "grüße", "=?base64?Z3LDvMOfZQ==?="), (Kind.RESOURCE, "mem://one", "mem://one")],
)
async def test_the_name_of_an_item_stands_in_the_header_of_the_stateless_era(
    kind: Kind, name: str, header: str
) -> None:
    async with (
        offering() as endpoint,
        rig(http_server(endpoint.url, era=Era.STATELESS)) as made,
    ):
        await Client().ask_for(made, kind, name)
    assert named(endpoint, kind)["mcp-name"] == header


def named(endpoint: FakeHttp, kind: Kind) -> dict[str, str]:
    method = "prompts/get" if kind is Kind.PROMPT else "resources/read"
    sent = [dict(headers) for _, headers in endpoint.requests]
    return next(headers for headers in sent if headers.get("mcp-method") == method)


@pytest.mark.parametrize("peer", [p for p in PEERS if p[1] is Era.STATELESS], indirect=True)
async def test_each_request_says_what_its_own_caller_can_do(peer: Rig) -> None:
    key = "io.modelcontextprotocol/clientCapabilities"
    able = await Client().call(peer, "greeting")
    plain = await Client(able={}).call(peer, "greeting")
    assert (able[key], plain[key]) == (ABLE, {})
    seen = (await Client().call(peer, "seen"))["seen"]
    ours = [one for one in seen if one["method"] in {"server/discover", "tools/list"}]
    assert {json.dumps(one["params"]["_meta"][key]) for one in ours} == {"{}"}


@pytest.mark.parametrize("peer", [p for p in PEERS if p[1] is Era.STATELESS], indirect=True)
async def test_a_question_comes_back_and_its_answer_goes_up_with_the_servers_state(
    peer: Rig,
) -> None:
    client = Client()
    requests = {"a": {"method": "elicitation/create", "params": {"message": "?"}}}
    arguments = {"requests": requests, "state": "opaque é"}
    first = await within(peer.upstreams.send(client.make("want_input", arguments)))
    assert not first.final
    assert json.loads(first.raw)["inputRequests"] == requests
    retry = Retry(answers={"a": {"action": "accept"}}, state=json.loads(first.raw)["requestState"])
    second = await within(peer.upstreams.send(client.make("want_input", arguments, retry=retry)))
    assert second.final
    came = json.loads(second.raw)["structuredContent"]
    assert came["inputResponses"] == {"a": {"action": "accept"}}
    assert came["requestState"] == "opaque é"
    assert came["arguments"] == arguments


async def test_only_a_tool_can_fail_as_a_tool(peer: Rig) -> None:
    client = Client()
    assert (await within(peer.upstreams.send(client.make("tool_error")))).is_error
