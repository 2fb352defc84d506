"""The sandbox: nothing outside the roots is ever opened."""

import os
from pathlib import Path

import pytest

from thoughtgate_servers.sandbox import Place, Sandbox
from thoughtgate_servers.table import ToolFailed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "a"
    (root / "sub").mkdir(parents=True)
    (root / "inside.txt").write_text("in", encoding="utf-8")
    (tmp_path / "a-evil").mkdir()
    (tmp_path / "a-evil" / "x").write_text("out", encoding="utf-8")
    (tmp_path / "secret").write_text("out", encoding="utf-8")
    return root


def _read(sandbox: Sandbox, path: str) -> str:
    with os.fdopen(sandbox.open_file(sandbox.place(path)), encoding="utf-8") as stream:
        return stream.read()


@pytest.mark.parametrize(
    "asked",
    ["../secret", "sub/../../secret", "{out}/secret", "{out}/a-evil/x", "/etc/passwd", "/"],
)
def test_a_path_out_of_the_root_is_refused(root: Path, asked: str) -> None:
    sandbox = Sandbox([root])
    with pytest.raises(ToolFailed):
        sandbox.open_file(sandbox.place(asked.format(out=root.parent)))


@pytest.mark.parametrize("asked", ["", "a\0b", "x" * 5000, chr(0xD800), chr(0xDCFF)])
def test_a_path_that_is_no_path_is_refused(root: Path, asked: str) -> None:
    with pytest.raises(ToolFailed):
        Sandbox([root]).place(asked)


def test_an_encoded_dot_dot_is_only_an_odd_name(root: Path) -> None:
    sandbox = Sandbox([root])
    with pytest.raises(ToolFailed, match="no such file"):
        _read(sandbox, "%2e%2e/secret")


def test_relative_and_absolute_paths_inside_are_read(root: Path) -> None:
    sandbox = Sandbox([root])
    assert _read(sandbox, "inside.txt") == _read(sandbox, str(root / "inside.txt")) == "in"


def test_a_link_out_is_refused_and_a_link_inside_is_followed(root: Path) -> None:
    (root / "out").symlink_to(root.parent / "secret")
    (root / "sub" / "up").symlink_to(root.parent)
    (root / "alias").symlink_to(root / "inside.txt")
    sandbox = Sandbox([root])
    for asked in ("out", "sub/up/secret", "sub/up/a-evil/x"):
        with pytest.raises(ToolFailed, match="outside"):
            sandbox.place(asked)
    assert _read(sandbox, "alias") == "in"


def test_a_link_that_turns_in_circles_is_refused(root: Path) -> None:
    (root / "round").symlink_to(root / "round")
    sandbox = Sandbox([root])
    with pytest.raises(ToolFailed):
        sandbox.open_file(sandbox.place("round"))


def test_a_name_swapped_for_a_link_after_the_check_is_not_followed(root: Path) -> None:
    """The check and the opening are two moments; between them an attacker may act."""
    sandbox = Sandbox([root])
    file, below = sandbox.place("inside.txt"), sandbox.place("sub/x")
    (root / "inside.txt").unlink()
    (root / "inside.txt").symlink_to(root.parent / "secret")
    (root / "sub").rmdir()
    (root / "sub").symlink_to(root.parent / "a-evil")
    for place in (file, below):
        with pytest.raises(ToolFailed):
            sandbox.open_file(place)


def test_a_fifo_is_refused_without_waiting_for_a_writer(root: Path) -> None:
    os.mkfifo(root / "pipe")
    sandbox = Sandbox([root])
    with pytest.raises(ToolFailed, match="not a regular file"):
        sandbox.open_file(sandbox.place("pipe"))


def test_a_directory_is_no_file(root: Path) -> None:
    sandbox = Sandbox([root])
    for asked in ("sub", str(root)):
        with pytest.raises(ToolFailed):
            sandbox.open_file(sandbox.place(asked))


def test_the_first_root_that_has_the_file_is_taken(root: Path) -> None:
    second = root.parent / "b"
    second.mkdir()
    (second / "only-here").write_text("b", encoding="utf-8")
    sandbox = Sandbox([root, second])
    assert _read(sandbox, "only-here") == "b"
    assert sandbox.place("nowhere") == Place(root=root, names=("nowhere",))


def test_a_root_that_is_no_directory_is_an_error(root: Path) -> None:
    with pytest.raises(NotADirectoryError):
        Sandbox([root / "inside.txt"])


def test_refusals_open_no_descriptor(root: Path) -> None:
    sandbox = Sandbox([root])
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for _ in range(50):
        with pytest.raises(ToolFailed):
            sandbox.open_file(sandbox.place("sub/missing/deeper"))
    after = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    assert after == before
