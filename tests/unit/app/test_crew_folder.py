"""The folder of the workers' sockets, and those that killed gateways have left."""

import os
from pathlib import Path

import pytest

from thoughtgate.app.crew.folder import PREFIX, held, private_folder
from thoughtgate.core.workers import Crew


def left(place: Path, name: str, *files: str) -> Path:
    folder = place / f"{PREFIX}{name}"
    folder.mkdir(mode=0o700)
    for file in files:
        (folder / file).touch()
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a path that is short enough, which is the one in which we are."""
    monkeypatch.chdir(tmp_path)
    return Path()


def test_the_folder_of_sockets_is_private_and_goes_away(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    with private_folder({"XDG_RUNTIME_DIR": str(long)}) as folder:
        assert folder.parent != long
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "worker-0.sock").touch()
    assert not folder.exists()


def test_a_place_that_cannot_be_written_is_passed_over(tmp_path: Path) -> None:
    with private_folder({"XDG_RUNTIME_DIR": os.fspath(tmp_path / "none")}) as folder:
        assert folder.exists()


def test_what_a_killed_gateway_has_left_is_removed_by_the_next_one(place: Path) -> None:
    crew = Crew(count=64)
    sockets = [crew.socket(63).name, crew.door(0).name]
    gone = [left(place, "empty"), left(place, "full", *sockets)]
    with private_folder({"XDG_RUNTIME_DIR": "./"}):
        assert not any(folder.exists() for folder in gone)


def test_what_is_held_or_not_a_gateway_s_own_stays(place: Path) -> None:
    foreign = [left(place, "mine", "letter.txt"), left(place, "open", "worker-0.sock")]
    foreign[1].chmod(0o755)
    target = left(place, "workers", "worker-0.sock")
    link = place / f"{PREFIX}link"
    link.symlink_to(target)
    file = place / f"{PREFIX}file"
    file.touch()
    with held(target), private_folder({"XDG_RUNTIME_DIR": "./"}) as first:
        with private_folder({"XDG_RUNTIME_DIR": "./"}) as second:
            assert first.exists()
            assert second.exists()
        every = [*foreign, target, link, file]
        assert all(one.exists() for one in every)
        assert [one.name for one in target.iterdir()] == ["worker-0.sock"]


def test_a_folder_that_is_gone_cannot_be_held(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), held(tmp_path / "gone"):
        pass
