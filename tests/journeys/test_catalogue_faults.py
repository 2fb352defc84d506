"""What servers list, however oddly, and what clients are shown and can call: names, pages, faults.

Through a whole gateway, with raw peers at both ends.
"""

import asyncio
import socket
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.raw_clients import PATIENCE, RawClient
from tests.support.raw_gateway import RawGateway, raw_gateway
from tests.support.raw_json import RESERVED, difference, read, spell
from tests.support.raw_upstreams import (
    DOORS,
    HANDSHAKE,
    STATELESS,
    RawUpstream,
    listed,
    over_http,
)
from tests.support.waiting import until, within
from thoughtgate.core.servers import HttpTransport, Server

KINDS = [(transport, era) for transport in ("stdio", "http") for era in (HANDSHAKE, STATELESS)]
every_client = pytest.mark.parametrize(("transport", "era"), KINDS, ids=lambda value: str(value))


class House:
    """Opens servers and a gateway over them; all of it ends with the test."""

    def __init__(self, home: Path, ending: AsyncExitStack) -> None:
        self.home = home
        self.ending = ending
        self.config = ""
        self.names: list[str] = []

    async def server(
        self, name: str, upstream: RawUpstream, *more: str, door: str = "http"
    ) -> RawUpstream:
        """Serve `upstream`, and register it under a name with more lines of configuration."""
        lines = await self.ending.enter_async_context(DOORS[door](upstream))
        self.config += "\n".join([f"[servers.{name}]", lines, *more, ""])
        self.names.append(name)
        return upstream

    async def open(self, *settings: str, wait: bool = True) -> RawGateway:
        """Open the gateway; return when every server is listed, unless told not to wait."""
        config = "\n".join([*settings, self.config])
        gateway = await self.ending.enter_async_context(raw_gateway(self.home, config))
        gateway.discover()
        if wait:
            await gateway.listed(*self.names)
        return gateway

    async def client(self, *settings: str) -> RawClient:
        """Open the gateway and return a client of the newer era over HTTP."""
        return await (await self.open(*settings)).client("http", STATELESS)

    async def clients(self, *settings: str) -> list[RawClient]:
        """Open the gateway and return a client of each kind."""
        return await every_kind(await self.open(*settings))


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with AsyncExitStack() as ending:
        yield House(tmp_path, ending)


async def every_kind(gateway: RawGateway) -> list[RawClient]:
    """Return a client of each kind."""
    return [await gateway.client(*kind) for kind in KINDS]


def offering(*tools: dict[str, Any] | str, **fields: Any) -> RawUpstream:
    """Return a server with these tools on one page; a string is a tool's name."""
    shown = [{"name": tool} if isinstance(tool, str) else tool for tool in tools]
    return RawUpstream(page=lambda cursor: listed(*shown), **fields)


def numbered(total: int, size: int) -> Callable[[str | None], str]:
    """Return pages of `size` tools, `total` of them in all."""

    def page(cursor: str | None) -> str:
        start = int(cursor or 0)
        stop = min(start + size, total)
        tools = [{"name": f"t{number:04}"} for number in range(start, stop)]
        return listed(*tools, cursor=str(stop) if stop < total else None)

    return page


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def saying(word: str) -> str:
    return spell({"content": [{"type": "text", "text": word}]})


# pages


@pytest.mark.parametrize("door", ["http", "stdio"])
@pytest.mark.parametrize("era", [HANDSHAKE, STATELESS])
async def test_more_than_a_thousand_tools_on_many_pages_are_all_shown(
    house: House, door: str, era: str
) -> None:
    upstream = await house.server("many", RawUpstream(era, page=numbered(1203, 100)), door=door)
    client = await house.client()
    assert await client.names() == [f"many__t{number:04}" for number in range(1203)]
    assert upstream.methods.count("tools/list") == 13


