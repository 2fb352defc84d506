"""Faults in the middle of a run: servers that die, sends that are cut off, clients that go.

Real processes; each fault is placed by a message that is held, never by time.
"""

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from count import differences, expected

from tests.support.clerk import CLASSIFY, COUNT, FIND, SEND
from tests.support.cut import CuttingProxy
from tests.support.gate import python_server
from tests.support.job import DOMAIN, SMALL, TASK, Job, child_of, job, sent, servers
from tests.support.waiting import until, within
from tests.support.webhooks import WebhookReceiver
from thoughtgate_client import RunResult, Step, connect

RUN = 30.0
PEER = "tests.support.sdk_server"
WAIT, WAITING = "peer__wait", "peer__cancelled"
FOUND = {"$from": "find#/structuredContent/paths"}
STEPS: dict[str, dict[str, Any]] = {
    "find": {"tool": FIND, "arguments": {"max_age_days": 92}},
    "hello": {
        "tool": SEND,
        "arguments": {"webhook": "team", "payload": {"by_type": [], "found": FOUND}},
        "depends_on": ["find"],
    },
    "classify": {"tool": CLASSIFY, "arguments": {"paths": FOUND, "detail": "type"}},
    "count": {
        "tool": COUNT,
        "arguments": {"by": "type", "groups": {"$from": "classify#/structuredContent/groups"}},
    },
    "send": {
        "tool": SEND,
        "arguments": {
            "webhook": "team",
            "payload": {"by_type": {"$from": "count#/structuredContent/rows"}},
        },
    },
    "wait": {"tool": WAIT, "arguments": {}, "depends_on": ["find"]},
    "after": {
        "tool": SEND,
        "arguments": {"webhook": "team", "payload": {"by_type": []}},
        "depends_on": ["wait"],
    },
}


def plan(*ids: str, **changes: dict[str, Any]) -> dict[str, Any]:
    return {"steps": [{"id": id_, **STEPS[id_], **changes.get(id_, {})} for id_ in ids]}


@pytest.fixture(scope="module")
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as running:
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, receiver: WebhookReceiver) -> Iterator[Job]:
    """All tool servers are children of the gateway: what ends can be started again."""
    with (
        servers(tmp_path_factory.mktemp("faults"), receiver.url, children=True) as tools,
        job(tools, "home", python_server("peer", PEER), "peer/*") as running,
    ):
        yield running


@pytest.fixture
def where(shared: Job, receiver: WebhookReceiver) -> Iterator[Job]:
    receiver.deliveries.clear()
    yield shared
    receiver.hang_up = False
    receiver.released.set()


def end(where: Job, server: str, number: int = signal.SIGKILL) -> int:
    pid = child_of(where.gate.process.pid, server)
    os.kill(pid, number)
    return pid


async def reasoned(where: Job, plan: dict[str, Any], steps: list[Step]) -> RunResult:
    async with connect(where.url) as gate:
        return await gate.reason(TASK, plan=plan, on_step=steps.append, max_seconds=RUN)


def reason_of(run: RunResult, id_: str) -> str:
    return next(str(step["reason"]) for step in run.steps if step["id"] == id_)


def states(run: RunResult) -> dict[str, tuple[str, int]]:
    return {step["id"]: (step["state"], step["attempts"]) for step in run.steps}


