"""What one side sends is what the other side gets, value for value, whatever they speak.

Raw peers stand at both ends: they spell and read JSON by themselves, so that they share no mistake
with the gateway. Only the keys that belong to a hop may differ.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import product
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import example, given, settings

from tests.support.raw_clients import Got, RawClient
from tests.support.raw_gateway import RawGateway, raw_gateway
from tests.support.raw_json import (
    RESERVED,
    Number,
    Style,
    difference,
    kept_meta,
    read,
    spell,
    without_hop,
)
from tests.support.raw_upstreams import (
    DOORS,
    HANDSHAKE,
    STATELESS,
    WHOLE,
    Framing,
    RawUpstream,
    listed,
)
from tests.support.raw_values import MAX_DEPTH, Case, cases, tower

pytestmark = pytest.mark.asyncio(loop_scope="module")

KINDS = list(product(("stdio", "http"), (HANDSHAKE, STATELESS)))
"""Transport and era, of a client as well as of an upstream."""

TOOLS = (
    {"name": "plain"},
    {"name": "shaped", "outputSchema": {"type": "object"}},
    {"name": "any.shape", "outputSchema": {"type": ["array", "string"]}},
    {"name": "nulls", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}},
)
LIST = listed(*TOOLS)
SHOWN = {"any.shape": "any_shape"}


class Rig:
    """One gateway, a server and a client of each kind."""

    def __init__(self) -> None:
        self.gateway: RawGateway
        self.upstreams: dict[tuple[str, str], RawUpstream] = {}
        self.clients: dict[tuple[str, str], RawClient] = {}
        self.names: list[str] = []

    def name(self, kind: tuple[str, str], tool: str) -> str:
        prefix = f"{'-'.join(kind)}__{SHOWN.get(tool, tool)}"
        return next(name for name in self.names if name.startswith(prefix))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    rig, config = Rig(), ""
    async with AsyncExitStack() as ending:
        for transport, era in KINDS:
            upstream = rig.upstreams[transport, era] = RawUpstream(era, page=lambda _: LIST)
            lines = await ending.enter_async_context(DOORS[transport](upstream))
            config += f'[servers.{transport}-{era}]\nnulls = "pass"\n{lines}\n'
        home = tmp_path_factory.mktemp("fidelity")
        gateway = rig.gateway = await ending.enter_async_context(raw_gateway(home, config))
        gateway.discover()
        await gateway.listed(*("-".join(kind) for kind in KINDS))
        for kind in KINDS:
            rig.clients[kind] = await gateway.client(*kind)
        rig.names = await rig.clients[KINDS[0]].names()
        yield rig


def label(kind: tuple[str, str]) -> str:
    return "-".join(kind)


every_client = pytest.mark.parametrize("near", KINDS, ids=label)
every_upstream = pytest.mark.parametrize("far", KINDS, ids=label)

BLOCK = {
    "type": "resource",
    "resource": {"uri": "urn:x", "blob": "AA==", "_meta": {"a": None}, "x": [Number("1.10")]},
    "annotations": {"priority": Number("0.50"), "x": {}},
    "_meta": {RESERVED + "kept": "a block is no hop"},
}
DEEP = tower(MAX_DEPTH - 1, Number("-0.0"))
WIDE = {str(number): [number, {}] for number in range(5000)}
STREAM = Framing(events=True, pieces=7, newline="\r\n")


@every_client
@settings(deadline=None, derandomize=True, database=None, max_examples=150)
@given(case=cases)
@example(case=Case({"deep": DEEP}, {"content": [], "structuredContent": {"deep": DEEP}}, {}))
@example(case=Case(WIDE, {"content": [], "structuredContent": WIDE}, {}, framing=STREAM))
@example(case=Case({}, {"content": [], "structuredContent": None}, {"deep": tower(MAX_DEPTH - 1)}))
@example(case=Case({}, {"content": [], "structuredContent": [None, {}, []]}, {}, tool="any.shape"))
@example(case=Case({}, {"content": [BLOCK], "structuredContent": 1, "isError": True}, {}, token=0))
@example(
    case=Case(
        {"b": None, "a": ""}, {"content": []}, {"k": {}}, "t", {}, Style("\r\n", True), STREAM
    )
)
async def test_a_call_and_its_result_arrive_as_they_were_sent(
    rig: Rig, near: tuple[str, str], case: Case
) -> None:
    """Each example goes through the four pairs that this client makes with the upstreams."""
    for far in KINDS:
        await _send(rig, near, far, case)


async def _send(rig: Rig, near: tuple[str, str], far: tuple[str, str], case: Case) -> None:
    upstream, client = rig.upstreams[far], rig.clients[near]
    arguments = spell(case.arguments, _style(near, case))
    upstream.params.clear()
    upstream.result, upstream.framing = spell(case.result, _style(far, case)), case.framing
    upstream.notes = [] if case.token is None else [{"progress": 1, "x-unknown": case.note}]
    meta = case.meta if case.token is None else {**case.meta, "progressToken": case.token}

    got = await client.call(rig.name(far, case.tool), arguments, meta)

    sent = upstream.params.pop()
    assert sent["name"] == case.tool, far
    assert difference(read(arguments), sent["arguments"]) is None, far
    assert difference(read(spell(case.meta)), kept_meta(sent.get("_meta", {}))) is None, far
    assert difference(without_hop(read(upstream.result)), without_hop(got.result)) is None, far
    _check_hop(client.era, got.result)
    _check_progress(case, got)


def _style(kind: tuple[str, str], case: Case) -> Style:
    return case.style.on_one_line() if kind[0] == "stdio" else case.style


def _check_hop(era: str, result: dict[str, Any]) -> None:
    """A result carries the marks of its own hop, and none of the other one's."""
    meta = result.get("_meta")
    reserved = {key for key in meta if key.startswith(RESERVED)} if isinstance(meta, dict) else ()
    if era == STATELESS:
        assert result["resultType"] == "complete"
        assert reserved == {RESERVED + "serverInfo"}
        assert result["_meta"][RESERVED + "serverInfo"]["name"] == "thoughtgate"
    else:
        assert "resultType" not in result
        assert not reserved


