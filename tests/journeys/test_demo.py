"""The demo as people run it: it proves its own counts, and leaves no process behind."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from tests.support.tool_servers import ROOT
from tests.support.waiting import until, within

RUN = 55.0


async def started(keep: Path, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(ROOT / "examples" / "demo" / "demo.py"),
        "--keep",
        str(keep),
        *arguments,
        env={**os.environ, "COLUMNS": "80", "PYTHONPATH": os.pathsep.join(
            str(ROOT / part) for part in ("gateway", "client", "servers", "proto"))},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip


def still_running(keep: Path) -> list[int]:
    """Return the processes whose command line names the demo's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                named = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(keep).encode() in named:
                found.append(int(entry.name))
    return found


async def test_the_demo_does_the_main_job_and_proves_it(tmp_path: Path) -> None:
    process = await started(tmp_path / "out", "--seed", "5", "--no-color")
    said = (await within(process.communicate(), RUN))[0].decode()
    assert process.returncode == 0, said
    assert said.count("✓") == 12, said
    for word in ("thought ", "action ", "observation ", "invoke_agent", "seed 5"):
        assert word in said
    assert "\x1b" not in said
    assert " ×" in said, "alike spans share a line"
    assert said.count("█ ") == 5
    assert said.splitlines()[-1] == str(tmp_path / "out" / "reports" / "report.md")
    assert [
        line for line in said.splitlines() if len(line) > 80 and str(tmp_path) not in line
    ] == []
    for name in ("report-by-day.svg", "finding.md", "failures-over-load.svg"):
        assert (tmp_path / "out" / "reports" / name).is_file()
    assert still_running(tmp_path) == []


async def test_an_interrupted_demo_ends_what_it_started(tmp_path: Path) -> None:
    keep = tmp_path / "out"
    process = await started(keep, "--no-color")
    await until(lambda: (keep / "processes" / "report.err").exists(), 20)
    process.send_signal(signal.SIGINT)
    said = (await within(process.communicate(), 20))[0].decode()
    assert process.returncode == 130, said
    assert still_running(tmp_path) == []


async def test_a_demo_that_is_interrupted_in_the_middle_of_its_run_ends_what_it_started(
    tmp_path: Path,
) -> None:
    process = await started(tmp_path / "out", "--no-color")
    assert process.stdout is not None
    said = b""
    while b"action      classify" not in said:
        line = await within(process.stdout.readline(), RUN)
        assert line, said
        said += line
    assert len(still_running(tmp_path)) >= 6
    process.send_signal(signal.SIGINT)
    rest = (await within(process.communicate(), 20))[0]
    assert process.returncode == 130, said + rest
    assert b"interrupted" in rest
    assert b"Traceback" not in rest
    assert still_running(tmp_path) == []


async def test_a_python_without_our_packages_is_told_what_to_do() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-S",
        str(ROOT / "examples" / "demo" / "demo.py"),
        env={},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said = (await within(process.communicate(), 20))[0].decode()
    assert process.returncode == 1, said
    assert "run `make demo`" in said
    assert "Traceback" not in said


async def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    process = await started(tmp_path)
    said = (await within(process.communicate(), 20))[0].decode()
    assert process.returncode == 2, said
    assert "not empty" in said