@pytest.mark.parametrize("moment", ["between two steps", "during a call"])
async def test_a_server_that_is_killed_is_started_again_and_the_run_completes(
    where: Job, receiver: WebhookReceiver, moment: str
) -> None:
    manifest = where.place.renew(21, SMALL)
    receiver.released.clear()
    steps: list[Step] = []
    ids = ("find", "hello", "classify", "count", "send")
    ordered = plan(*ids, classify={"depends_on": ["hello"]})
    async with asyncio.TaskGroup() as group:
        run = group.create_task(reasoned(where, ordered, steps))
        await until(lambda: receiver.deliveries, RUN)
        if moment == "between two steps":
            end(where, "thoughtgate_servers.logs")
            receiver.released.set()
        else:
            pid = end(where, "thoughtgate_servers.logs", signal.SIGSTOP)
            receiver.released.set()
            await until(lambda: any(s.text.startswith("Action classify") for s in steps), RUN)
            os.kill(pid, signal.SIGKILL)

    result = run.result()
    assert result.stop_reason == "final_answer", result
    assert {state for state, _ in states(result).values()} == {"completed"}
    assert states(result)["find"] == ("completed", 1)
    assert len(receiver.deliveries) == 2
    told = sent([receiver.deliveries[1].body])
    assert differences(expected(manifest), told) == []


async def test_a_message_whose_answer_was_cut_off_is_not_sent_again(
    where: Job, receiver: WebhookReceiver
) -> None:
    where.place.renew(22, SMALL)
    receiver.hang_up = True
    run = await reasoned(where, plan("find", "hello"), [])
    assert len(receiver.deliveries) == 1
    assert (run.partial, run.stop_reason) == (True, "awaiting_input")
    assert states(run)["hello"] == ("halted", 1)
    assert "unknown: team the connection broke before the answer" in reason_of(run, "hello")
    assert "find: files = [7 entries]" in run.answer


async def test_a_message_whose_server_died_while_it_was_sent_is_not_sent_again(
    where: Job, receiver: WebhookReceiver
) -> None:
    where.place.renew(23, SMALL)
    receiver.released.clear()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(reasoned(where, plan("find", "hello"), []))
        await until(lambda: receiver.deliveries, RUN)
        end(where, "thoughtgate_servers.notify")
    run = task.result()
    assert len(receiver.deliveries) == 1
    assert run.partial
    assert run.stop_reason in {"awaiting_input", "in_doubt"}


@pytest.fixture
def far(
    tmp_path: Path, where: Job, receiver: WebhookReceiver
) -> Iterator[tuple[Job, CuttingProxy]]:
    """Tool servers over HTTP, the one that sends behind a proxy."""
    with servers(tmp_path, receiver.url) as tools, ExitStack() as stack:
        port = re.findall(r"127\.0\.0\.1:(\d+)", tools.tables)[2]  # logs, report, notify
        proxy = stack.enter_context(CuttingProxy(int(port)))
        through = replace(tools, tables=tools.tables.replace(port, str(proxy.port)))
        yield stack.enter_context(job(through, "home")), proxy


async def test_a_message_is_not_sent_again_when_the_connection_to_its_server_is_cut(
    far: tuple[Job, CuttingProxy], receiver: WebhookReceiver
) -> None:
    where, proxy = far
    where.place.renew(28, SMALL)
    receiver.released.clear()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(reasoned(where, plan("find", "hello"), []))
        await until(lambda: receiver.deliveries, RUN)
        proxy.cut()
    run = task.result()
    assert states(run)["hello"] == ("halted", 2)
    assert len(receiver.deliveries) == 1
    # under the same key the server sends nothing again, and cannot say that it arrived
    assert (run.partial, run.stop_reason) == (True, "awaiting_input")
    assert "unknown before under this key" in reason_of(run, "hello")


async def test_a_write_that_nobody_can_repeat_is_in_doubt_when_its_server_dies(
    where: Job, receiver: WebhookReceiver
) -> None:
    where.place.renew(24, SMALL)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(reasoned(where, plan("find", "wait", "after"), []))
        await reached(where, waiting=1)
        end(where, PEER)
    run = task.result()
    assert (run.partial, run.stop_reason) == (True, "in_doubt")
    [doubtful] = [step for step in run.steps if step.get("in_doubt")]
    assert (doubtful["id"], doubtful["attempts"]) == ("wait", 1)
    assert receiver.deliveries == []
    async with connect(where.url) as gate:
        assert (await gate.call(WAITING)).structured == {"cancelled": 0, "waiting": 0}


