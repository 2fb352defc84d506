"""Which tool a call reaches, and what it sees while the catalogue changes."""

import asyncio

import pytest

from tests.support.waiting import until, within
from tests.unit.calls.conftest import Bench
from thoughtgate.calls.gateway import Update
from thoughtgate.catalog import Part, admit
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.errors import UnknownTarget
from thoughtgate.core.servers import LocalTransport, Server
from thoughtgate.core.tools import Effect
from thoughtgate.testing.sender import EMPTY
from thoughtgate.testing.values import make_definition, make_listing, make_server


def listed(name: str, *tools: str) -> tuple[Part, Server]:
    """Return what a server adds to a catalogue, with the server."""
    server = make_server(name)
    listing = make_listing(name, *tools)
    return admit(listing, server=server, effects={}, reject=lambda schema: None), server


async def test_a_call_reaches_the_tool_that_its_name_stands_for(bench: Bench) -> None:
    bench.offer("a", "b__c", "x.y", "x_y")
    bench.offer("a-b", "c", "get-catalog-entity")
    for entry in bench.gateway.view("default").entries:
        await bench.call(entry.name)
        assert bench.sender.sent[-1].tool.key == entry.tool.key
        assert bench.sender.sent[-1].advertised == entry.name
    assert len(bench.sender.sent) == 5


@pytest.mark.parametrize(
    "name", ["files__wipe", "files__nothing", "files__read.", "FILES__READ", ""]
)
async def test_hidden_missing_and_nearly_right_names_look_the_same(bench: Bench, name: str) -> None:
    bench.domains = (Domain(name="default", exclude=("files/wipe",)),)
    bench.offer("files", "read", "wipe")
    with pytest.raises(UnknownTarget) as caught:
        await bench.call(name)
    like = "; nearest: files__read" if name else ""
    assert caught.value.message == f"unknown tool: {name}{like}"
    assert caught.value.data == ({"nearest": ["files__read"]} if name else {})
    assert not bench.sender.sent


async def test_a_name_like_no_other_brings_no_names(bench: Bench) -> None:
    bench.offer("files", "read")
    with pytest.raises(UnknownTarget) as caught:
        await bench.call("weather")
    assert caught.value.message == "unknown tool: weather"
    assert not caught.value.data


async def test_a_tool_of_an_unknown_domain_is_an_unknown_tool(bench: Bench) -> None:
    bench.offer("files", "read")
    with pytest.raises(UnknownTarget) as caught:
        await bench.call("files__read", domain="nowhere")
    assert caught.value.message == "unknown tool: files__read"
    with pytest.raises(UnknownTarget):
        bench.gateway.view("nowhere")


async def test_each_domain_reaches_only_what_it_shows(bench: Bench) -> None:
    dress = {"files/read": ToolDress(rename="open_file")}
    bench.domains = (
        Domain(name="default", include=("files/*",), dress=dress),
        Domain(name="ops", include=("logs/*",)),
    )
    bench.offer("files", "read")
    bench.offer("logs", "read")
    await bench.call("open_file")
    await bench.call("logs__read", domain="ops")
    assert [call.tool.server for call in bench.sender.sent] == ["files", "logs"]
    for name, domain in (
        ("files__read", "default"),
        ("logs__read", "default"),
        ("open_file", "ops"),
    ):
        with pytest.raises(UnknownTarget):
            await bench.call(name, domain=domain)


async def test_one_servers_trouble_leaves_the_others_listed(bench: Bench) -> None:
    bench.offer("good", "t")
    bench.offer("bad", 5, make_definition("two words"))
    assert list(bench.gateway.view("default").table) == ["good__t"]
    assert len(bench.gateway.catalog.quarantined) == 2


async def test_a_running_call_ends_on_what_it_began_with(bench: Bench) -> None:
    started, go = asyncio.Event(), asyncio.Event()

    async def slow(call: Call) -> Result:
        started.set()
        await go.wait()
        return EMPTY

    bench.sender.answers["read"] = slow
    bench.offer("files", make_definition("read", outputSchema={"type": "object"}))
    before = bench.gateway.view("default").entries[0].tool.digest
    task = asyncio.create_task(bench.call("files__read"))
    await within(started.wait())
    bench.gateway.drop("files")
    go.set()
    result = await within(task)
    assert result.notes == ("invalid_result",)
    assert bench.audit.rows[0].tool_digest == before
    with pytest.raises(UnknownTarget):
        await bench.call("files__read")


async def test_a_call_of_a_tool_that_was_taken_away_says_so(bench: Bench) -> None:
    bench.offer("files", "read", "write")
    bench.gateway.view("default")
    bench.offer("files", "write")
    with pytest.raises(UnknownTarget) as caught:
        await bench.call("files__read")
    assert "removed" in caught.value.message
    assert bench.gateway.catalog.revision[:19] in caught.value.message
    bench.offer("files", "read")
    await bench.call("files__read")


async def test_a_server_that_points_elsewhere_shows_its_new_tools_only(bench: Bench) -> None:
    bench.offer("files", make_definition("read", description="old"))
    bench.offer("files", make_definition("read", description="new"), "stat")
    assert list(bench.gateway.view("default").table) == ["files__read", "files__stat"]
    await bench.call("files__read")
    assert bench.sender.sent[0].tool.definition["description"] == "new"


