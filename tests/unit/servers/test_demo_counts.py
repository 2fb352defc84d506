"""The demo's logs: for five seeds the logs server counts what their writer knows."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from count import differences, expected, recounted, reported
from logbook import write_logs

from tests.support.tool_servers import ask, data
from thoughtgate_servers.logs.tools import LogTools
from thoughtgate_servers.report.tools import ReportTools
from thoughtgate_servers.sandbox import Sandbox


def written(folder: Path, seed: int) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(json.dumps(asdict(write_logs(folder, seed))))
    return manifest


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
async def test_the_counts_equal_the_independent_count(tmp_path: Path, seed: int) -> None:
    manifest = written(tmp_path / "logs", seed)
    tools = LogTools(sandbox=Sandbox([tmp_path / "logs"]), max_bytes=10**9).table()
    found = data(await ask(tools, "find_logs", max_age_days=manifest["days"]))
    assert found["total"] == sum(file["age_days"] < 92 for file in manifest["files"])
    classified = data(await ask(tools, "classify_errors", paths=found["paths"], detail="day"))
    for key in ("type", "day", "severity"):
        counted = data(await ask(tools, "count_errors", by=key, groups=classified["groups"]))
        rows = Counter({row["key"]: row["count"] for row in counted["rows"]})
        assert differences(expected(manifest, key), rows) == []
    assert differences(expected(manifest), recounted(manifest)) == []
    problems = [file for file in classified["files"] if file["problem"]]
    assert [Path(file["path"]).name for file in problems] == ["access-torn.log.gz"]


async def test_a_report_table_reads_back_as_the_counts(tmp_path: Path) -> None:
    counts = Counter({"a|b": 3, "*不*": 2, "x_y\\z": 1})
    rows = [{"key": key, "count": count} for key, count in counts.items()]
    tools = ReportTools(sandbox=Sandbox([tmp_path])).table()
    done = data(await ask(tools, "write_report", title="t", counts=rows, sections=[
        {"heading": "other", "counts": [{"key": "a|b", "count": 99}]}]))  # fmt: skip
    assert done["markdown"]["path"] == str(tmp_path / "report.md")
    assert reported((tmp_path / "report.md").read_text(encoding="utf-8")) == counts


def test_one_seed_writes_the_same_logs_again(tmp_path: Path) -> None:
    first, second = written(tmp_path / "a", 7), written(tmp_path / "b", 7)
    same = [file["path"] for file in first["files"]]
    assert same == [file["path"] for file in second["files"]]
    total = [sum(len(f["errors"]) for f in one["files"]) for one in (first, second)]
    assert total[0] == total[1]
    assert total[0] != sum(len(f["errors"]) for f in written(tmp_path / "c", 8)["files"])
