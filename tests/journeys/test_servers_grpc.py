"""The shipped servers as processes that speak gRPC: announced, over TLS, stopped gently."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
import trustme
from grpc import aio

from tests.support.tool_servers import START, command, environment
from tests.support.waiting import within
from thoughtgate_proto.tools.v1 import tool_server_pb2 as pb
from thoughtgate_proto.tools.v1.tool_server_pb2_grpc import ToolServerStub

HANGS = """
import threading
from thoughtgate_servers.native import Call, ToolServer
server = ToolServer("hangs")
@server.tool()
def hang(call: Call) -> None:
    call.report(1)
    threading.Event().wait()
server.main()
"""


def files(*arguments: str) -> list[str]:
    return command("files", *arguments)


@asynccontextmanager
async def running(*program: str) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    process = await asyncio.create_subprocess_exec(
        *program,
        "--grpc",
        "127.0.0.1:0",
        env={**environment()},
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        said = await within(process.stderr.readline(), START)
        assert b"listening on grpc" in said, said + await process.stderr.read()
        yield said.decode().split()[-1], process
    finally:
        if process.returncode is None:
            process.terminate()
        await within(process.communicate(), START)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    for name in ("127.0.0.1", "client.example"):
        issued = ca.issue_cert(name)
        issued.private_key_pem.write_to_path(str(folder / f"{name}.key"))
        for part in issued.cert_chain_pems:
            part.write_to_path(str(folder / f"{name}.pem"), append=True)
    return folder


async def test_a_process_serves_and_stops_with_0_though_a_watcher_stays(tmp_path: Path) -> None:
    async with running(*files("--root", str(tmp_path))) as (url, process):
        assert url.startswith("grpc://127.0.0.1:")
        async with aio.insecure_channel(url.partition("://")[2]) as channel:
            stub = ToolServerStub(channel)
            info = await within(stub.GetServerInfo(pb.GetServerInfoRequest()))
            watch = stub.WatchTools(pb.WatchToolsRequest())
            await within(watch.read())
            process.terminate()
            assert await within(process.wait(), START) == 0
            assert process.stderr is not None
            assert await process.stderr.read() == b""
            watch.cancel()
    assert info.name == "thoughtgate-files"


async def test_only_clients_of_the_authority_are_served(tmp_path: Path, certificates: Path) -> None:
    def file(name: str) -> bytes:
        return (certificates / name).read_bytes()

    tls = ["--tls-cert", str(certificates / "127.0.0.1.pem")]
    tls += ["--tls-key", str(certificates / "127.0.0.1.key")]
    tls += ["--tls-client-ca", str(certificates / "ca.pem")]
    pair = {
        "private_key": file("client.example.key"),
        "certificate_chain": file("client.example.pem"),
    }
    async with running(*files("--root", str(tmp_path), *tls)) as (url, _):
        scheme, _, target = url.partition("://")
        assert scheme == "grpcs"
        for given, served in ((pair, True), ({}, False)):
            credentials = grpc.ssl_channel_credentials(file("ca.pem"), **given)
            async with aio.secure_channel(target, credentials) as channel:
                asked = ToolServerStub(channel).ListTools(pb.ListToolsRequest())
                if served:
                    assert len((await within(asked)).tools) == 4
                else:
                    with pytest.raises(aio.AioRpcError) as caught:
                        await within(asked)
                    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_whoever_does_not_want_to_wait_for_a_tool_says_so_twice() -> None:
    async with (
        running(sys.executable, "-c", HANGS) as (url, process),
        aio.insecure_channel(url.partition("://")[2]) as channel,
    ):
        stub = ToolServerStub(channel)
        watch = stub.WatchTools(pb.WatchToolsRequest())
        call = stub.CallTool(pb.CallToolRequest(name="hang", want_progress=True))
        await within(watch.read())
        await within(call.read())
        process.terminate()
        assert await within(watch.read()) is aio.EOF
        process.terminate()
        assert await within(process.wait(), START) == -signal.SIGTERM
        call.cancel()
