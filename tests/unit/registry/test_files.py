"""The registry's file: how it begins, how it grows older, and what may be wrong with it."""

import os
import sqlite3
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from tests.support.registries import FILE, open_in, outcome_of, python, raw
from thoughtgate.core.errors import (
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreNewer,
    StoreOlder,
)
from thoughtgate.core.servers import LocalTransport, Server
from thoughtgate.registry import files, tables, trouble
from thoughtgate.registry.database import WAL_LIMIT
from thoughtgate.registry.logins import StoredLogin
from thoughtgate.registry.migrations.versions import __name__ as versions_package
from thoughtgate.registry.store import Registry

SERVER = Server(name="files", transport=LocalTransport())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def older(folder: Path) -> Path:
    """A registry at the first schema version, with a server in it."""
    folder.mkdir()
    path = folder / FILE
    path.touch()
    files.migrate(path, files.VERSIONS[0], patience=1)
    with raw(folder) as connection:
        connection.execute(
            "INSERT INTO servers VALUES"
            " ('kept', 1, 0, x'7b226b696e64223a226c6f63616c227d', x'7b7d', 'local', 1, 'local', 1)"
        )
    return path


@contextmanager
def without_privileges() -> Iterator[None]:
    """Let file permissions count also where the tests run as root."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_new_registry_and_all_beside_it_belong_to_the_owner_alone(folder: Path) -> None:
    registry = open_in(folder)
    registry.put_server(SERVER)
    modes = {path.name: mode(path) for path in folder.iterdir()}
    registry.close()
    assert mode(folder) == 0o700
    assert set(modes.values()) == {0o600}
    assert FILE in modes


def test_a_new_registry_uses_the_log_mode_and_knows_its_local_user(registry: Registry) -> None:
    with registry.database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        assert connection.exec_driver_sql("PRAGMA wal_autocheckpoint").scalar() == 0
    assert [principal.id for principal in registry.principals()] == ["local"]


def test_two_registries_have_different_install_ids(folder: Path) -> None:
    one, other = open_in(folder / "a"), open_in(folder / "b")
    ids = {one.install_id(), other.install_id()}
    one.close()
    other.close()
    assert len(ids) == 2


def test_the_migrations_end_at_the_tables_of_this_release(registry: Registry) -> None:
    with registry.database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, tables.metadata) == []


def test_the_known_versions_are_those_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", "thoughtgate.registry:migrations")
    steps = ScriptDirectory.from_config(config).walk_revisions()
    assert tuple(step.revision for step in steps)[::-1] == files.VERSIONS
    assert versions_package.endswith("migrations.versions")


def test_an_older_registry_is_upgraded_and_a_copy_kept(older: Path) -> None:
    registry = open_in(older.parent)
    assert registry.server_names() == ("kept",)
    registry.close()
    (copy,) = older.parent.glob(f"{FILE}.backup-{files.VERSIONS[0]}-*")
    assert files.version_of(copy, patience=1) == files.VERSIONS[0]
    assert files.version_of(older, patience=1) == files.VERSIONS[-1]
    assert mode(copy) == 0o600


@pytest.mark.parametrize("version", files.VERSIONS[:-1])
def test_a_registry_of_any_older_version_takes_a_login_once_it_is_upgraded(
    folder: Path, version: str
) -> None:
    folder.mkdir()
    (folder / FILE).touch()
    files.migrate(folder / FILE, version, patience=1)
    registry = open_in(folder)
    registry.put_login(StoredLogin(server="web", url="http://127.0.0.1:9/mcp", secret="t0ken"))
    kept = registry.login("web", "http://127.0.0.1:9/mcp")
    registry.close()
    assert kept is not None
    assert kept.secret == "t0ken"


def test_an_upgrade_that_fails_leaves_the_registry_as_it_was(older: Path) -> None:
    with raw(older.parent) as connection:
        connection.execute("CREATE TABLE audit (in_the_way)")
    with pytest.raises(StoreError):
        open_in(older.parent)
    with raw(older.parent) as connection:
        connection.execute("DROP TABLE audit")
        tables_left = connection.execute(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'audit_chains'"
        )
        assert tables_left.fetchone() == (0,)
    registry = open_in(older.parent)
    assert registry.server_names() == ("kept",)
    registry.close()


def test_an_older_registry_in_use_is_not_upgraded_under_its_user(folder: Path) -> None:
    running = open_in(folder)
    with raw(folder) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (files.VERSIONS[0],))
    with pytest.raises(StoreOlder, match="stop"):
        open_in(folder)
    running.close()


def test_a_newer_registry_is_refused_and_left_alone(folder: Path) -> None:
    open_in(folder).close()
    with raw(folder) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9001'")
    before = (folder / FILE).read_bytes()
    with pytest.raises(StoreNewer, match=r"9001.*newer thoughtgate"):
        open_in(folder)
    assert (folder / FILE).read_bytes() == before


def spoil_empty(path: Path) -> None:
    os.truncate(path, 0)


def spoil_cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def spoil_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"not a database at all")


def spoil_foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()


def spoil_unversioned(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE alembic_version")
    connection.close()


@pytest.mark.parametrize(
    "spoil", [spoil_empty, spoil_cut, spoil_header, spoil_foreign, spoil_unversioned]
)
def test_a_damaged_or_foreign_file_is_refused_and_never_touched(
    folder: Path, spoil: Callable[[Path], None]
) -> None:
    open_in(folder).close()
    spoil(folder / FILE)
    before = (folder / FILE).read_bytes()
    with pytest.raises(StoreCorrupt, match=r"restore a backup.*or move the file away"):
        open_in(folder)
    assert (folder / FILE).read_bytes() == before


def test_damage_met_later_is_named_when_it_is_met(folder: Path) -> None:
    registry = open_in(folder)
    registry.record_tools("files", [{"name": f"t{n}", "text": "x" * 2000} for n in range(50)])
    registry.close()
    with (folder / FILE).open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(size // 2)  # where rows are, not the schema
        file.write(os.urandom(size - size // 2))
    registry = open_in(folder)
    with pytest.raises(StoreCorrupt):
        registry.known_tools("files")
    registry.close()


@pytest.mark.parametrize("row", [b"", b"\xff", b'{"era":7}', b'{"era":'])
def test_a_row_that_says_nothing_readable_is_damage(folder: Path, row: bytes) -> None:
    registry = open_in(folder)
    registry.put_server(SERVER)
    with raw(folder) as connection:
        connection.execute("UPDATE servers SET settings = ?", (row,))
    with pytest.raises(StoreCorrupt, match="a row"):
        registry.servers()
    registry.close()


def test_a_log_without_its_database_is_not_replayed_into_a_new_one(folder: Path) -> None:
    registry = open_in(folder)
    registry.put_server(SERVER)
    log = (folder / f"{FILE}-wal").read_bytes()
    registry.close()
    (folder / FILE).unlink()
    (folder / f"{FILE}-wal").write_bytes(log)
    with pytest.raises(StoreCorrupt, match="still there"):
        open_in(folder)
    assert (folder / f"{FILE}-wal").read_bytes() == log
    assert not (folder / FILE).exists()


def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with without_privileges(), pytest.raises(StoreError, match="folder that this user may write"):
        open_in(tmp_path)
    assert names_in(tmp_path) == set()


def test_a_path_through_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match=r"not a directory|file exists"):
        open_in(tmp_path / "file")


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_registry_that_another_program_holds_is_readable_and_says_so_on_writes(
    folder: Path,
) -> None:
    registry = open_in(folder, patience=0.05)
    with python(HOLD, folder / FILE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert registry.servers() == ()
        with pytest.raises(StoreLocked, match="close that program"):
            registry.put_server(SERVER)
        late = open_in(folder, patience=0.05)
        late.close()
    registry.put_server(SERVER)
    assert registry.server_names() == ("files",)
    registry.close()


FILL = """
import json, resource, sys
from pathlib import Path
from tests.support.registries import open_in
from thoughtgate.core.errors import StoreFull
registry = open_in(Path(sys.argv[1]))
registry.record_tools("before", [{"name": "kept"}])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
big = [{"name": f"tool-{n}", "text": "x" * 10_000} for n in range(50)]
try:
    registry.record_tools("big", big)
    code = "none"
