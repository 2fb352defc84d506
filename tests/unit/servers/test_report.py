"""The report server: what it writes is whole, escaped, the same again, and never in the way."""

import hashlib
import os
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.support.tool_servers import ask, data, text
from thoughtgate_servers.report.chart import Bar, bar_chart, fitted
from thoughtgate_servers.report.tools import ReportTools, output_directory
from thoughtgate_servers.sandbox import Sandbox
from thoughtgate_servers.table import Tool, ToolFailed

NASTY = '<script>alert("x")</script> & ]]> |*_`\n\x00\x1b\u202e'
ROWS = [
    {"key": "ValueError", "count": 30, "share": 0.75, "first_seen": "2026-05-01T00:00:00",
     "last_seen": None},
    {"key": "支付失败", "count": 10, "share": 0.25, "first_seen": None, "last_seen": None},
]  # fmt: skip


def content_of(path: str) -> bytes:
    return Path(path).read_bytes()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def tools(tmp_path: Path) -> tuple[Tool, ...]:
    return ReportTools(sandbox=output_directory(tmp_path / "out")).table()


async def test_a_report_has_tables_and_charts(tmp_path: Path, tools: tuple[Tool, ...]) -> None:
    asked: dict[str, Any] = {
        "title": "Errors · 错误", "counts": ROWS, "summary": "One.\n\nTwo.", "heading": "By type",
        "sections": [{"heading": "By day", "counts": [], "chart": False, "text": "none"},
                     {"heading": "More", "counts": ROWS[:1]}],
        "directory": "2026/五月", "name": "weekly",
    }  # fmt: skip
    done = data(await ask(tools, "write_report", **asked))
    folder = tmp_path / "out" / "2026" / "五月"
    assert sorted(path.name for path in folder.iterdir()) == [
        "weekly-by-type.svg", "weekly-more.svg", "weekly.md",
    ]  # fmt: skip
    page = (folder / "weekly.md").read_text(encoding="utf-8")
    assert page.startswith(
        "# Errors · 错误\n\nOne.\n\nTwo.\n\n## By type\n\n![By type](weekly-by-type.svg)"
    )
    assert "| 支付失败 | 10 | 25.0% |  |  |" in page
    assert "| **Total** | **40** |" in page
    assert (done["total"], done["rows"]) == (40, 2)
    for file in (done["markdown"], *done["charts"]):
        content = content_of(file["path"])
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
        assert file["size"] == len(content)


async def test_the_same_call_again_changes_nothing(tools: tuple[Tool, ...]) -> None:
    first = data(await ask(tools, "write_report", title="t", counts=ROWS))
    again = data(await ask(tools, "write_report", title="t", counts=ROWS))
    assert first["markdown"]["outcome"] == "created"
    assert again["markdown"]["outcome"] == "unchanged"
    assert first["markdown"]["sha256"] == again["markdown"]["sha256"]


async def test_other_content_is_replaced_only_when_asked(
    tmp_path: Path, tools: tuple[Tool, ...]
) -> None:
    await ask(tools, "write_report", title="one", counts=ROWS)
    before = contents(tmp_path / "out")
    refused = await ask(tools, "write_report", title="two", counts=ROWS, sections=[
        {"heading": "new", "counts": ROWS}])  # fmt: skip
    assert refused.is_error
    assert "overwrite" in text(refused)
    assert contents(tmp_path / "out") == before
    done = data(await ask(tools, "write_report", title="two", counts=ROWS, overwrite=True))
    assert done["markdown"]["outcome"] == "replaced"


@pytest.mark.parametrize("directory", ["..", "../x", "/tmp", "a/../../b", "link", "link/x"])
async def test_nothing_is_written_outside(
    tmp_path: Path, tools: tuple[Tool, ...], directory: str
) -> None:
    (tmp_path / "out" / "link").symlink_to(tmp_path)
    result = await ask(tools, "write_report", title="t", counts=ROWS, directory=directory)
    assert result.is_error
    assert (os.listdir(tmp_path), os.listdir(tmp_path / "out")) == (["out"], ["link"])


