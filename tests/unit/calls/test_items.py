"""Prompts, resources and completions take the path of tools: found, allowed, traced, audited."""

from dataclasses import replace

import pytest

from tests.unit.calls.conftest import Bench
from thoughtgate.calls.authorized import by_scope
from thoughtgate.catalog import admit
from thoughtgate.core.calls import ItemName, Principal, Result
from thoughtgate.core.domains import Domain
from thoughtgate.core.errors import CallerReplied, Refused, UnknownTarget
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.tools import Effect, Item, Kind
from thoughtgate.telemetry import names
from thoughtgate.testing.values import make_call, make_listing, make_server

RESOURCES = {"resources": {"subscribe": True}}


def offer(bench: Bench, server: str, **listed: JsonValue) -> None:
    entry = make_server(server)
    listing = replace(make_listing(server), **listed)
    part = admit(listing, server=entry, effects={}, reject=lambda schema: None)
    bench.gateway.update(part, entry)


async def ask(
    bench: Bench, kind: Kind, name: str, arguments: JsonObject | None = None, **fields: JsonValue
) -> Result:
    target = ItemName(domain="default", kind=kind, name=name)
    return await bench.gateway.call(replace(make_call("x", arguments, **fields), target=target))


async def test_a_prompt_is_found_by_its_shown_name_and_asked_for_by_its_own(bench: Bench) -> None:
    offer(bench, "docs", prompts=({"name": "sum up"},))
    (shown,) = bench.gateway.view("default").prompts
    await ask(bench, Kind.PROMPT, shown.name, {"style": "short"})
    (call,) = bench.sender.sent
    assert isinstance(call.target, Item)
    assert (call.target.server, call.target.name, call.target.kind) == (
        "docs",
        "sum up",
        Kind.PROMPT,
    )
    assert call.advertised == shown.name
    assert call.arguments == {"style": "short"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Kind.PROMPT, "docs__other"),
        (Kind.PROMPT_COMPLETION, "docs__other"),
        (Kind.RESOURCE, "file:///x"),
        (Kind.RESOURCE_COMPLETION, "file:///{path}"),
        (Kind.METHOD, "skills/list"),
    ],
)
async def test_what_no_server_offers_is_unknown_and_sent_nowhere(
    bench: Bench, kind: Kind, name: str
) -> None:
    offer(bench, "docs", prompts=({"name": "sum"},))
    with pytest.raises(UnknownTarget):
        await ask(bench, kind, name)
    assert bench.sender.sent == []
    assert bench.audit.rows[0].outcome == "unknown_tool"


@pytest.mark.parametrize(
    ("kind", "name", "action", "method"),
    [
        (Kind.PROMPT, "docs__sum", "prompt.get", "prompts/get"),
        (Kind.RESOURCE, "file:///a", "resource.read", "resources/read"),
        (Kind.SUBSCRIBE, "file:///a", "resource.subscribe", "resources/subscribe"),
        (Kind.UNSUBSCRIBE, "file:///a", "resource.unsubscribe", "resources/unsubscribe"),
        (Kind.PROMPT_COMPLETION, "docs__sum", "prompt.complete", "completion/complete"),
        (Kind.RESOURCE_COMPLETION, "file:///{p}", "resource.complete", "completion/complete"),
        (Kind.METHOD, "skills/list", "method.call", "skills/list"),
    ],
)
async def test_every_kind_leaves_a_row_and_two_spans_under_its_method(
    bench: Bench, kind: Kind, name: str, action: str, method: str
) -> None:
    offer(
        bench,
        "docs",
        prompts=({"name": "sum"},),
        resources=({"uri": "file:///a", "name": "a"},),
        templates=({"uriTemplate": "file:///{p}", "name": "any"},),
        capabilities={**RESOURCES, "extensions": {"io.example/skills": {}}},
    )
    await ask(bench, kind, name)
    (row,) = bench.audit.rows
    assert (row.action, row.server, row.outcome) == (action, "docs", "ok")
    client, server = bench.recorder.spans
    assert server.attributes[names.MCP_METHOD] == client.attributes[names.MCP_METHOD] == method
    assert names.GEN_AI_TOOL_NAME not in server.attributes
    assert server.name.split()[0] == method


async def test_a_uri_is_no_part_of_a_span_s_name(bench: Bench) -> None:
    offer(bench, "docs", capabilities=RESOURCES)
    await ask(bench, Kind.RESOURCE, "file:///a/1")
    for span in bench.recorder.spans:
        assert span.name == "resources/read"
        assert span.attributes[names.MCP_RESOURCE_URI] == "file:///a/1"


async def test_the_policy_is_asked_for_items_too(bench: Bench) -> None:
    bench.extra = {"rules": [by_scope({Effect.READ: "read", Effect.WRITE: "write"})]}
    offer(bench, "docs", capabilities={**RESOURCES, "extensions": {"io.example/x": {}}})
    reader = Principal(id="r", scopes=frozenset({"read"}))
    await ask(bench, Kind.RESOURCE, "file:///a", principal=reader)
    with pytest.raises(Refused):
        await ask(bench, Kind.METHOD, "x/do", principal=reader)
    with pytest.raises(Refused):
        await ask(bench, Kind.RESOURCE, "file:///a", principal=Principal(id="nobody"))


@pytest.mark.parametrize("method", ["tools/call", "initialize", "server/discover", "ping"])
async def test_a_method_of_the_protocol_itself_never_passes_as_an_extension(
    bench: Bench, method: str
) -> None:
    offer(bench, "docs", capabilities={"extensions": {"io.example/x": {}}})
    with pytest.raises(UnknownTarget):
        await ask(bench, Kind.METHOD, method)


async def test_a_hidden_server_s_things_are_as_unknown_as_its_tools(bench: Bench) -> None:
    bench.domains = (Domain(name="default", exclude=("secret/*",)),)
    offer(
        bench,
        "secret",
        prompts=({"name": "p"},),
        resources=({"uri": "file:///s", "name": "s"},),
        capabilities=RESOURCES,
    )
    view = bench.gateway.view("default")
    assert (view.prompts, view.resources, view.offered.servers) == ((), (), {})
    for kind, name in ((Kind.PROMPT, "secret__p"), (Kind.RESOURCE, "file:///s")):
        with pytest.raises(UnknownTarget):
            await ask(bench, kind, name)


async def test_changed_prompts_and_resources_are_announced_by_their_list(bench: Bench) -> None:
    offer(bench, "docs", prompts=({"name": "p"},))
    bench.gateway.view("default")
    heard: list[frozenset[tuple[str, str]]] = []
    bench.gateway.watch(heard.append)
    offer(bench, "docs", prompts=({"name": "q"},))
    offer(bench, "docs", prompts=({"name": "q"},), resources=({"uri": "a:b", "name": "b"},))
    bench.gateway.drop("docs")
    assert heard == [
        {("default", "prompts")},
        {("default", "resources")},
        {("default", "prompts"), ("default", "resources")},
    ]


async def test_what_a_client_answered_stays_out_of_traces_and_rows(bench: Bench) -> None:
    offer(bench, "docs", capabilities=RESOURCES)
    bench.sender.otherwise = CallerReplied(rpc_code=-1, rpc_message="my password is x")
    with pytest.raises(CallerReplied):
        await ask(bench, Kind.RESOURCE, "file:///a")
    assert bench.audit.rows[0].outcome == "caller_replied"
    assert "password" not in str(bench.audit.rows) + str(bench.recorder.spans)
