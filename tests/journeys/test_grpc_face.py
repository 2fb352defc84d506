"""A gateway that is served over gRPC too: real processes, from the port to the audit log."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.journeys.test_traces import PEER, SETTINGS, of_trace
from tests.support.children import children
from tests.support.gate import START, Gate, gate, gated, home, python_server
from tests.support.waiting import until, within
from thoughtgate.cli.exits import Exit
from thoughtgate.testing.otlp import OtlpReceiver
from thoughtgate_client import ConnectionLost, Progress, ToolFailed, connect
from thoughtgate_client import Gate as Client

ON = ("--grpc-port", "0")


@pytest.fixture(scope="module")
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, receiver: OtlpReceiver) -> Iterator[Gate]:
    place = home(
        tmp_path_factory.mktemp("home"),
        SETTINGS,
        OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
        OTEL_BSP_SCHEDULE_DELAY="20",
    )
    with gate(place, *ON) as running:
        yield running


def address(running: Gate, domain: str = "") -> str:
    return running.hear("listening on grpc://").split()[-1] + f"/{domain}"


async def test_a_call_over_grpc_is_two_spans_below_the_callers(
    gateway: Gate, receiver: OtlpReceiver
) -> None:
    trace, parent = "e" * 32, "f" * 16
    headers = {"traceparent": f"00-{trace}-{parent}-01"}
    async with connect(address(gateway), headers=headers) as client:
        result = await within(client.call("new__meta"))
    spans = of_trace(receiver, trace, 2)
    server, upstream = spans["server"], spans["client"]
    assert (server.name, server.parent_id) == ("tools/call new__meta", parent)
    assert server.attributes["rpc.system.name"] == "grpc"
    assert server.attributes["rpc.method"] == "thoughtgate.gateway.v1.GatewayServer/CallTool"
    assert server.attributes["thoughtgate.origin"] == "grpc"
    assert "mcp.protocol.version" not in server.attributes
    assert upstream.parent_id == server.span_id
    assert result.structured["meta"]["traceparent"] == f"00-{trace}-{upstream.span_id}-01"


@pytest.mark.parametrize("server", ["old", "new"])
async def test_progress_and_cancelling_reach_servers_of_both_eras(
    gateway: Gate, server: str
) -> None:
    seen: list[Progress] = []
    async with connect(address(gateway)) as client:
        await within(client.call(f"{server}__progress", on_progress=seen.append))
        assert [one.message for one in seen] == ["step 0", "step 1", "step 2"]
        waiting = asyncio.create_task(client.call(f"{server}__wait"))
        await within(_waits(client, server, 1))
        waiting.cancel()
        await within(asyncio.wait([waiting]))
        await within(_waits(client, server, 0))


async def _waits(client: Client, server: str, count: int) -> None:
    """Return when so many calls wait at a server."""
    while (await client.call(f"{server}__cancelled")).structured["waiting"] != count:
        pass


async def test_wrong_arguments_are_explained_as_over_mcp(gateway: Gate) -> None:
    async with connect(address(gateway)) as client:
        with pytest.raises(ToolFailed, match="/a"):
            await within(client.call("new__sum", {"a": "one"}))


async def test_the_audit_row_says_by_which_face_a_call_came(tmp_path: Path) -> None:
    place = home(tmp_path, python_server("peer", PEER))
    with gate(place, *ON) as running:
        status = place.invoke("status").stdout
        async with connect(address(running)) as client:
            await within(client.call("peer__sum", {"a": 1, "b": 2}))
        assert running.stop() == 0
    (row,) = place.audit_rows()
    assert (row["origin"], row["outcome"], row["server"]) == ("grpc", "ok", "peer")
    assert f"and {address(running).rstrip('/')}" in status
    assert place.invoke("audit", "verify").exit_code == 0


async def test_a_call_in_flight_ends_well_when_the_gateway_is_told_to_stop(tmp_path: Path) -> None:
    text = f"grace = 30\n{python_server('peer', PEER)}"
    async with gated(home(tmp_path, text), *ON) as running, connect(address(running)) as client:
        waiting = asyncio.create_task(client.call("peer__wait"))
        await within(_waits(client, "peer", 1), START)
        running.process.send_signal(signal.SIGTERM)
        await until(lambda: _refuses(address(running)), START)
        assert not waiting.done()
        running.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionLost, match="stopping"):
            await within(waiting, START)
        assert await asyncio.to_thread(running.process.wait, START) == 0
    assert "Traceback" not in running.words


def _refuses(url: str) -> bool:
    host, _, port = url.removeprefix("grpc://").rstrip("/").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return True
    return False


async def test_several_workers_serve_one_port_and_outlive_each_other(tmp_path: Path) -> None:
    place = home(tmp_path, python_server("peer", PEER))
    async with gated(place, "--workers", "2", *ON) as running:
        url = address(running)
        first, second = children(running.process.pid)
        os.kill(first, signal.SIGKILL)
        await asyncio.to_thread(running.hear, "is started again")
        assert second in children(running.process.pid)
        for _ in range(6):
            async with connect(url) as client:
                assert (await within(client.call("peer__sum", {"a": 1, "b": 2}), START)).structured
        await until(lambda: len(children(running.process.pid)) == 2, START)
        assert await asyncio.to_thread(running.stop) == 0
    assert {row["origin"] for row in place.audit_rows()} == {"grpc"}
    assert "Traceback" not in running.words


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_that_another_gateway_has_is_told_at_once(
    gateway: Gate, tmp_path: Path, workers: str
) -> None:
    port = address(gateway).rstrip("/").rpartition(":")[2]
    place = home(tmp_path)
    done = place.run("serve", "--port", "0", "--grpc-port", port, "--workers", workers)
    assert done.returncode == Exit.USAGE
    assert f"cannot serve gRPC on 127.0.0.1:{port}: address already in use" in done.stderr
    assert "Traceback" not in done.stderr


def test_one_client_on_a_pipe_has_no_port(tmp_path: Path) -> None:
    done = home(tmp_path).invoke("serve", "--stdio", "--grpc-port", "0")
    assert done.exit_code == Exit.USAGE
    assert "--grpc-port" in done.stderr


async def test_health_and_reflection_are_there_when_switched_on(tmp_path: Path) -> None:
    place = home(tmp_path, "grpc_port = 0\ngrpc_health = true\ngrpc_reflection = true\n")
    async with gated(place) as running:
        target = address(running).removeprefix("grpc://").rstrip("/")
        async with grpc.aio.insecure_channel(target) as channel:
            check: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                "/grpc.health.v1.Health/Check"
            )
            assert await _once(check) == b"\x08\x01"
        described = await asyncio.to_thread(place.run, "grpc", "describe", f"grpc://{target}")
        assert "thoughtgate.gateway.v1.GatewayServer" in described.stdout


async def _once(method: "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]") -> bytes:
    return await method(b"")


def test_a_gateway_without_a_port_for_it_never_loads_grpc() -> None:
    program = (
        "import sys, thoughtgate.cli.root, thoughtgate.cli.serve, thoughtgate.cli.worker,"
        " thoughtgate.app.serving, thoughtgate.app.crew.parent, thoughtgate_client\n"
        "print([name for name in sys.modules if name == 'grpc' or 'surface.grpc' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
