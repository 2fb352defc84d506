"""The notify server: sends once, says what it knows, remembers across restarts."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult

from tests.support.tool_servers import ask, data, text
from tests.support.waiting import until, within
from tests.support.webhooks import WebhookReceiver
from thoughtgate_servers.notify.outbox import Outbox, State
from thoughtgate_servers.notify.posting import Poster
from thoughtgate_servers.notify.targets import Targets
from thoughtgate_servers.notify.tools import KEY, NotifyTools
from thoughtgate_servers.notify.turns import Turns
from thoughtgate_servers.table import Tool


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as receiver:
        yield receiver


@pytest.fixture
def outbox(tmp_path: Path) -> Path:
    return tmp_path / "outbox.sqlite"


def tools_for(url: str, outbox: Path, seconds: float = 3.0) -> tuple[Tool, ...]:
    targets = Targets(named={"team": url, "slack": url}, allowed=(url,))
    return NotifyTools(
        targets=targets, outbox=Outbox(outbox), poster=Poster(timeout=seconds, proxy=None)
    ).table()


async def send(tools: tuple[Tool, ...], key: str | None = None, **payload: Any) -> CallToolResult:
    meta = {KEY: key} if key else None
    return await ask(tools, "send_webhook", meta=meta, webhook="team", payload=payload or {"a": 1})


async def test_a_message_arrives_with_its_key(receiver: WebhookReceiver, outbox: Path) -> None:
    tools = tools_for(receiver.url, outbox)
    sent = data(await send(tools, "k-1", text="你好"))
    [delivery] = receiver.deliveries
    assert delivery.body == {"text": "你好"}
    assert delivery.headers["idempotency-key"] == "k-1"
    assert delivery.headers["content-type"] == "application/json; charset=utf-8"
    assert sent == {
        "outcome": "delivered", "status": 200, "target": "team", "duplicate": False,
        "idempotency_key": "k-1", "response": "noted  [31m",
    }  # fmt: skip


async def test_the_same_key_is_sent_once_even_after_a_restart(
    receiver: WebhookReceiver, outbox: Path
) -> None:
    first = data(await send(tools_for(receiver.url, outbox), "k"))
    again = data(await send(tools_for(receiver.url, outbox), "k"))
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert again["outcome"] == "delivered"
    assert len(receiver.deliveries) == 1


async def test_without_a_key_every_call_sends(receiver: WebhookReceiver, outbox: Path) -> None:
    tools = tools_for(receiver.url, outbox)
    await send(tools)
    await send(tools)
    assert len(receiver.deliveries) == 2
    assert "idempotency-key" not in receiver.deliveries[0].headers


async def test_an_argument_may_hold_the_key(receiver: WebhookReceiver, outbox: Path) -> None:
    tools = tools_for(receiver.url, outbox)
    for _ in range(2):
        await ask(tools, "send_slack", text="hi", idempotency_key="k")
    [delivery] = receiver.deliveries
    assert delivery.headers["idempotency-key"] == "k"
    assert delivery.body == {"text": "hi"}


async def test_a_key_used_for_another_message_is_refused(
    receiver: WebhookReceiver, outbox: Path
) -> None:
    tools = tools_for(receiver.url, outbox)
    await send(tools, "k", a=1)
    result = await send(tools, "k", a=2)
    assert result.is_error
    assert "another message" in text(result)
    assert len(receiver.deliveries) == 1


async def test_two_calls_at_once_with_one_key_send_once(
    receiver: WebhookReceiver, outbox: Path
) -> None:
    tools = tools_for(receiver.url, outbox)
    results = await within(asyncio.gather(*(send(tools, "k") for _ in range(8))))
    assert len(receiver.deliveries) == 1
    assert {data(result)["outcome"] for result in results} == {"delivered"}
    assert sum(data(result)["duplicate"] for result in results) == 7


async def test_a_refusal_is_told_and_not_sent_again(
    receiver: WebhookReceiver, outbox: Path
) -> None:
    receiver.status = 503
    tools = tools_for(receiver.url, outbox)
    for duplicate in (False, True):
        result = await send(tools, "k")
        assert result.is_error
        assert result.structured_content is not None
        told = {k: result.structured_content[k] for k in ("outcome", "status", "duplicate")}
        assert told == {"outcome": "refused", "status": 503, "duplicate": duplicate}
    assert len(receiver.deliveries) == 1


async def test_a_redirect_is_not_followed(receiver: WebhookReceiver, outbox: Path) -> None:
    receiver.status, receiver.location = 307, receiver.url
    result = await send(tools_for(receiver.url, outbox), "k")
    assert result.is_error
    assert result.structured_content is not None
    assert result.structured_content["outcome"] == "refused"
    assert len(receiver.deliveries) == 1


async def test_no_answer_means_unknown_and_stays_unknown(
    receiver: WebhookReceiver, outbox: Path
) -> None:
    receiver.released.clear()
    result = await send(tools_for(receiver.url, outbox, seconds=0.2), "k")
    assert result.is_error
    assert "unknown" in text(result)
    receiver.released.set()
    again = await send(tools_for(receiver.url, outbox), "k")
    assert again.is_error
    assert again.structured_content is not None
    assert (again.structured_content["outcome"], again.structured_content["duplicate"]) == (
        "unknown",
        True,
    )
    assert len(receiver.deliveries) == 1


async def test_a_broken_connection_means_unknown(receiver: WebhookReceiver, outbox: Path) -> None:
    receiver.hang_up = True
    result = await send(tools_for(receiver.url, outbox), "k")
    assert result.is_error
    assert result.structured_content is not None
    assert result.structured_content["outcome"] == "unknown"


async def test_what_never_left_may_be_sent_again_under_its_key(
    receiver: WebhookReceiver, outbox: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{probe.getsockname()[1]}/hook"
    result = await send(tools_for(dead, outbox), "k")
    assert result.is_error
    assert result.structured_content is not None
    assert result.structured_content["outcome"] == "not_sent"
    assert data(await send(tools_for(receiver.url, outbox), "k"))["duplicate"] is False


async def test_a_cancelled_send_leaves_its_intent(receiver: WebhookReceiver, outbox: Path) -> None:
    receiver.released.clear()
    task = asyncio.create_task(send(tools_for(receiver.url, outbox), "k"))
    await until(lambda: receiver.deliveries)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert Outbox(outbox).claim("k", "other") is not None


@pytest.mark.parametrize("key", ["", "a b", "ü", "x" * 256, "a\n", 7])
async def test_an_unusable_key_is_refused(
    receiver: WebhookReceiver, outbox: Path, key: object
) -> None:
    tools = tools_for(receiver.url, outbox)
    result = await ask(tools, "send_webhook", meta={KEY: key}, webhook="team", payload={})
    assert result.is_error
    assert receiver.deliveries == []


async def test_exactly_one_target_is_wanted(receiver: WebhookReceiver, outbox: Path) -> None:
    tools = tools_for(receiver.url, outbox)
    both = await ask(tools, "send_webhook", webhook="team", url=receiver.url, payload={})
    neither = await ask(tools, "send_webhook", payload={})
    assert both.is_error
    assert neither.is_error
    assert data(await ask(tools, "send_webhook", url=receiver.url, payload={}))["target"] == (
        "http://127.0.0.1"
    )


async def test_a_huge_message_is_refused(receiver: WebhookReceiver, outbox: Path) -> None:
    result = await send(tools_for(receiver.url, outbox), None, text="x" * 1_100_000)
    assert result.is_error
    assert receiver.deliveries == []


def spoil(outbox: Path) -> None:
    outbox.write_bytes(b"not a database, but long enough to be looked at" * 99)


async def test_an_outbox_that_cannot_be_used_sends_nothing(
    receiver: WebhookReceiver, outbox: Path
) -> None:
    tools = tools_for(receiver.url, outbox)
    spoil(outbox)
    result = await send(tools, "k")
    assert result.is_error
    assert "nothing was sent" in text(result)
    assert receiver.deliveries == []


def test_the_outbox_keeps_no_message_and_no_url(outbox: Path) -> None:
    box = Outbox(outbox)
    assert box.claim("k", "digest") is None
    box.settle("k", State.DELIVERED, 200)
    found = Outbox(outbox).claim("k", "other")
    assert found is not None
    assert (found.state, found.status, found.digest) == (State.DELIVERED, 200, "digest")
    box.release("k")
    assert box.claim("k", "digest") is not None


async def test_turns_are_taken_one_by_one_and_forgotten() -> None:
    turns, inside, most = Turns(), 0, 0

    async def visit() -> None:
        nonlocal inside, most
        async with turns.of("k"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await within(asyncio.gather(*(visit() for _ in range(5))))
    assert most == 1
    assert vars(turns) == {"_locks": {}, "_users": {}}
