"""A gRPC server behind a running gateway, added and looked at from somewhere else."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.support.gate import Gate, gated, home
from thoughtgate.app.admin_token import TOKEN_FILE
from thoughtgate.testing.grpc_host import fake_grpc


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Gate]:
    async with AsyncExitStack() as ending:
        yield await ending.enter_async_context(gated(home(tmp_path)))


def far(running: Gate, *arguments: object) -> tuple[int, str, str]:
    """Run a command against the gateway; return its exit code and what it said."""
    url = running.url().removesuffix("/mcp")
    options = ("--server", url, "--token-file", running.home.state / TOKEN_FILE)
    elsewhere = running.home.folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    done = home(elsewhere).run(*options, *arguments)
    return done.returncode, done.stdout, done.stderr


async def test_a_grpc_server_is_added_shown_and_checked_over_the_network(running: Gate) -> None:
    async with fake_grpc() as fake:
        given = ("--header", "Authorization=hunter2")
        code, _, said = await asyncio.to_thread(
            far, running, "server", "add", "data", fake.url, *given
        )
        assert code == 0, said
        _, shown, _ = await asyncio.to_thread(far, running, "server", "show", "data", "--json")
        code, listed, _ = await asyncio.to_thread(far, running, "server", "list", "--check")
    entry = json.loads(shown)
    assert (entry["transport"], entry["secrets"]) == (fake.url, ["authorization"])
    assert (entry["era"], entry["sharing"], entry["reflect"]) == ("none", "shared", [])
    assert (code, "ready" in listed, fake.url in listed) == (0, True, True)
    assert "hunter2" not in shown + listed + running.words


async def test_no_file_is_named_over_the_network(running: Gate) -> None:
    file = running.home.folder / "ca.pem"
    file.write_bytes(b"")
    options = ("server", "add", "data", "grpcs://127.0.0.1:9", "--ca", str(file))
    code, _, said = await asyncio.to_thread(far, running, *options)
    assert code != 0
    assert "a file on the gateway's machine cannot be named over the network" in said
