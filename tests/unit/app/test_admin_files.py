"""The files beside the admin API: the token that only its owner may read, and who runs."""

import os
import resource
import stat
import threading
from pathlib import Path

import pytest

from thoughtgate.app.admin_token import ensured_token, read_token
from thoughtgate.app.presence import FOLDER, Presence, present, running
from thoughtgate.core.errors import ConfigError

HERE = Presence(pid=os.getpid(), version="1", started="2026-01-01T00:00:00+00:00")


def test_the_token_is_made_once_random_and_for_its_owner_alone(tmp_path: Path) -> None:
    file, other = tmp_path / "admin.token", tmp_path / "other.token"
    token = ensured_token(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(token) >= 43
    assert ensured_token(file) == read_token(file) == token
    assert ensured_token(other) != token
    assert sorted(one.name for one in tmp_path.iterdir()) == ["admin.token", "other.token"]


def test_gateways_that_start_at_once_have_one_token(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(ensured_token(tmp_path / "admin.token")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert len(found) == 8
    assert len(set(found)) == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o666, 0o777, 0o610])
def test_a_token_that_others_may_know_is_not_used(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "admin.token"
    token = ensured_token(file)
    file.chmod(mode)
    with pytest.raises(ConfigError) as caught:
        ensured_token(file)
    assert "chmod 600" in caught.value.message
    assert str(file) in caught.value.message
    assert token not in caught.value.message
    file.chmod(0o600)
    assert ensured_token(file) == token


def test_a_token_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "admin.token"
    ensured_token(file)
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    with pytest.raises(ConfigError) as caught:
        read_token(file)
    assert "another user" in caught.value.message


def test_what_is_no_token_file_is_not_used(tmp_path: Path) -> None:
    real = tmp_path / "real"
    ensured_token(real)
    link, folder, pipe = tmp_path / "link", tmp_path / "folder", tmp_path / "pipe"
    link.symlink_to(real)
    folder.mkdir()
    os.mkfifo(pipe, 0o600)
    for text in ("", "short", "not a token " * 10, "é" * 50):
        (tmp_path / "odd").write_text(text, encoding="utf-8")
        (tmp_path / "odd").chmod(0o600)
        with pytest.raises(ConfigError):
            read_token(tmp_path / "odd")
    for file in (link, folder, pipe, tmp_path / "missing"):
        with pytest.raises(ConfigError) as caught:
            read_token(file)
        assert str(file) in caught.value.message


def test_who_runs_is_known_as_long_as_it_runs(tmp_path: Path) -> None:
    assert running(tmp_path) == ()
    with present(tmp_path, HERE):
        with present(tmp_path, Presence(pid=1, version="1", started="", url="http://a")):
            assert [one.pid for one in running(tmp_path)] == [1, HERE.pid]
        assert running(tmp_path) == (HERE,)
    assert running(tmp_path) == ()


def test_a_note_of_one_that_was_killed_is_not_believed(tmp_path: Path) -> None:
    with present(tmp_path, HERE):
        [note] = (tmp_path / FOLDER).iterdir()
        left = note.read_bytes()
    note.write_bytes(left)
    assert running(tmp_path) == ()
    assert not note.exists()


def test_a_folder_that_cannot_be_written_is_no_reason_not_to_run(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file", encoding="utf-8")
    with present(tmp_path, HERE):
        assert running(tmp_path) == ()


def test_a_disk_without_room_is_no_reason_not_to_run(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with present(tmp_path, HERE):
            assert running(tmp_path) == ()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list((tmp_path / FOLDER).iterdir()) == []