async def test_a_client_gets_our_own_pages_and_every_tool_once(house: House) -> None:
    await house.server("a", RawUpstream(page=numbered(7, 3)))
    for client in await house.clients("[limits]", "page_size = 2"):
        first = (await client.page()).result
        assert [tool["name"] for tool in first["tools"]] == ["a__t0000", "a__t0001"]
        assert await client.names() == [f"a__t{number:04}" for number in range(7)]


async def test_a_cursor_that_we_did_not_give_is_refused(house: House) -> None:
    await house.server("a", RawUpstream(page=numbered(5, 5)))
    for client in await house.clients("[limits]", "page_size = 2"):
        given = (await client.page()).result["nextCursor"]
        for cursor in ("", "0", "2", "bogus", given + "0", given.upper() + "x"):
            assert (await client.page(cursor)).code == -32602
        assert len((await client.page(given)).result["tools"]) == 2


async def test_a_cursor_of_an_earlier_list_is_refused_and_not_read_as_an_offset(
    house: House,
) -> None:
    upstream = await house.server("a", RawUpstream(page=numbered(5, 5)))
    gateway = await house.open("[limits]", "page_size = 2")
    client = await gateway.client("stdio", HANDSHAKE)
    stale = (await client.page()).result["nextCursor"]
    upstream.page = numbered(6, 6)
    await gateway.app.upstreams.discover("a")
    await until(lambda: len(gateway.tools()) == 6, PATIENCE)
    assert (await client.page(stale)).code == -32602
    assert len(await client.names()) == 6


async def test_a_cursor_that_never_advances_ends_the_list_with_a_warning(house: House) -> None:
    pages = {None: ("one", "next"), "next": ("two", "next")}

    def page(cursor: str | None) -> str:
        name, following = pages[cursor]
        return listed({"name": name}, cursor=following)

    upstream = await house.server("loop", RawUpstream(page=page))
    await house.server("well", offering("x"))
    gateway = await house.open()
    client = await gateway.client("http", STATELESS)
    assert await client.names() == ["loop__one", "loop__two", "well__x"]
    assert upstream.methods.count("tools/list") == 2
    assert any("cursor" in warning for warning in gateway.app.gateway.catalog.warnings)
    assert not gateway.app.gateway.catalog.quarantined


async def test_a_list_without_end_is_cut_with_a_warning(house: House) -> None:
    def page(cursor: str | None) -> str:
        number = int(cursor or 0)
        return listed({"name": f"t{number}"}, cursor=str(number + 1))

    await house.server("endless", RawUpstream(page=page))
    gateway = await house.open()
    assert len(gateway.tools()) == 100
    assert any("100 pages" in warning for warning in gateway.app.gateway.catalog.warnings)


async def test_a_page_that_cannot_be_read_costs_only_itself(house: House) -> None:
    def page(cursor: str | None) -> str:
        return listed({"name": "first"}, cursor="2") if cursor is None else '{"tools":NaN}'

    await house.server("half", RawUpstream(page=page))
    gateway = await house.open()
    client = await gateway.client("http", HANDSHAKE)
    assert await client.names() == ["half__first"]
    assert any("page 2" in warning for warning in gateway.app.gateway.catalog.warnings)


# tools that cannot be shown, and schemas that must not be touched


BAD_TOOLS: dict[str, dict[str, Any]] = {
    "metaschema": {"name": "type-int", "inputSchema": {"properties": {"a": {"type": "int"}}}},
    "remote_reference": {
        "name": "far-away",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"$ref": "https://example.test/schema.json"}},
        },
    },
    "input_not_object": {"name": "list", "inputSchema": {"type": "array"}},
    "bad_output_schema": {"name": "out", "outputSchema": "object"},
    "bad_name": {"name": "a name with spaces"},
    "duplicate_name": {"name": "good"},
    "bad_field": {"name": "described", "description": ["no", "text"]},
}


