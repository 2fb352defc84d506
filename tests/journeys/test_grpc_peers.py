"""gRPC servers that others wrote, on Node and by grpclib: reflected and called by the gateway.

Each is a process of its own, as is the gateway; the SDK's client asks over HTTP.
"""

import select
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.support.gate import ROOT, START, STOP, Gate, gate, home
from tests.support.grpc_orders import DATA, ORDERS
from tests.support.peers import MODULES, NODE, PEERS, PeersMissing, environment
from tests.support.waiting import within


@contextmanager
def process(command: Sequence[str]) -> Iterator[int]:
    """Run a server and yield the port that it prints."""
    running = subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    assert running.stdout is not None
    try:
        assert select.select([running.stdout], [], [], START)[0]
        yield int(running.stdout.readline())
    finally:
        running.kill()
        running.communicate(timeout=STOP)


def node(folder: Path) -> list[str]:
    if not (MODULES / "@grpc" / "reflection").is_dir():
        raise PeersMissing(MODULES / "@grpc" / "reflection")
    shutil.copytree(DATA, folder / "shop")
    return [str(NODE), str(PEERS / "grpc_orders.cjs"), str(folder)]


def grpclib(_: Path) -> list[str]:
    return [sys.executable, "-m", "tests.support.grpclib_peer"]


@pytest.fixture(scope="module", params=[pytest.param(node, marks=pytest.mark.peers), grpclib])
def gateway(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gate]:
    with process(request.param(tmp_path_factory.mktemp("protos"))) as port:
        settings = f'[servers.shop]\nurl = "grpc://127.0.0.1:{port}"\nreflect = ["{ORDERS}"]\n'
        with gate(home(tmp_path_factory.mktemp("home"), settings + "bidi = true\n")) as running:
            yield running


async def called(client: Client, method: str, arguments: dict[str, Any]) -> Any:
    name = f"shop__shop-v1-Orders-{method}"
    result = await within(client.call_tool(name, arguments), START)
    assert not result.is_error, result
    return result.structured_content


async def test_methods_of_all_four_kinds_are_called(gateway: Gate) -> None:
    orders = [{"price": {"cents": 2}}, {"price": {"cents": "3"}}]
    async with Client(gateway.url()) as client:
        got = await called(client, "GetOrder", {"number": "9007199254740993"})
        watched = await called(client, "WatchOrder", {"number": 1, "changes": 2})
        summed = await called(client, "SumOrders", {"messages": orders})
        priced = await called(client, "PriceOrders", {"messages": orders})
    assert (got["number"], got["items"]) == ("9007199254740993", ["tea"])
    assert [one["items"] for one in watched["messages"]] == [["change 1"], ["change 2"]]
    assert summed["cents"] == "5"
    assert [one["cents"] for one in priced["messages"]] == ["2", "3"]


async def test_a_map_is_an_object_both_ways(gateway: Gate) -> None:
    order = {"number": "1", "items": [], "labels": {"where": "here", "": "empty"}}
    async with Client(gateway.url()) as client:
        got = await called(client, "GetOrder", {})
        placed = await called(client, "PlaceOrder", order)
    assert list(got["labels"]) == ["from"]
    assert placed["labels"] == order["labels"]
