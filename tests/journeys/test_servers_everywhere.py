"""The shipped servers as people run them: real processes, stdio and HTTP, both eras."""

import asyncio
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from count import differences, expected
from logbook import write_logs
from mcp import Client, MCPError

from tests.support.tool_servers import (
    ROUTES,
    START,
    command,
    data,
    environment,
    http_server,
    reached,
    text,
)
from tests.support.waiting import within

# a process takes its time to start: two of the four routes see every carrier and era
across = pytest.mark.parametrize(("carrier", "mode"), [("stdio", "auto"), ("http", "legacy")])
everywhere = pytest.mark.parametrize(("carrier", "mode"), ROUTES)
ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}


def written(folder: Path, seed: int) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(json.dumps(asdict(write_logs(folder, seed))))
    return manifest


def big_log(path: Path, lines: int) -> None:
    line = "2026-05-01 12:00:00,000 ERROR app: boom\n"
    path.write_text(line * lines, encoding="utf-8")


@everywhere
async def test_the_logs_server_does_the_whole_job(tmp_path: Path, carrier: str, mode: str) -> None:
    manifest = written(tmp_path, 11)
    seen: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with reached(carrier, mode, "logs", "--root", str(tmp_path)) as client:
        assert client.protocol_version == ERAS[mode]
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == {
            "find_logs", "read_log", "classify_errors", "count_errors",
        }  # fmt: skip
        found = data(await client.call_tool("find_logs", {"max_age_days": 92}))
        result = await client.call_tool(
            "classify_errors",
            {"paths": found["paths"], "detail": "day"},
            progress_callback=on_progress,
        )
        groups = data(result)["groups"]
        rows = data(await client.call_tool("count_errors", {"by": "type", "groups": groups}))
        wrong = await client.call_tool("find_logs", {"limit": "all", "x": 1})
        outside = await client.call_tool("read_log", {"path": "/etc/passwd"})
    assert (
        differences(expected(manifest), Counter({r["key"]: r["count"] for r in rows["rows"]})) == []
    )
    assert seen == sorted(set(seen))
    assert seen[-1] == len(found["paths"])
    assert wrong.is_error
    assert "/limit: must be integer" in text(wrong)
    assert outside.is_error
    assert "root:" not in text(outside)


@everywhere
async def test_a_cancelled_call_ends_and_the_server_goes_on(
    tmp_path: Path, carrier: str, mode: str
) -> None:
    big_log(tmp_path / "big.log", 400_000)
    begun = asyncio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        begun.set()

    async with reached(carrier, mode, "logs", "--root", str(tmp_path)) as client:
        await client.list_tools()
        call = asyncio.create_task(
            client.call_tool(
                "classify_errors", {"paths": ["big.log"]}, progress_callback=on_progress
            )
        )
        await within(begun.wait(), START)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await within(call)
        page = data(await within(client.call_tool("read_log", {"path": "big.log", "max_lines": 1})))
    assert len(page["lines"]) == 1


@across
async def test_the_report_and_files_servers_work_together(
    tmp_path: Path, carrier: str, mode: str
) -> None:
    rows = [{"key": "超时 <timeout>", "count": 3}]
    async with reached(carrier, mode, "report", "--out", str(tmp_path)) as client:
        await client.list_tools()
        done = data(await client.call_tool("write_report", {"title": "周报", "counts": rows}))
    async with reached(carrier, mode, "files", "--root", str(tmp_path), "--read-only") as client:
        listed = await client.list_tools()
        page = data(await client.call_tool("read_file", {"path": done["markdown"]["path"]}))
        with pytest.raises(MCPError):
            await client.call_tool("write_file", {"path": "x", "content": ""})
    assert "write_file" not in {tool.name for tool in listed.tools}
    assert page["content"].startswith("# 周报\n")


async def test_json_replies_answer_the_same(tmp_path: Path) -> None:
    async with http_server("files", "--root", str(tmp_path), "--json-replies") as url:
        for mode in ("legacy", "auto"):
            async with Client(url, mode=mode) as client:
                await client.list_tools()
                assert data(await client.call_tool("list_directory"))["total"] == 0


async def test_a_stdio_server_ends_with_its_input(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *command("files", "--root", str(tmp_path)),
        env=environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await within(process.communicate(), START)
    assert (process.returncode, said) == (0, b"")