async def test_one_bad_tool_is_held_back_with_a_reason_and_the_rest_are_shown(house: House) -> None:
    bad = list(BAD_TOOLS.values())
    upstream = await house.server("s", offering("good", *bad, {"name": ""}, "_private", "z" * 128))
    gateway = await house.open()
    held = {tool.rule: tool for tool in gateway.app.gateway.catalog.quarantined}
    assert set(held) >= set(BAD_TOOLS)
    assert all(tool.server == "s" and tool.reason for tool in held.values())
    for client in await every_kind(gateway):
        names = await client.names()
        assert names[:2] == ["s___private", "s__good"]
        assert len(names) == 3
        assert (await client.call("s__type-int")).code == -32602
        assert upstream.params == []
        await client.call(names[2])
        assert upstream.params.pop()["name"] == "z" * 128


FAITHFUL: dict[str, Any] = {
    "name": "tree",
    "title": "Tree",
    "x-unknown": {"z": 1, "a": [None, 123456789012345678901234567890]},
    "inputSchema": {
        "type": "object",
        "$schema": "http://json-schema.org/draft-07/schema#",
        "required": ["node"],
        "properties": {
            "node": {"$ref": "#/definitions/node"},
            "a": {"const": 1.0},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "pattern": {"type": "string", "format": "regex"},
        },
        "definitions": {
            "node": {
                "type": "object",
                "x-order": None,
                "properties": {"next": {"$ref": "#/definitions/node"}, "n": {"type": "integer"}},
            }
        },
        "x-vendor": {"hint": "kept"},
    },
    "outputSchema": {
        "type": "object",
        "$defs": {"b": {}},
        "properties": {"b": {"$ref": "#/$defs/b"}},
    },
    "annotations": {"readOnlyHint": True, "x-later": {}},
    "icons": [{"src": "https://example.test/i.png", "mimeType": "image/png"}],
    "_meta": {"vendor/key": {"deep": [1.5, -0.0]}},
}


GOOD = [
    '{"node":{"next":{"n":1}}}',
    '{"maybe":null,"node":{},"a":1}',
    spell({"node": {}, "pattern": "(" * 500}),
    '{"node":' + '{"next":' * 62 + "{}" + "}" * 63,
]
"""Nulls that the schema allows, patterns that are none, and nesting up to the guard."""


async def test_a_tool_is_shown_as_its_server_defines_it(house: House) -> None:
    upstream = await house.server("s", offering(FAITHFUL))
    for client in await house.clients():
        [shown] = await client.tools()
        assert difference({**FAITHFUL, "name": "s__tree"}, shown) is None
        for good in GOOD:
            assert (await client.call("s__tree", good)).result["content"] == []
            assert difference(read(good), upstream.params.pop()["arguments"]) is None
        bad = await client.call("s__tree", '{"node":{"next":{"n":"1"}}}')
        assert bad.trouble == "invalid_arguments"
        assert bad.result["structuredContent"]["problems"][0]["pointer"] == "/node/next/n"
        assert upstream.params == []


async def test_a_tool_is_remembered_as_its_server_defined_it(house: House) -> None:
    """After a restart the list is there before the server is, and value for value the same."""
    upstream = await house.server("s", offering(FAITHFUL))
    async with raw_gateway(house.home, house.config) as before:
        before.discover()
        await before.listed("s")
    upstream.deaf = True
    async with raw_gateway(house.home, house.config) as after:
        client = await after.client("http", STATELESS)
        [shown] = await client.tools()
    assert difference({**FAITHFUL, "name": "s__tree"}, shown) is None


# names


async def test_two_servers_may_have_tools_of_the_same_name(house: House) -> None:
    a = await house.server("a", offering("search", result=saying("from a")))
    b = await house.server("b", offering("search", result=saying("from b")))
    client = await house.client()
    assert await client.names() == ["a__search", "b__search"]
    assert text((await client.call("a__search")).result) == "from a"
    assert text((await client.call("b__search")).result) == "from b"
    assert [len(server.params) for server in (a, b)] == [1, 1]
    assert (await client.call("search")).code == -32602


ODD_NAMES = ["get-catalog-entity", "a_b", "a__b", "__", "x.y", "x_y", "x.y.z", "L" * 100, "L" * 101]


