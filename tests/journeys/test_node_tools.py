"""The example's tool server on Node, by the gateway: listed, called with progress, cancelled."""

import asyncio
import subprocess
from collections.abc import Iterator

import pytest
from mcp import Client

from tests.support.gate import ROOT, START, STOP, Gate, gate, home
from tests.support.peers import MODULES, NODE, PeersMissing, environment
from tests.support.waiting import within

pytestmark = pytest.mark.peers

SERVER = ROOT / "examples" / "node_tool_server" / "server.cjs"


@pytest.fixture(scope="module")
def node() -> Iterator["subprocess.Popen[str]"]:
    if not (MODULES / "@grpc" / "proto-loader").is_dir():
        raise PeersMissing(MODULES / "@grpc" / "proto-loader")
    running = subprocess.Popen(
        [str(NODE), str(SERVER), str(ROOT / "proto")],
        env={**environment(), "NODE_PATH": str(MODULES)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield running
    finally:
        running.terminate()
        running.communicate(timeout=STOP)


@pytest.fixture(scope="module")
def gateway(
    node: "subprocess.Popen[str]", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gate]:
    assert node.stdout is not None
    port = int(node.stdout.readline())
    settings = f'[servers.node]\nurl = "grpc://127.0.0.1:{port}"\n'
    with gate(home(tmp_path_factory.mktemp("home"), settings)) as running:
        yield running


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_of_another_language_are_called_like_any_other(
    gateway: Gate, mode: str
) -> None:
    async with Client(gateway.url(), mode=mode) as client:
        listed = (await within(client.list_tools(), START)).tools
        good = await within(client.call_tool("node__slug", {"title": "Ünder The Sea!"}), START)
        bad = await within(client.call_tool("node__slug", {"title": "!"}), START)
        wrong = await within(client.call_tool("node__slug", {"title": ""}), START)
    assert {tool.name for tool in listed} == {"node__slug", "node__count_down"}
    assert good.structured_content == {"slug": "ünder-the-sea"}
    assert bad.is_error
    assert wrong.is_error


async def test_progress_comes_through(gateway: Gate) -> None:
    seen: list[tuple[float, float | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    async with Client(gateway.url()) as client:
        counting = client.call_tool("node__count_down", {"from": 3}, progress_callback=on_progress)
        done = await within(counting, START)
    assert done.structured_content == {"steps": 3}
    assert seen == [(1, 3), (2, 3), (3, 3)]


async def test_a_cancelled_call_is_cancelled_there(
    gateway: Gate, node: "subprocess.Popen[str]"
) -> None:
    started = asyncio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        started.set()

    async with Client(gateway.url()) as client:
        counting = asyncio.ensure_future(
            client.call_tool("node__count_down", {"from": 900}, progress_callback=on_progress)
        )
        await within(started.wait())
        counting.cancel()
        assert node.stdout is not None
        said = await within(asyncio.to_thread(node.stdout.readline), START)
    assert said == "cancelled\n"
