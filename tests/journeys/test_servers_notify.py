"""The notify server as a process: a key is sent at most once, whatever happens to the process."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import CallToolResult

from tests.support.tool_servers import START, command, data, environment, reached, text
from tests.support.waiting import until, within
from tests.support.webhooks import WebhookReceiver

SECRET = "T0/B0/canary"


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as receiver:
        yield receiver


def options(receiver: WebhookReceiver, tmp_path: Path) -> list[str]:
    hook = f"{receiver.url}/{SECRET}"
    return ["--webhook", f"team={hook}", "--outbox", str(tmp_path / "deep" / "outbox.sqlite")]


async def send(client: Client, key: str) -> CallToolResult:
    meta: Any = {"thoughtgate/idempotencyKey": key}
    payload = {"webhook": "team", "payload": {"n": 1}}
    return await client.call_tool("send_webhook", payload, meta=meta)


@pytest.mark.parametrize(("carrier", "mode"), [("stdio", "legacy"), ("http", "auto")])
async def test_a_key_is_sent_once_across_a_restart(
    receiver: WebhookReceiver, tmp_path: Path, carrier: str, mode: str
) -> None:
    arguments = options(receiver, tmp_path)
    for duplicate in (False, True):
        async with reached(carrier, mode, "notify", *arguments) as client:
            listed = await client.list_tools()
            result = await send(client, "k-1")
        assert data(result)["duplicate"] is duplicate
        assert SECRET not in result.model_dump_json()
    [delivery] = receiver.deliveries
    assert delivery.headers["idempotency-key"] == "k-1"
    assert all((tool.meta or {})["thoughtgate/idempotency"] == "key" for tool in listed.tools)


async def test_a_key_whose_process_was_killed_in_the_middle_is_not_sent_again(
    receiver: WebhookReceiver, tmp_path: Path
) -> None:
    receiver.released.clear()
    arguments = options(receiver, tmp_path)
    process = await asyncio.create_subprocess_exec(
        *command("notify", "--http", "127.0.0.1:0", *arguments),
        env=environment(),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    url = (await within(process.stderr.readline(), START)).decode().split()[-1]

    async def call() -> None:
        async with Client(url) as client:
            await send(client, "k-2")

    calling = asyncio.create_task(call())
    await until(lambda: receiver.deliveries, START)
    os.kill(process.pid, signal.SIGKILL)
    await within(process.communicate(), START)
    [outcome] = await within(asyncio.gather(calling, return_exceptions=True), START)
    assert isinstance(outcome, BaseException)
    receiver.released.set()
    async with reached("stdio", "auto", "notify", *arguments) as client:
        again = await send(client, "k-2")
    assert again.is_error
    assert "unknown before under this key: nothing was sent now" in text(again)
    assert len(receiver.deliveries) == 1


async def test_a_place_that_was_not_allowed_gets_nothing(
    receiver: WebhookReceiver, tmp_path: Path
) -> None:
    arguments = ["--allow", f"{receiver.url}/open", "--outbox", str(tmp_path / "outbox")]
    async with reached("stdio", "auto", "notify", *arguments) as client:
        for path in ("", "/open/../shut", "/opened"):
            refused = await client.call_tool(
                "send_webhook", {"url": receiver.url + path, "payload": {}}
            )
            assert refused.is_error
        allowed = {"url": f"{receiver.url}/open/x", "payload": {}}
        assert data(await client.call_tool("send_webhook", allowed))["outcome"] == "delivered"
    assert [delivery.path for delivery in receiver.deliveries] == ["/hook/open/x"]
