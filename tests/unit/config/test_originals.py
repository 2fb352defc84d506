"""A client's file on disk: what a change keeps of it, and what is refused."""

import os
import stat
from pathlib import Path

import pytest

from thoughtgate.config.clients.diffs import diff
from thoughtgate.config.clients.edits import connected, disconnected
from thoughtgate.config.clients.places import CLIENTS
from thoughtgate.config.originals import BACKUP, backups, read, write
from thoughtgate.config.texts import Unreadable
from thoughtgate.core.errors import ConfigError

CURSOR = CLIENTS["cursor"]
ENTRY = {"type": "stdio", "command": "/bin/thoughtgate", "args": ["serve", "--stdio"]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text("one", encoding="utf-8")
    return path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755])
def test_a_file_keeps_its_mode_and_its_backup_has_the_same(path: Path, mode: int) -> None:
    path.chmod(mode)
    backup = write(read(path), "two")
    assert backup == path.with_name(f"config.json{BACKUP}")
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, backup)] == [mode, mode]
    assert (path.read_text("utf-8"), backup.read_text("utf-8")) == ("two", "one")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_file_keeps_its_owner(path: Path) -> None:
    os.chown(path, 1234, 5678)
    backup = write(read(path), "two")
    assert backup is not None
    for each in (path, backup):
        assert (each.stat().st_uid, each.stat().st_gid) == (1234, 5678)


def test_a_new_file_is_for_its_owner_only_and_its_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "config.json"
    assert write(read(path), "two") is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names(path.parent) == {"config.json"}


def test_a_link_is_followed_and_stays_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "home" / "config.json"
    link.parent.mkdir()
    link.symlink_to(path)
    backup = write(read(link), "two")
    assert link.is_symlink()
    assert path.read_text("utf-8") == "two"
    assert backup == link.with_name(f"config.json{BACKUP}")
    assert not backup.is_symlink()


def test_a_link_to_nothing_makes_what_it_names(tmp_path: Path) -> None:
    link = tmp_path / "config.json"
    link.symlink_to(tmp_path / "dotfiles" / "real.json")
    write(read(link), "two")
    assert link.is_symlink()
    assert (tmp_path / "dotfiles" / "real.json").read_text("utf-8") == "two"


def test_no_backup_is_ever_written_over(path: Path) -> None:
    for text in ("two", "three", "four"):
        write(read(path), text)
    assert list(backups(read(path))) == ["three", "two", "one"]
    assert names(path.parent) == {
        "config.json", f"config.json{BACKUP}", f"config.json{BACKUP}.1", f"config.json{BACKUP}.2",
    }  # fmt: skip


def test_a_file_can_go_and_its_backup_stays(path: Path) -> None:
    write(read(path), None)
    assert names(path.parent) == {f"config.json{BACKUP}"}


def test_what_changed_since_it_was_read_is_not_written_over(path: Path) -> None:
    file = read(path)
    path.write_text("meanwhile", encoding="utf-8")
    with pytest.raises(ConfigError, match="changed by another program"):
        write(file, "two")
    assert path.read_text("utf-8") == "meanwhile"
    assert names(path.parent) == {"config.json"}


def test_a_file_that_appeared_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    file = read(tmp_path / "config.json")
    file.path.write_text("meanwhile", encoding="utf-8")
    with pytest.raises(ConfigError, match="changed by another program"):
        write(file, "two")


def test_a_read_only_file_is_refused(path: Path) -> None:
    path.chmod(0o444)
    with pytest.raises(ConfigError, match="read-only"):
        write(read(path), "two")
    assert names(path.parent) == {"config.json"}


def test_a_folder_a_pipe_and_a_path_through_a_file_are_refused(path: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for wrong in (tmp_path, tmp_path / "pipe", path / "config.json"):
        with pytest.raises(ConfigError):
            read(wrong)


def test_a_link_that_leads_to_itself_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(ConfigError):
        read(loop)


def test_what_is_not_utf_8_is_refused_with_its_place(path: Path) -> None:
    path.write_bytes(b'{\n "a": "\xff"}')
    with pytest.raises(Unreadable, match="line 2, column 8"):
        _ = read(path).text


def test_what_people_added_to_the_entry_stays() -> None:
    text = """{
  "mcpServers": {
    "thoughtgate": {
      "type": "stdio",
      "command": "/old/thoughtgate", // moved in May
      "args": ["serve", "--stdio"],
      "env": {
        "TOKEN": "mine"
      },
      "disabled": false
    }
  }
}
"""
    entry = {**ENTRY, "env": {"THOUGHTGATE_HOME": "/srv"}}
    expected = text.replace("/old/", "/bin/").replace(
        '"mine"\n', '"mine",\n        "THOUGHTGATE_HOME": "/srv"\n'
    )
    assert connected(text, CURSOR, "thoughtgate", entry) == expected


def test_an_older_text_is_given_back_only_when_connecting_makes_the_present_one() -> None:
    old = '{"mcpServers":{},"theme":"dark"}'
    text = connected(old, CURSOR, "thoughtgate", ENTRY)
    changed = text.replace("dark", "light")
    assert disconnected(text, CURSOR, "thoughtgate", ["broken", '{"x": 1}', old]) == old
    assert disconnected(changed, CURSOR, "thoughtgate", [old]) == old.replace("dark", "light")
    assert disconnected(old, CURSOR, "thoughtgate", [None]) == old


def test_a_file_that_connecting_made_goes_and_one_with_more_in_it_does_not() -> None:
    made = connected("", CURSOR, "thoughtgate", ENTRY)
    assert disconnected(made, CURSOR, "thoughtgate", [None]) is None
    more = made.replace("{\n", '{\n  "x": 1,\n', 1)
    assert (
        disconnected(more, CURSOR, "thoughtgate", [None]) == '{\n  "x": 1,\n  "mcpServers": {}\n}\n'
    )


@pytest.mark.parametrize("text", ["[]", "5", '{"mcpServers": "x"}'])
def test_servers_that_are_no_object_are_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        connected(text, CURSOR, "thoughtgate", ENTRY)


def test_a_diff_numbers_its_lines_as_everybody_does() -> None:
    old = "\n".join(f"line {n}" for n in range(1, 21)) + "\n"
    new = old.replace("line 10\n", "line ten\nline ten and a half\n")
    assert list(diff(old, new, "f")) == [
        "--- f", "+++ f", "@@ -7,7 +7,8 @@",
        " line 7", " line 8", " line 9", "-line 10", "+line ten", "+line ten and a half",
        " line 11", " line 12", " line 13",
    ]  # fmt: skip
    assert list(diff("", "a\n", "f"))[2:] == ["@@ -0,0 +1 @@", "+a"]
    assert list(diff("a\n", "", "f"))[2:] == ["@@ -1 +0,0 @@", "-a"]


def test_a_diff_cuts_a_line_that_nobody_could_read() -> None:
    *_, line = diff("", "x" * 1000, "f")
    assert line == f"+{'x' * 400} … 600 more characters"
