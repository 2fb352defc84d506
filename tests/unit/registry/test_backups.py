"""Backup while in use, restore while not, and nothing is ever overwritten."""

import os
import stat
from pathlib import Path

import pytest

from tests.support.registries import FILE, open_in, raw
from thoughtgate.core.errors import (
    ConfigError,
    StoreCorrupt,
    StoreError,
    StoreLocked,
    StoreNewer,
)
from thoughtgate.core.servers import LocalTransport, Server
from thoughtgate.registry import files
from thoughtgate.registry.backups import restore
from thoughtgate.registry.store import Registry

OLD = Server(name="old", transport=LocalTransport())
NEW = Server(name="new", transport=LocalTransport())


@pytest.fixture
def copy(registry: Registry, tmp_path: Path) -> Path:
    """A backup with `old` in it, of a registry that has `new` as well by now."""
    registry.put_server(OLD)
    target = tmp_path / "copy.db"
    registry.backup(target)
    registry.put_server(NEW)
    return target


def names(folder: Path) -> tuple[str, ...]:
    registry = open_in(folder)
    try:
        return registry.server_names()
    finally:
        registry.close()


def test_a_backup_of_a_registry_in_use_holds_everything_and_is_private(
    copy: Path, folder: Path
) -> None:
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [path.name for path in copy.parent.iterdir() if path != folder] == [copy.name]
    restore(copy.parent / "elsewhere" / FILE, copy)
    assert names(copy.parent / "elsewhere") == ("old",)


def test_a_backup_overwrites_nothing(registry: Registry, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("precious", encoding="utf-8")
    with pytest.raises(ConfigError, match="exists"):
        registry.backup(target)
    assert target.read_text(encoding="utf-8") == "precious"
    with pytest.raises(ConfigError, match="folder does not exist"):
        registry.backup(tmp_path / "no" / "copy.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "home"]


def test_a_restore_puts_the_copy_in_place_and_keeps_what_was_there(
    registry: Registry, copy: Path, folder: Path
) -> None:
    registry.close()
    kept = restore(folder / FILE, copy)
    assert names(folder) == ("old",)
    assert kept is not None
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    restore(folder / FILE, kept)
    assert names(folder) == ("new", "old")


@pytest.fixture
def closed(folder: Path) -> Path:
    """A folder with a registry that nobody has open."""
    registry = open_in(folder)
    registry.put_server(OLD)
    registry.close()
    return folder


def test_a_restore_refuses_while_a_process_has_the_registry_open(
    registry: Registry, copy: Path, folder: Path
) -> None:
    with pytest.raises(StoreLocked, match="stop it before restoring"):
        restore(folder / FILE, copy)
    assert registry.server_names() == ("new", "old")


def test_a_source_that_is_no_good_changes_nothing(closed: Path, tmp_path: Path) -> None:
    damaged, newer, empty = (tmp_path / name for name in ("damaged", "newer", "empty"))
    with raw(closed) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9001'")
    newer.write_bytes((closed / FILE).read_bytes())
    with raw(closed) as connection:
        connection.execute(f"UPDATE alembic_version SET version_num = '{files.VERSIONS[-1]}'")
    damaged.write_bytes((closed / FILE).read_bytes()[:-4096])
    empty.touch()
    before = (closed / FILE).read_bytes()
    for source, error in (
        (damaged, StoreCorrupt),
        (newer, StoreNewer),
        (empty, StoreCorrupt),
        (Path(__file__), StoreCorrupt),
        (tmp_path / "absent", ConfigError),
        (closed / FILE, ConfigError),
    ):
        with pytest.raises(error):
            restore(closed / FILE, source)
    assert (closed / FILE).read_bytes() == before
    assert [
        path.name
        for path in closed.iterdir()
        if ".db." in path.name and path.suffix not in {".lock", ".use"}
    ] == []


def test_a_damaged_registry_can_be_restored_and_is_kept(closed: Path, tmp_path: Path) -> None:
    registry = open_in(closed)
    registry.backup(tmp_path / "copy.db")
    registry.close()
    (closed / FILE).write_bytes(b"ruined" * 1000)
    (closed / f"{FILE}-wal").write_bytes(b"left over")
    kept = restore(closed / FILE, tmp_path / "copy.db")
    assert kept is not None
    assert kept.read_bytes() == b"ruined" * 1000
    assert kept.with_name(f"{kept.name}-wal").read_bytes() == b"left over"
    assert names(closed) == ("old",)


def test_an_older_backup_is_upgraded_when_the_registry_is_opened(
    folder: Path, tmp_path: Path
) -> None:
    older = tmp_path / "older.db"
    older.touch()
    files.migrate(older, files.VERSIONS[0], patience=1)
    restore(folder / FILE, older)
    assert names(folder) == ()
    assert files.version_of(older, patience=1) == files.VERSIONS[0]


def test_a_backup_that_finds_no_room_leaves_no_half(registry: Registry) -> None:
    full = Path("/dev/full/copy.db")
    with pytest.raises((StoreError, ConfigError)):
        registry.backup(full)
    assert os.path.lexists("/dev/full/copy.db") is False


def test_a_backup_that_could_not_be_restored_is_none(folder: Path, tmp_path: Path) -> None:
    registry = open_in(folder)
    registry.record_tools("files", [{"name": f"t{n}", "text": "x" * 2000} for n in range(50)])
    registry.close()
    with (folder / FILE).open("r+b") as file:
        file.seek(file.seek(0, 2) // 2)  # where rows are, not the schema
        file.write(b"ruined" * 5_000)
    registry = open_in(folder)
    with pytest.raises(StoreCorrupt, match="damaged"):
        registry.backup(tmp_path / "copy.db")
    registry.close()
    assert [path for path in tmp_path.iterdir() if path != folder] == []