except StoreFull as error:
    code = error.code
left = [len(registry.known_tools("before")), len(registry.known_tools("big"))]
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
registry.record_tools("big", big)
after = len(registry.known_tools("big"))
registry.close()
print(json.dumps([code, left, after]))
"""


def test_a_full_disk_keeps_what_was_there_and_recovers_when_space_is_back(folder: Path) -> None:
    assert outcome_of(FILL, folder) == ["store_full", [1, 0], 50]


def test_sqlites_own_word_for_full_is_understood(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x") as connection:
        connection.execute("PRAGMA max_page_count = 3")
        connection.execute("CREATE TABLE t (v)")
        with pytest.raises(StoreFull), trouble.translated(tmp_path / "x"):
            connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
    connection.close()


def test_the_log_is_moved_into_the_database_before_it_grows_large(registry: Registry) -> None:
    big = [{"name": f"t{n}", "text": "x" * 100_000} for n in range(30)]
    for turn in range(6):
        registry.record_tools("files", [{**one, "turn": turn} for one in big])
    log = registry.database.path.with_name(f"{FILE}-wal")
    assert log.stat().st_size <= 2 * WAL_LIMIT


SHOW = """
import json, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import thoughtgate
from tests.support.registries import open_in
assert thoughtgate.__file__.startswith(sys.argv[1]), thoughtgate.__file__
registry = open_in(Path(sys.argv[2]))
print(json.dumps(registry.install_id()))
registry.close()
"""


def test_the_migrations_travel_in_the_wheel(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    root = Path(__file__).parents[3]
    build = (
        "import os, runpy, sys; os.chdir(sys.argv[1]);"
        "sys.argv = ['hatchling', 'build', '-t', 'wheel', '-d', sys.argv[2]];"
        "runpy.run_module('hatchling', run_name='__main__')"
    )
    with python(build, root, wheels) as process:
        _, complaint = process.communicate(timeout=50)
    assert process.returncode == 0, complaint
    (wheel,) = wheels.iterdir()
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    assert outcome_of(SHOW, tmp_path / "installed", tmp_path / "home")