async def test_every_name_leads_to_its_own_tool_whatever_it_looks_like(house: House) -> None:
    servers = {}
    for name in ("a", "a-b", "get", "get-catalog"):
        servers[name] = await house.server(name, offering(*ODD_NAMES))
    client = await house.client()
    names = await client.names()
    assert len(set(names)) == len(servers) * len(ODD_NAMES)
    for name in names:
        assert len(name) <= 60
        assert name.replace("_", "").replace("-", "").isalnum()
        await client.call(name, spell({"as": name}))
    for server, upstream in servers.items():
        called = {params["name"]: params["arguments"]["as"] for params in upstream.params}
        assert list(called) == sorted(ODD_NAMES, key=ODD_NAMES.index) or set(called) == set(
            ODD_NAMES
        )
        assert len(upstream.params) == len(ODD_NAMES)
        assert all(advertised.startswith(f"{server}__") for advertised in called.values())


async def test_names_do_not_change_when_a_server_is_added(house: House) -> None:
    await house.server("a", offering(*ODD_NAMES))
    async with raw_gateway(house.home, house.config) as alone:
        alone.discover()
        await alone.listed("a")
        before = await (await alone.client("http", STATELESS)).names()
    await house.server("b", offering(*ODD_NAMES))
    names = await (await house.client()).names()
    assert [name for name in names if name.startswith("a__")] == before


# servers that change, die or hang


def registered(name: str, lines: str) -> Server:
    return Server(name=name, transport=HttpTransport(url=lines.split('"')[1]))