async def test_a_link_in_the_place_of_the_report_is_not_written_through(
    tmp_path: Path, tools: tuple[Tool, ...]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    (tmp_path / "out" / "report.md").symlink_to(victim)
    result = await ask(tools, "write_report", title="t", counts=ROWS, overwrite=True)
    assert result.is_error
    assert victim.read_text(encoding="utf-8") == "mine"


async def test_names_are_plain(tools: tuple[Tool, ...]) -> None:
    for name in ("a/b", "../x", ".hidden", "a.md", ""):
        assert (await ask(tools, "write_report", title="t", counts=[], name=name)).is_error


async def test_no_value_becomes_markup(tmp_path: Path, tools: tuple[Tool, ...]) -> None:
    rows = [{"key": NASTY, "count": 1}]
    data(await ask(tools, "write_report", title=NASTY, counts=rows, summary=NASTY))
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "\x1b" not in page
    [row] = [line for line in page.splitlines() if line.startswith("| \\<script")]
    assert row.count(" | ") == 2


async def test_a_chart_is_well_formed_whatever_the_labels(tools: tuple[Tool, ...]) -> None:
    rows = [{"key": NASTY, "count": 5}, {"key": "错" * 200, "count": 2}, {"key": "", "count": 0}]
    drawn = data(await ask(tools, "render_chart", title=NASTY, counts=rows))
    tree = ET.fromstring(drawn["svg"])
    assert len(tree.findall("{http://www.w3.org/2000/svg}g")) == drawn["bars"] == 3
    assert tree.find(".//{http://www.w3.org/2000/svg}script") is None


def test_bars_are_as_long_as_their_share_of_the_longest() -> None:
    tree = ET.fromstring(bar_chart("t", [Bar(label="a", count=40), Bar(label="b", count=10)]))
    [a, b] = [g.find("{*}rect") for g in tree.findall("{*}g")]
    assert a is not None
    assert b is not None
    assert int(a.attrib["width"]) == 4 * int(b.attrib["width"])
    assert bar_chart("t", []) == bar_chart("t", [])
    assert "nothing to show" in bar_chart("t", [])


def test_labels_are_cut_by_columns() -> None:
    assert fitted("abc", 3) == "abc"
    assert fitted("abcd", 3) == "ab…"
    assert fitted("错误类型", 6) == "错误…"


async def test_more_rows_than_bars_are_counted(tools: tuple[Tool, ...]) -> None:
    rows = [{"key": str(n), "count": n} for n in range(200)]
    drawn = data(await ask(tools, "render_chart", title="t", counts=rows))
    assert (drawn["bars"], drawn["left_out"]) == (120, 80)
    assert "… and 80 more" in drawn["svg"]


async def test_a_chart_is_named_after_its_heading_or_its_place(
    tmp_path: Path, tools: tuple[Tool, ...]
) -> None:
    sections = [{"heading": heading, "counts": ROWS} for heading in ("按天", "By /day!", "by day")]
    data(await ask(tools, "write_report", title="t", counts=ROWS, sections=sections))
    assert {path.name for path in (tmp_path / "out").glob("*.svg")} == {
        "report.svg", "report-2.svg", "report-by-day.svg", "report-by-day-4.svg",
    }  # fmt: skip


async def test_a_report_says_what_it_rests_on(tmp_path: Path, tools: tuple[Tool, ...]) -> None:
    files = [
        {"path": "a.log", "lines": 10, "errors": 3, "unrecognised_lines": 2, "problem": None},
        {"path": "b*.gz", "lines": 5, "problem": "broken <gzip>"},
    ]
    rows = [
        {"key": "a", "count": 2, "first_seen": "2026-05-01T10:00:00.123456",
         "last_seen": "2026-05-03T00:00:00+00:00"},
        {"key": "b", "count": 1, "first_seen": "2026-05-02T00:00:00+02:00", "last_seen": "later"},
        {"key": "c", "count": 1, "last_seen": None},
    ]  # fmt: skip
    data(await ask(tools, "write_report", title="t", counts=rows[::2], files=files))
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert (
        "Read: 2 files, 15 lines. 2 lines are of no known format. First error 2026-05-01 10:00:00, "
        "last 2026-05-03 00:00:00. Not read to the end:\n\n- b\\*.gz: broken \\<gzip\\>\n"
    ) in page
    data(await ask(tools, "write_report", title="t", counts=rows, overwrite=True))
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "| 2026-05-01 10:00:00 | 2026-05-03 00:00:00Z |" in page
    assert "| 2026-05-02 00:00:00+02:00 | later |" in page
    assert "Read:" not in page


async def test_many_days_are_columns_along_the_time(tools: tuple[Tool, ...]) -> None:
    rows = [{"key": f"2026-{n // 28 + 1:02}-{n % 28 + 1:02}", "count": n} for n in range(89)]
    drawn = data(await ask(tools, "render_chart", title="By day", counts=rows))
    assert (drawn["bars"], drawn["left_out"]) == (89, 0)
    tree = ET.fromstring(drawn["svg"])
    assert int(tree.attrib["height"]) < 400
    bars = [g.find("{*}rect") for g in tree.findall("{*}g")]
    places = [int(bar.attrib["x"]) for bar in bars if bar is not None]
    assert len(places) == 89
    assert places == sorted(set(places))
    assert places[28] - places[27] > places[27] - places[26], "the end of January has no row"
    rows[3]["key"] = "never"
    assert (
        "2026-01-01</text>" in data(await ask(tools, "render_chart", title="t", counts=rows))["svg"]
    )


def test_an_output_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ToolFailed, match="cannot be made"):
        output_directory(tmp_path / "file" / "out")
    assert output_directory(tmp_path / "a" / "b").roots == Sandbox([tmp_path / "a" / "b"]).roots