def _check_progress(case: Case, got: Got) -> None:
    """Progress comes back under the client's own token, and only when it gave one."""
    params = [note["params"] for note in got.notes]
    if case.token is None:
        assert params == []
    else:
        wanted = {"progressToken": case.token, "progress": 1, "x-unknown": read(spell(case.note))}
        assert [difference(wanted, one) for one in params] == [None]


@every_upstream
@every_client
async def test_null_absent_and_value_stay_three_things_where_nulls_pass(
    rig: Rig, near: tuple[str, str], far: tuple[str, str]
) -> None:
    for text in ('{"a":null,"b":null}', "{}", '{"a":"x"}'):
        await rig.clients[near].call(rig.name(far, "nulls"), text)
        assert difference(read(text), rig.upstreams[far].params.pop()["arguments"]) is None


BEYOND = {
    "65 levels": spell(tower(MAX_DEPTH + 1)),
    "20,000 levels": spell({"a": Number("[" * 20_000 + "]" * 20_000)}),
    "not a number": '{"a":NaN}',
    "infinite": '{"a":[-Infinity]}',
    "beyond a double": '{"a":1e999}',
    "a key twice": '{"a":{"b":1,"c":2,"b":1}}',
    "a key twice in two spellings": '{"a":1,"\\u0061":1}',
    "half a character": '{"a":"\\ud83d"}',
    "half a key": '{"\\udc00":1}',
    "5,000 digits": f'{{"a":{"7" * 5000}}}',
    "not utf-8": '{"a":"\udcff"}',
}
"""Objects that nobody may read, as two readers could read them differently or not at all."""

every_fault = pytest.mark.parametrize("text", BEYOND.values(), ids=list(BEYOND))


@every_client
@every_fault
async def test_arguments_beyond_the_guards_are_refused_and_never_sent(
    rig: Rig, near: tuple[str, str], text: str
) -> None:
    client, name = rig.clients[near], rig.name(KINDS[0], "plain")
    upstream = rig.upstreams[KINDS[0]]
    upstream.notes, upstream.result = [], '{"content":[]}'
    got = await client.call(name, text)
    assert got.code == -32700
    assert got.reply["id"] is not None, "the client would not know which call it was"
    assert got.status == (400 if near[0] == "http" else 200)
    assert upstream.params == []
    assert (await client.call(name)).result["content"] == []
    upstream.params.clear()


@every_upstream
@every_fault
async def test_a_result_beyond_the_guards_fails_its_call_and_no_other(
    rig: Rig, far: tuple[str, str], text: str
) -> None:
    client, upstream, name = rig.clients[KINDS[3]], rig.upstreams[far], rig.name(far, "plain")
    upstream.notes = []
    for upstream.framing in (WHOLE, STREAM):
        upstream.result = f'{{"content":[],"structuredContent":{text}}}'
        assert (await client.call(name)).trouble == "upstream_garbled"
        upstream.result = '{"content":[],"structuredContent":{"well":1}}'
        assert (await client.call(name)).result["structuredContent"] == {"well": 1}
    assert len(upstream.params) == 4
    upstream.params.clear()


@every_upstream
async def test_a_result_may_be_larger_than_a_request(rig: Rig, far: tuple[str, str]) -> None:
    upstream = rig.upstreams[far]
    upstream.result = spell({"content": [{"type": "text", "text": "é" * 3_000_000}]})
    got = await rig.clients[KINDS[3]].call(rig.name(far, "plain"))
    assert difference(read(upstream.result), without_hop(got.result)) is None
    upstream.params.clear()


LARGE = spell({"a": "x" * (4 << 20)})


@pytest.mark.parametrize("era", [HANDSHAKE, STATELESS])
async def test_a_body_of_more_than_four_mebibytes_is_refused_unread(rig: Rig, era: str) -> None:
    client, name = rig.clients["http", era], rig.name(KINDS[0], "plain")
    got = await client.call(name, LARGE)
    assert (got.status, got.code) == (413, -32600)
    assert rig.upstreams[KINDS[0]].params == []
    assert "error" not in (await client.call(name)).reply
    rig.upstreams[KINDS[0]].params.clear()


async def test_a_line_of_more_than_four_mebibytes_is_refused_and_read_past(rig: Rig) -> None:
    """Its own request fails; what follows on the pipe is served."""
    client, name = await rig.gateway.client("stdio", HANDSHAKE), rig.name(KINDS[0], "plain")
    got = await client.call(name, LARGE)
    assert got.code == -32700
    assert got.reply["id"] is not None
    assert rig.upstreams[KINDS[0]].params == []
    assert "error" not in (await client.call(name)).reply
    assert "error" not in (await rig.clients[KINDS[0]].call(name)).reply
    assert len(rig.upstreams[KINDS[0]].params) == 2
    rig.upstreams[KINDS[0]].params.clear()