def gated() -> tuple[RawUpstream, asyncio.Event, asyncio.Event]:
    """Return a server whose tool waits, and the events that say and end it."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def answer(params: dict[str, Any]) -> str:
        begun.set()
        await go_on.wait()
        return saying("from the old one")

    return offering("slow", answer=answer), begun, go_on


async def test_a_call_ends_on_the_server_it_began_on_when_that_is_pointed_elsewhere(
    house: House,
) -> None:
    old, begun, go_on = gated()
    new = offering("slow", "fresh", result=saying("from the new one"))
    urls = [await house.ending.enter_async_context(over_http(one)) for one in (old, new)]
    gateway = await house.open()
    registry = gateway.app.registry
    registry.put_server(registered("s", urls[0]))
    await gateway.listed("s")
    waiting, client = [await gateway.client("http", STATELESS) for _ in range(2)]
    call = asyncio.create_task(waiting.call("s__slow"))
    await within(begun.wait(), PATIENCE)

    registry.put_server(registered("s", urls[1]))
    await until(lambda: len(gateway.tools()) == 2, PATIENCE)
    assert await client.names() == ["s__fresh", "s__slow"]
    assert text((await client.call("s__slow")).result) == "from the new one"

    go_on.set()
    assert text((await call).result) == "from the old one"
    assert len(old.params) == 1


async def test_a_removed_server_ends_its_call_and_its_tools_are_named_as_removed(
    house: House,
) -> None:
    old, begun, go_on = gated()
    url = await house.ending.enter_async_context(over_http(old))
    gateway = await house.open()
    gateway.app.registry.put_server(registered("s", url))
    await gateway.listed("s")
    waiting, clients = await gateway.client("http", STATELESS), await every_kind(gateway)
    assert await clients[0].names() == ["s__slow"]
    call = asyncio.create_task(waiting.call("s__slow"))
    await within(begun.wait(), PATIENCE)

    gateway.app.registry.remove_server("s")
    await until(lambda: not gateway.tools(), PATIENCE)
    for client in clients:
        assert await client.names() == []
        refused = await client.call("s__slow")
        assert refused.code == -32602
        assert "removed at catalogue revision" in refused.reply["error"]["message"]
        assert "removed" not in (await client.call("s__never")).reply["error"]["message"]

    go_on.set()
    assert text((await call).result) == "from the old one"


async def test_a_dead_and_a_hanging_server_cost_the_others_nothing(house: House) -> None:
    await house.server("well", offering("x", result=saying("well")))
    hanging = await house.server("hanging", RawUpstream(deaf=True))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        house.config += f'[servers.dead]\nurl = "http://127.0.0.1:{port}/mcp"\n'
        house.config += '[servers.gone]\ncommand = ["/nonexistent/server"]\n'
        gateway = await house.open(wait=False)
        await gateway.listed("well")
        for client in await every_kind(gateway):
            assert await client.names() == ["well__x"]
            assert text((await client.call("well__x")).result) == "well"
        await until(lambda: len(gateway.said) >= 3, PATIENCE)
        assert await client.names() == ["well__x"]
    assert hanging.methods
    told = {line.partition(":")[0] for line in gateway.said}
    assert told == {"well", "dead", "gone"}


# results


SHAPED = {
    "name": "shaped",
    "outputSchema": {
        "type": "object",
        "required": ["n"],
        "properties": {"n": {"type": "integer"}},
    },
}
WRONG = '{"content":[],"structuredContent":{"n":"1","secret":"xyzzy"}}'
FAILED = '{"content":[{"type":"text","text":"no"}],"structuredContent":{"why":1},"isError":true}'


async def test_a_result_that_breaks_its_schema_is_passed_on_with_a_note(house: House) -> None:
    upstream = await house.server("lax", offering(SHAPED, result=WRONG))
    for client in await house.clients():
        upstream.result = WRONG
        got = (await client.call("lax__shaped")).result
        assert got["structuredContent"] == {"n": "1", "secret": "xyzzy"}
        upstream.result = FAILED
        got = (await client.call("lax__shaped")).result
        assert {key: got[key] for key in read(FAILED)} == read(FAILED)


async def test_a_strict_server_is_held_to_its_schema_but_not_in_its_errors(house: House) -> None:
    upstream = await house.server("strict", offering(SHAPED), 'results = "strict"')
    for client in await house.clients():
        upstream.result = WRONG
        refused = await client.call("strict__shaped")
        assert refused.trouble == "invalid_result"
        assert refused.result["structuredContent"]["problems"][0]["pointer"] == "/n"
        upstream.result = FAILED
        got = (await client.call("strict__shaped")).result
        assert {key: got[key] for key in read(FAILED)} == read(FAILED)
        upstream.result = '{"content":[]}'
        assert (await client.call("strict__shaped")).trouble == "invalid_result"
        upstream.result = '{"content":[],"structuredContent":{"n":1}}'
        assert (await client.call("strict__shaped")).result["structuredContent"] == {"n": 1}
    assert len(upstream.params) == 4 * len(KINDS)


# what goes up with a call


HEADED = {
    "name": "headed",
    "inputSchema": {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"},
            "b": {"type": "boolean", "x-mcp-header": "B"},
        },
    },
}


async def test_arguments_that_a_tool_wants_in_headers_are_put_there_unchanged(
    house: House,
) -> None:
    upstream = await house.server("s", offering(HEADED), 'nulls = "pass"')
    client = await (await house.open()).client("stdio", HANDSHAKE)
    for region in ("eu", "", "é🎉", " outer ", "=?base64?eA==?=", "a\nb: c"):
        await client.call("s__headed", spell({"region": region, "n": 2**70, "b": True}))
        sent = upstream.heads[-1]
        header = sent.header("mcp-param-region") or ""
        wrapped = header.startswith("=?base64?")
        assert region == (b64decode(header[9:-2]).decode() if wrapped else header)
        assert (sent.header("mcp-param-n"), sent.header("mcp-param-b")) == (str(2**70), "true")
    await client.call("s__headed", '{"region":null}')
    assert "mcp-param" not in upstream.heads[-1].head.lower()
    assert upstream.params[-1]["arguments"] == {"region": None}


every_server = pytest.mark.parametrize(("door", "far"), KINDS, ids=lambda value: str(value))


@every_server
async def test_arguments_go_up_as_they_came_and_nothing_is_made_up(
    house: House, door: str, far: str
) -> None:
    upstream = await house.server("s", RawUpstream(far), door=door)
    for client in await house.clients():
        await client.call("s__echo", None)
        sent = upstream.params.pop()
        assert sent["arguments"] == {}
        assert "progressToken" not in sent.get("_meta", {})
        for wrong in ("null", "[]", '"{}"', "0", "false"):
            assert (await client.call("s__echo", wrong)).code == -32602
        assert upstream.params == []


@every_server
async def test_meta_of_the_client_goes_up_and_what_belongs_to_a_hop_does_not(
    house: House, door: str, far: str
) -> None:
    custom = {"vendor/x": {"b": None, "a": [1.0]}, "thoughtgate/y": 1, "baggage": "k=v"}
    hop = {RESERVED + "related-task": {"taskId": "1"}, RESERVED + "x": 1}
    upstream = await house.server("s", RawUpstream(far), door=door)
    for client in await house.clients():
        await client.call("s__echo", "{}", {**custom, **hop})
        meta = upstream.params.pop()["_meta"]
        ours = {key for key in meta if key.startswith(RESERVED)}
        assert difference(custom, {key: meta[key] for key in meta if key not in ours}) is None
        assert not {*hop} & ours
        if far == STATELESS:
            assert meta[RESERVED + "clientInfo"]["name"] == "thoughtgate"
        else:
            assert not ours


@pytest.mark.parametrize(("transport", "era"), KINDS, ids=lambda value: str(value))
async def test_progress_comes_back_under_the_token_that_the_client_gave(
    house: House, transport: str, era: str
) -> None:
    """Two clients with the same token each get their own; upstream the tokens differ."""
    upstream = await house.server("s", offering("work"))
    gateway = await house.open()
    clients = [await gateway.client(transport, era) for _ in range(2)]
    upstream.notes = [{"progress": 1}, {"progress": 2, "total": 2.5, "message": "half"}]
    for token in ("same", 0, 2**60, ""):
        calls = [client.call("s__work", "{}", {"progressToken": token}) for client in clients]
        for got in await asyncio.gather(*calls):
            wanted = [{"progressToken": token, **note} for note in upstream.notes]
            assert [note["params"] for note in got.notes] == wanted
        sent = [params["_meta"]["progressToken"] for params in upstream.params[-2:]]
        assert len(set(sent)) == 2

    assert (await clients[0].call("s__work")).notes == []
    assert "progressToken" not in upstream.params[-1].get("_meta", {})
    for wrong in (1.5, "x" * 257, True):
        assert (await clients[0].call("s__work", "{}", {"progressToken": wrong})).code == -32602


@pytest.mark.parametrize("door", ["http", "stdio"])
async def test_a_result_of_an_older_server_cannot_pose_as_a_question(
    house: House, door: str
) -> None:
    """`resultType` belongs to the newer era's hop; in the older one it is an unknown field."""
    upstream = await house.server("old", RawUpstream(HANDSHAKE), door=door)
    for client in await house.clients():
        for key in ("resultType", "resultTyp\\u0065"):
            upstream.result = f'{{"{key}":"input_required","content":[],"inputRequests":{{}}}}'
            got = (await client.call("old__echo")).result
            assert got.get("resultType", "complete") == "complete"
            assert got["inputRequests"] == {}


@pytest.mark.parametrize("door", ["http", "stdio"])
async def test_a_question_that_nobody_offered_to_answer_fails_its_call(
    house: House, door: str
) -> None:
    upstream = await house.server("new", RawUpstream(STATELESS), door=door)
    for client in await house.clients():
        for key in ("resultType", "resultTyp\\u0065"):
            asked = '{"who":{"method":"elicitation/create","params":{"message":"who?"}}}'
            upstream.result = f'{{"{key}":"input_required","inputRequests":{asked}}}'
            assert (await client.call("new__echo")).trouble == "upstream_garbled"