def test_only_domains_whose_list_changed_are_announced(bench: Bench) -> None:
    bench.domains = (
        Domain(name="default"),
        Domain(name="logs", include=("logs/*",)),
        Domain(name="none", exclude=("*",)),
    )
    bench.offer("files", "read")
    heard: list[frozenset[tuple[str, str]]] = []
    stop = bench.gateway.watch(heard.append)
    bench.offer("files", "read", "write")
    bench.offer("files", "read", "write")
    bench.offer("files", "write", "read", effects={"read": Effect.READ})
    assert heard == [{("default", "tools")}]
    bench.offer("logs", "tail")
    bench.gateway.drop("nobody")
    bench.gateway.drop("files")
    assert heard[1:] == [{("default", "tools"), ("logs", "tools")}, {("default", "tools")}]
    stop()
    bench.gateway.drop("logs")
    assert len(heard) == 3


def test_a_changed_domain_is_announced_and_a_removed_one_too(bench: Bench) -> None:
    bench.domains = (Domain(name="default"), Domain(name="other"))
    bench.offer("files", "read")
    heard: list[frozenset[tuple[str, str]]] = []
    bench.gateway.watch(heard.append)
    bench.gateway.set_domains([Domain(name="default", instructions="new"), Domain(name="other")])
    assert not heard
    assert bench.gateway.view("default").instructions == "new"
    bench.gateway.set_domains([Domain(name="default", exclude=("*",))])
    assert heard == [{("default", "tools"), ("other", "tools")}]


async def test_a_name_that_becomes_ambiguous_reaches_nobody(bench: Bench) -> None:
    bench.domains = (Domain(name="default", prefixed=False),)
    bench.offer("files", "read", "stat")
    await bench.call("read")
    bench.offer("impostor", "read")
    with pytest.raises(UnknownTarget):
        await bench.call("read")
    await bench.call("stat")
    assert [call.tool.server for call in bench.sender.sent] == ["files", "files"]


async def test_what_is_not_shown_changes_the_next_call_all_the_same(bench: Bench) -> None:
    bench.offer("files", "read")
    bench.gateway.view("default")
    bench.offer("files", "read", effects={"read": Effect.READ}, call_timeout=3.0)
    await bench.call("files__read")
    assert bench.sender.sent[0].tool.effect is Effect.READ
    assert bench.sender.sent[0].tool.call_timeout == 3.0


async def test_a_view_is_built_once_and_kept_while_nothing_changes(bench: Bench) -> None:
    bench.offer("files", "read")
    view = bench.gateway.view("default")
    bench.offer("files", "read")
    assert bench.gateway.view("default") is view


async def test_a_cancelled_call_cancels_what_is_below(bench: Bench) -> None:
    ended: list[str] = []

    async def hang(call: Call) -> Result:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(call.tool.name)
        return EMPTY

    bench.sender.otherwise = hang
    bench.offer("files", "read")
    task = asyncio.create_task(bench.call("files__read"))
    await until(lambda: bench.sender.sent)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert ended == ["read"]


def test_explain_says_what_happens_to_a_call_of_one_tool(bench: Bench) -> None:
    dress = {"files/read": ToolDress(fixed={"root": "/data"})}
    bench.domains = (Domain(name="default", dress=dress),)
    bench.offer("files", "read", transport=LocalTransport())
    told = dict(bench.gateway.explain("default", "files__read"))
    assert list(told)[-1] == "sent"
    assert "root" in told["resolved"]
    assert "/data" not in str(told)
    with pytest.raises(UnknownTarget):
        bench.gateway.explain("default", "files__nothing")


def test_every_view_is_ready_before_an_update_takes_effect(bench: Bench) -> None:
    bench.domains = (Domain(name="default"), Domain(name="logs", include=("logs/*",)))
    bench.offer("files", "read")
    part, server = listed("logs", "tail")
    prepared = bench.gateway.prepared(Update(parts=((part, server),)))
    assert list(bench.gateway.view("logs").table) == []
    assert list(prepared.after.views["logs"].table) == ["logs__tail"]
    before = bench.gateway.view("default")
    bench.gateway.adopt(prepared)
    assert bench.gateway.view("logs") is prepared.after.views["logs"]
    assert bench.gateway.view("default").slices[0] is before.slices[0]


def test_updates_that_were_prepared_beside_one_another_all_take_effect(bench: Bench) -> None:
    bench.offer("files", "read")
    first = bench.gateway.prepared(Update(parts=(listed("logs", "tail"),)))
    second = bench.gateway.prepared(Update(gone=frozenset({"files"})))
    bench.gateway.adopt(first)
    bench.gateway.adopt(second)
    assert list(bench.gateway.view("default").table) == ["logs__tail"]


def test_a_server_that_lists_the_same_again_changes_nothing(bench: Bench) -> None:
    bench.gateway.update(*listed("files", "read"))
    catalog, view = bench.gateway.catalog, bench.gateway.view("default")
    bench.gateway.update(*listed("files", "read"))
    assert bench.gateway.catalog is catalog
    assert bench.gateway.view("default") is view
