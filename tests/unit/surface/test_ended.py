"""Sessions that their clients have ended: known here, to the next process, within bounds."""

from pathlib import Path

import pytest

from thoughtgate.surface import ended
from thoughtgate.surface.ended import EndedSessions

NOW = 2_000_000.0


def noted(file: Path | None) -> EndedSessions:
    return EndedSessions(file, lifetime=1000.0, clock=lambda: NOW)


def test_what_was_ended_is_known_here_and_to_the_next_process(tmp_path: Path) -> None:
    first = noted(tmp_path / "ended")
    assert "a" not in first
    for name in ("a", "b", "c"):
        first.add(name)
    for known in (first, noted(tmp_path / "ended")):
        assert [name in known for name in ("a", "b", "c", "d", "")] == [True] * 3 + [False] * 2
    assert "a" not in (tmp_path / "ended").read_text().split()


def test_rows_that_are_old_or_torn_are_passed_over(tmp_path: Path) -> None:
    noted(tmp_path / "ended").add("a")
    row = (tmp_path / "ended").read_text()
    old = row.replace("2000000", "1000000")
    (tmp_path / "ended").write_text(f"{old}2000000 {'x' * 32}\nnonsense\n2000000 12")
    assert "a" not in noted(tmp_path / "ended")
    (tmp_path / "ended").write_text(f"2000000 {'x' * 32}\n{row}")
    assert "a" in noted(tmp_path / "ended")


def test_only_so_many_are_remembered_in_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended, "_MOST", 3)
    known = noted(None)
    for name in "abcde":
        known.add(name)
    assert [name in known for name in "abcde"] == [False, False, True, True, True]


def test_the_file_does_not_grow_for_as_long_as_the_process_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ended, "_MOST", 3)
    known = noted(tmp_path / "ended")
    for number in range(20):
        known.add(f"{number}")
        assert len((tmp_path / "ended").read_text().splitlines()) <= 2 * 3
    assert [path.name for path in tmp_path.iterdir()] == ["ended"]
    assert "19" in noted(tmp_path / "ended")
