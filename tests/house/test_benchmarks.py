"""What a benchmark says is so: a wrong reply is no call, and no promise or number gets lost."""

import asyncio
import json
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks import grpc_ways, table
from benchmarks.__main__ import NAMES, main
from benchmarks.clients import HANDSHAKE, STATELESS, Client
from benchmarks.grpc_clients import Asking, ChannelPerCall, KeptChannel, by_method, natively
from benchmarks.grpc_echo import DECLARED, SAY, Text, result_of, server_on
from benchmarks.grpc_ways import NATIVE, REFLECTED
from benchmarks.load import Load, Measured, measured
from benchmarks.report import Bar, Report, arguments, document
from benchmarks.ways import NULL, NULL_MS, OURS
from tests.support.source import text_of
from tests.support.waiting import within
from thoughtgate.protos.descriptors import decode
from thoughtgate.upstream.grpc.native_call import read_result
from thoughtgate.upstream.grpc.spelling import reply_of

GOOD = '{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":{"text":"hello"}}}'


async def loaded(body: str, kind: str, era: str) -> Measured:
    """Measure three calls to a server that sends `body` to every request, its ID filled in."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := (await reader.readuntil(b"\r\n\r\n")).decode().lower():
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
            asked = json.loads(await reader.readexactly(length))
            text = body.replace("ID", str(asked.get("id", 0)))
            writer.write(
                f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n"
                f"Content-Length: {len(text)}\r\n\r\n{text}".encode()
            )

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except asyncio.IncompleteReadError:  # the load is over
            writer.close()
            await writer.wait_closed()
            over.set()

    over = asyncio.Event()
    server = await asyncio.start_server(served, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        load = Load(url=f"http://127.0.0.1:{port}/", era=era, sessions=1, calls=3, warmup=0)
        found = await within(measured(load, {}))
        await within(over.wait())
    return found


def measure_of(**cpu: float) -> Measured:
    return Measured(calls=1, errors=0, first_error="", rate=1.0, p50=1.0, p99=1.0, cpu=cpu, each={})


@pytest.mark.parametrize("era", [HANDSHAKE, STATELESS])
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", GOOD),
        ("text/event-stream", f"id: 1\ndata: \n\nevent: message\ndata: {GOOD}\n\n"),
    ],
)
async def test_a_reply_with_what_was_asked_for_is_a_call(kind: str, body: str, era: str) -> None:
    found = await loaded(body, kind, era)
    assert (found.calls, found.errors, found.first_error) == (3, 0, "")


@pytest.mark.parametrize(
    "body",
    [
        GOOD.replace("hello", "hallo"),
        GOOD.replace("ID", "7000"),
        GOOD.replace('{"structured', '{"isError":true,"structured'),
        '{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"no"}}',
    ],
    ids=["another text", "another id", "a failed tool", "an error"],
)
async def test_any_other_reply_is_an_error(body: str) -> None:
    found = await loaded(body, "application/json", STATELESS)
    assert (found.calls, found.errors) == (3, 3)
    assert found.first_error


@pytest.mark.parametrize("client", [KeptChannel, ChannelPerCall])
@pytest.mark.parametrize("asking", [natively, by_method])
async def test_a_call_of_a_grpc_server_counts_only_with_the_text_that_was_sent(
    client: Callable[[str, Asking], Client], asking: Asking
) -> None:
    server, port = server_on(0)
    await server.start()
    try:
        load = Load(
            client=lambda: client(f"127.0.0.1:{port}", asking),
            expected=b"hello",
            era=STATELESS,
            sessions=2,
            calls=4,
            warmup=0,
        )
        good = await within(measured(load, {}))
        wrong = await within(measured(replace(load, expected=b"hallo"), {}))
    finally:
        await server.stop(None)
    assert (good.calls, good.errors, good.first_error) == (4, 0, "")
    assert (wrong.calls, wrong.errors) == (4, 4)


def test_both_kinds_of_grpc_server_give_the_same_result() -> None:
    answer = decode(DECLARED, SAY.response, Text(text="hello").SerializeToString())
    assert read_result(result_of("hello")).result == reply_of(answer, 1_000).result


def test_what_a_reflected_server_costs_more_is_compared_within_each_round() -> None:
    def found(*cpu: float) -> list[Measured]:
        return [measure_of(gateway=one) for one in cpu]

    measured = {
        ((NATIVE, STATELESS, 32), OURS): found(0.5, 0.9, 0.5),
        ((REFLECTED, STATELESS, 32), OURS): found(0.6, 1.0, 0.8),
        (("none", STATELESS, 32), NULL): found(NULL_MS * 2),
    }
    native, more = grpc_ways.bars(measured)
    assert native.measured == 0.5
    assert native.limit == pytest.approx(2 * grpc_ways.NATIVE_LIMIT)
    assert more.measured == pytest.approx(0.1)
    assert more.limit == pytest.approx(2 * grpc_ways.REFLECTED_LIMIT)


@pytest.mark.parametrize(
    ("bar", "passed"),
    [
        (Bar(name="a", measured=1.0, limit=1.0), True),
        (Bar(name="a", measured=1.1, limit=1.0), False),
        (Bar(name="a", measured=1.1, limit=1.0, least=True), True),
        (Bar(name="a", measured=0.9, limit=1.0, least=True), False),
        (Bar(name="a", measured=None, limit=1.0), False),
    ],
)
def test_a_promise_without_its_number_is_broken(bar: Bar, passed: bool) -> None:
    assert bar.passed is passed


@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_no_benchmark_runs_no_rounds(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        arguments("one").parse_args(["--rounds", number])
    assert "argument --rounds" in capsys.readouterr().err


def test_help_names_every_benchmark_and_runs_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks", "--help"])
    assert main() == 0
    said = capsys.readouterr().out
    assert [name for name in NAMES if name not in said] == []


def test_what_was_found_stands_in_the_table_that_is_made_of_it() -> None:
    report = Report(
        name="memory",
        title="Memory",
        rows=[{"way": "one", "cpu_ms": 0.1234, "each": [1]}, {"way": "two", "note": "dumb"}],
        bars=[Bar(name="cheap", measured=0.5, limit=0.4, unit="ms")],
    )
    lines = table.rendered(document(report, Namespace(quick=False, rounds=5))).splitlines()
    assert "| way | cpu ms | note |" in lines
    assert "| one | 0.123 |  |" in lines
    assert "| two |  | dumb |" in lines
    assert "| cheap | 0.500 | ≤ 0.400 ms | **no** |" in lines


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_has_its_place_in_the_page(name: str) -> None:
    page = text_of(table.PAGE)
    assert page.count(f"<!-- begin {name} -->") == page.count(f"<!-- end {name} -->") == 1
    assert f"| `{name}` |" in page