async def reached(where: Job, **counts: int) -> None:
    """Return once the peer tells these counts of its calls."""
    told: dict[str, int] = {}
    async with asyncio.timeout(RUN), connect(where.url) as gate:
        while not counts.items() <= told.items():
            told = (await gate.call(WAITING)).structured


async def test_a_check_that_fails_three_times_halts_with_what_was_found(
    where: Job, receiver: WebhookReceiver
) -> None:
    manifest = where.place.renew(25, SMALL)
    never = {"check": {"properties": {"structuredContent": {"properties": {"total": False}}}}}
    ids = ("find", "classify", "count", "send")
    async with connect(where.url) as gate:
        arguments = {"task": TASK, "plan": plan(*ids, count=never), "max_retries": 2}
        result = await gate.try_call("reason", arguments)
    run = result.structured
    assert (run["status"], run["partial"], run["stop_reason"]) == ("halted", True, "max_retries")
    ends = {step["id"]: (step["state"], step["attempts"]) for step in run["steps"]}
    assert ends == {
        "find": ("completed", 1),
        "classify": ("completed", 1),
        "count": ("halted", 3),
        "send": ("idle", 0),
    }
    assert f"classify: total_errors = {expected(manifest).total()};" in run["answer"]
    assert not result.is_error
    assert receiver.deliveries == []


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_that_gives_up_ends_the_run_and_the_call_under_way(
    where: Job, receiver: WebhookReceiver, mode: str
) -> None:
    where.place.renew(26, SMALL)
    before = await cancelled(where)
    async with connect(where.url, mode=mode) as gate:
        task = asyncio.create_task(gate.reason(TASK, plan=plan("find", "wait", "after")))
        await reached(where, waiting=1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await within(task)
        await reached(where, cancelled=before + 1, waiting=0)
    await ended(where)
    assert receiver.deliveries == []


async def test_a_client_that_vanishes_ends_the_run_and_the_call_under_way(
    where: Job, receiver: WebhookReceiver
) -> None:
    where.place.renew(27, SMALL)
    before = await cancelled(where)
    _, writer = await asyncio.open_connection("127.0.0.1", int(where.url.split(":")[2][:5]))
    writer.write(request({"task": TASK, "plan": plan("find", "wait", "after")}))
    await reached(where, waiting=1)
    writer.transport.abort()
    await reached(where, cancelled=before + 1, waiting=0)
    await ended(where)
    assert receiver.deliveries == []


async def cancelled(where: Job) -> int:
    async with connect(where.url) as gate:
        count: int = (await gate.call(WAITING)).structured["cancelled"]
        return count


async def ended(where: Job) -> None:
    """Return once the audit log tells the end of the newest run; nothing of it goes on then."""

    def outcomes() -> list[str]:
        rows = [row for row in where.gate.home.audit_rows() if row["tool"] in {"reason", "wait"}]
        return [row["outcome"] for row in rows[-2:]]

    await until(lambda: outcomes() == ["cancelled", "cancelled"])


def request(arguments: dict[str, Any]) -> bytes:
    """Return the bytes of a call of `reason` in the stateless era."""
    version, reserved = "2026-07-28", "io.modelcontextprotocol/"
    meta = {
        f"{reserved}protocolVersion": version,
        f"{reserved}clientCapabilities": {},
        f"{reserved}clientInfo": {"name": "raw", "version": "0"},
        "progressToken": 1,
    }
    params = {"name": "reason", "arguments": arguments, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(message).encode()
    lines = (
        f"POST /mcp/{DOMAIN} HTTP/1.1",
        "host: 127.0.0.1",
        "accept: application/json, text/event-stream",
        "content-type: application/json",
        f"content-length: {len(body)}",
        f"mcp-protocol-version: {version}",
        "mcp-method: tools/call",
        "mcp-name: reason",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
