"""The journal under kill -9: what was promised to the world is in it."""

import json
import subprocess
import sys
from pathlib import Path


def killed(folder: Path, *options: str) -> tuple[int, dict[str, object]]:
    """Kill processes that write to a journal; return the exit code and what was found."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.journal_kills", str(folder), *options],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_no_write_is_sent_without_its_intent_and_nothing_recorded_is_done_again(
    tmp_path: Path,
) -> None:
    code, report = killed(tmp_path, "--kills", "15")
    assert (code, report["broken"]) == (0, []), report
    for counted in ("events", "asked", "writes", "in_doubt"):
        assert report[counted], report


def test_a_write_that_does_not_await_its_intent_is_found(tmp_path: Path) -> None:
    code, report = killed(tmp_path, "--kills", "8", "--careless")
    assert code == 1
    assert report["broken"], report
