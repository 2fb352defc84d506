"""The tools of the logs server, asked as a client asks them."""

import gzip
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.tool_servers import ask, data, text
from thoughtgate_servers.logs.tools import LogTools
from thoughtgate_servers.sandbox import Sandbox
from thoughtgate_servers.table import Tool

DAY = 86_400
APP = """2026-05-01 08:00:00,000 ERROR app: 失败
Traceback (most recent call last):
  File "a.py", line 1, in f
ValueError: 一
2026-05-02 08:00:00,000 ERROR app: again
Traceback (most recent call last):
  File "a.py", line 1, in f
ValueError: two
2026-05-02 09:00:00,000 CRITICAL app: down
"""
ACCESS = """1.1.1.1 - - [02/May/2026:12:00:00 +0000] "GET / HTTP/1.1" 502 0
1.1.1.1 - - [02/May/2026:12:00:01 +0000] "GET / HTTP/1.1" 404 0
1.1.1.1 - - [02/May/2026:12:00:02 +0000] "GET / HTTP/1.1" 200 0
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "web").mkdir()
    (tmp_path / "app.log").write_text(APP, encoding="utf-8")
    (tmp_path / "web" / "访问.log.1.gz").write_bytes(gzip.compress(ACCESS.encode()))
    (tmp_path / "old.log").write_text(APP, encoding="utf-8")
    long_ago = time.time() - 200 * DAY
    os.utime(tmp_path / "old.log", (long_ago, long_ago))
    return tmp_path


@pytest.fixture
def tools(root: Path) -> tuple[Tool, ...]:
    return LogTools(sandbox=Sandbox([root]), max_bytes=10**8).table()


async def test_finding_goes_by_pattern_and_age(root: Path, tools: tuple[Tool, ...]) -> None:
    everything = data(await ask(tools, "find_logs"))
    assert everything["paths"] == sorted(
        str(root / name) for name in ("app.log", "old.log", "web/访问.log.1.gz")
    )
    young = data(await ask(tools, "find_logs", max_age_days=92, pattern="*.log*"))
    assert [Path(path).name for path in young["paths"]] == ["app.log", "访问.log.1.gz"]
    assert [file["compression"] for file in young["files"]] == ["none", "gzip"]
    below = data(await ask(tools, "find_logs", pattern="web/*"))
    assert below["total"] == 1
    flat = data(await ask(tools, "find_logs", recursive=False))
    assert flat["total"] == 2
    since = data(await ask(tools, "find_logs", until="2020-01-01"))
    assert since["total"] == 0


async def test_finding_pages_without_gaps_or_repeats(root: Path) -> None:
    for number in range(25):
        (root / f"many-{number:02}.log").touch()
    tools = LogTools(sandbox=Sandbox([root]), max_bytes=10**8).table()
    seen: list[str] = []
    page: dict[str, Any] = {"next_cursor": None}
    while True:
        more = {"cursor": page["next_cursor"]} if page["next_cursor"] else {}
        page = data(await ask(tools, "find_logs", limit=10, pattern="many-*", **more))
        seen += page["paths"]
        if page["next_cursor"] is None:
            break
    assert seen == [str(root / f"many-{number:02}.log") for number in range(25)]


@pytest.mark.parametrize("cursor", ["x", "????", "W10", "eyJhIjoxfQ"])
async def test_a_foreign_cursor_is_refused(tools: tuple[Tool, ...], cursor: str) -> None:
    result = await ask(tools, "find_logs", cursor=cursor)
    assert result.is_error
    assert "cursor" in text(result)


async def test_a_cursor_of_another_question_is_refused(tools: tuple[Tool, ...]) -> None:
    first = data(await ask(tools, "find_logs", limit=1))
    result = await ask(tools, "find_logs", limit=1, cursor=first["next_cursor"], pattern="*.log")
    assert result.is_error


async def test_links_and_odd_names_are_not_found(root: Path, tools: tuple[Tool, ...]) -> None:
    (root / "link.log").symlink_to("/etc/passwd")
    (root / "up").symlink_to("/etc")
    os.mkfifo(root / "fifo.log")
    (root / os.fsdecode(b"\xff.log")).touch()
    found = data(await ask(tools, "find_logs"))
    assert (found["total"], found["unspeakable"]) == (3, 1)


async def test_reading_goes_by_pages_from_either_end(tools: tuple[Tool, ...]) -> None:
    first = data(await ask(tools, "read_log", path="app.log", max_lines=3))
    assert (first["lines"][0], first["next_line"]) == ("2026-05-01 08:00:00,000 ERROR app: 失败", 4)
    rest = data(await ask(tools, "read_log", path="app.log", start_line=4))
    assert [*first["lines"], *rest["lines"]] == APP.splitlines()
    assert rest["next_line"] is None
    last = data(await ask(tools, "read_log", path="app.log", start_line=-2))
    assert (last["start_line"], last["lines"]) == (8, APP.splitlines()[-2:])
    packed = data(await ask(tools, "read_log", path="web/访问.log.1.gz"))
    assert packed["lines"] == ACCESS.splitlines()
    beyond = data(await ask(tools, "read_log", path="app.log", start_line=99))
    assert (beyond["lines"], beyond["next_line"]) == ([], None)
    assert (await ask(tools, "read_log", path="app.log", start_line=0)).is_error


async def test_a_page_is_bounded_in_characters(root: Path, tools: tuple[Tool, ...]) -> None:
    (root / "wide.log").write_text(("x" * 60_000 + "\n") * 20, encoding="utf-8")
    for start in (1, -20):
        page = data(await ask(tools, "read_log", path="wide.log", start_line=start))
        assert (len(page["lines"]), page["next_line"]) == (6, 7)


async def test_classifying_counts_types_and_keeps_samples(
    root: Path, tools: tuple[Tool, ...]
) -> None:
    paths = ["app.log", "web/访问.log.1.gz"]
    found = data(await ask(tools, "classify_errors", paths=paths, detail="day"))
    assert found["types"] == [
        {"type": "ValueError", "count": 2},
        {"type": "CRITICAL app", "count": 1},
        {"type": "nginx 502", "count": 1},
    ]
    assert found["total_errors"] == 4
    assert [(g["day"], g["severity"]) for g in found["groups"] if g["type"] == "ValueError"] == [
        ("2026-05-01", "error"),
        ("2026-05-02", "error"),
    ]
    samples = [(s["type"], s["line"], s["message"]) for s in found["samples"]]
    assert samples[:2] == [("ValueError", 1, "一"), ("ValueError", 5, "two")]
    assert [file["errors"] for file in found["files"]] == [3, 1]
    assert found["files"][0]["path"] == str(root / "app.log")


async def test_severity_and_time_bound_what_counts(tools: tuple[Tool, ...]) -> None:
    paths = ["app.log", "web/访问.log.1.gz"]

    async def total(**bounds: Any) -> int:
        found = data(await ask(tools, "classify_errors", paths=paths, **bounds))
        count: int = found["total_errors"]
        return count

    assert await total(min_severity="warning") == 5
    assert await total(min_severity="critical") == 1
    assert await total(since="2026-05-02") == 3
    assert await total(until="2026-05-02T00:00:00Z") == 1
    assert await total(since="2026-05-02T20:00:00+08:00", until="2026-05-03") == 1
    assert (await ask(tools, "classify_errors", paths=paths, since="yesterday")).is_error


async def test_one_bad_file_never_fails_the_others(root: Path, tools: tuple[Tool, ...]) -> None:
    (root / "cut.gz").write_bytes(gzip.compress(os.urandom(9_000))[:4_000])
    paths = ["missing.log", "/etc/passwd", "../x", "web", "cut.gz", "app.log"]
    found = data(await ask(tools, "classify_errors", paths=paths))
    assert found["total_errors"] == 3
    assert found["unreadable"] == 5
    problems = [file["problem"] for file in found["files"]]
    assert problems[-1] is None
    assert all(problems[:-1])


async def test_a_path_given_twice_counts_once(tools: tuple[Tool, ...]) -> None:
    found = data(await ask(tools, "classify_errors", paths=["app.log", "app.log"]))
    assert found["total_errors"] == 3


async def test_counting_files_and_counting_groups_agree(tools: tuple[Tool, ...]) -> None:
    paths = ["app.log", "web/访问.log.1.gz"]
    groups = data(await ask(tools, "classify_errors", paths=paths, detail="day"))["groups"]
    for by in ("type", "file", "day", "severity"):
        counted = data(await ask(tools, "count_errors", paths=paths, by=by))
        assert counted == data(await ask(tools, "count_errors", groups=groups, by=by))
        assert counted["total"] == sum(row["count"] for row in counted["rows"]) == 4
        assert sum(row["share"] for row in counted["rows"]) == pytest.approx(1, abs=1e-4)


async def test_rows_carry_first_and_last_seen_and_the_rest_is_summed(
    tools: tuple[Tool, ...],
) -> None:
    counted = data(await ask(tools, "count_errors", paths=["app.log"], by="type", limit=1))
    [row] = counted["rows"]
    assert (row["key"], row["count"], row["share"]) == ("ValueError", 2, 0.666667)
    assert (row["first_seen"], row["last_seen"]) == ("2026-05-01T08:00:00", "2026-05-02T08:00:00")
    assert (counted["distinct"], counted["other"]) == (2, 1)


async def test_days_stand_in_order_of_time(tools: tuple[Tool, ...]) -> None:
    counted = data(await ask(tools, "count_errors", paths=["app.log"], by="day"))
    assert [(r["key"], r["count"]) for r in counted["rows"]] == [
        ("2026-05-01", 1),
        ("2026-05-02", 2),
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        {"by": "type"},
        {"by": "type", "paths": ["app.log"], "groups": []},
        {"by": "type", "groups": [], "since": "2026-05-01"},
        {"by": "day", "groups": [
            {"type": "x", "severity": "error", "count": 1, "first_seen": None, "last_seen": None}
        ]},
    ],
)  # fmt: skip
async def test_counting_the_wrong_way_is_told(
    tools: tuple[Tool, ...], arguments: dict[str, Any]
) -> None:
    result = await ask(tools, "count_errors", **arguments)
    assert result.is_error


async def test_no_groups_count_to_nothing(tools: tuple[Tool, ...]) -> None:
    counted = data(await ask(tools, "count_errors", by="type", groups=[]))
    assert (counted["total"], counted["rows"]) == (0, [])


async def test_types_without_end_are_folded_into_one(root: Path) -> None:
    lines = [f'{{"level": "error", "logger": "l{n}"}}\n' for n in range(25_000)]
    (root / "wild.jsonl").write_text("".join(lines), encoding="utf-8")
    tools = LogTools(sandbox=Sandbox([root]), max_bytes=10**8).table()
    found = data(await ask(tools, "classify_errors", paths=["wild.jsonl"], max_groups=10))
    assert (found["total_errors"], len(found["groups"]), found["groups_cut"]) == (25_000, 10, True)
    assert found["types"][0] == {"type": "(other)", "count": 5_000}


async def test_a_forged_type_cannot_break_lines(root: Path, tools: tuple[Tool, ...]) -> None:
    (root / "forged.jsonl").write_text(
        '{"level": "error", "logger": "a\\nb\\u001b[31m\\u202e"}\n', encoding="utf-8"
    )
    found = data(await ask(tools, "classify_errors", paths=["forged.jsonl"]))
    assert found["types"][0]["type"] == "json error a b [31m"
