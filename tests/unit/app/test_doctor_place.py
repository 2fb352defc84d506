"""The doctor and a gateway's place: its files, disk, clock, port and traces, really broken."""

import asyncio
import fcntl
import os
import socket
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.patient import Patient
from tests.support.registries import python
from thoughtgate.app.doctor import clock, store, versions
from thoughtgate.app.doctor.findings import KINDS, Severity
from thoughtgate.app.doctor.port import check_port, command_of
from thoughtgate.app.stores import registry_file
from thoughtgate.config.files import load
from thoughtgate.core.domains import Domain
from thoughtgate.core.servers import HttpTransport, Server
from thoughtgate.registry.keys import KeyFile
from thoughtgate.registry.store import Registry
from thoughtgate.registry.vault import Vault
from thoughtgate.testing.otlp import OtlpReceiver


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient(tmp_path)


@pytest.fixture
def database(patient: Patient) -> Path:
    patient.open()
    return registry_file(load(patient.config, patient.environ))


def say(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(statement)
        connection.commit()


def put(database: Path, content: bytes) -> None:
    database.write_bytes(content)


def read(database: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in database.parent.iterdir()}


def modes(database: Path, folder: int, file: int) -> None:
    database.parent.chmod(folder)
    database.chmod(file)


async def test_everything_that_is_wrong_with_a_configuration_is_found(patient: Patient) -> None:
    patient.write('prot = 1\n[servers.a]\ncommand = ["${NOPE}"]\n[servers.b]\nurl = "ftp://h"\n')
    found = {one.code: one for one in await patient.findings("configuration")}
    assert "servers.b.url" in str([o.where for o in await patient.findings("configuration")])
    assert "config check" in found["config_invalid"].mend
    assert "export NOPE=" in found["variable_unset"].mend
    assert str(patient.config) in found["variable_unset"].where


async def test_a_server_without_its_variable_is_told_when_it_is_asked_for(patient: Patient) -> None:
    patient.write('[servers.a]\ncommand = ["${NOPE}"]\n')
    assert (await patient.finding("a")).code == "variable_unset"


@pytest.mark.parametrize("value", ["abc-s3cret", "Bearer abc.def.ghi123"])
async def test_a_file_with_secrets_that_others_may_read_is_told(
    patient: Patient, value: str
) -> None:
    patient.write(f'[servers.a]\nurl = "http://h/"\nheaders = {{Authorization = "{value}"}}\n')
    patient.config.chmod(0o644)
    found = await patient.finding("configuration")
    assert found.code == "config_readable"
    assert f"chmod 600 {patient.config}" in found.mend
    assert value not in str(found)
    patient.config.chmod(0o600)
    assert await patient.findings("configuration") == []


async def test_a_file_that_names_variables_may_be_read_by_all(patient: Patient) -> None:
    patient.environ["TOKEN"] = "abc"
    patient.write('[servers.a]\nurl = "http://h/"\nheaders = {Authorization = "Bearer ${TOKEN}"}\n')
    patient.config.chmod(0o644)
    assert await patient.findings("configuration") == []


async def test_a_registry_of_a_newer_release_is_left_alone(
    patient: Patient, database: Path
) -> None:
    say(database, "UPDATE alembic_version SET version_num = '9999'")
    before = read(database)
    found = await patient.finding("registry")
    assert (found.code, "9999" in found.what) == ("store_newer", True)
    assert read(database) == before


async def test_a_registry_of_an_older_release_is_told_and_not_upgraded(
    patient: Patient, database: Path
) -> None:
    say(database, "UPDATE alembic_version SET version_num = '0001'")
    found = await patient.finding("registry")
    assert (found.code, found.severity) == ("store_older", Severity.WARNING)
    with closing(sqlite3.connect(database)) as connection:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    assert row == ("0001",)


async def test_a_registry_that_another_process_holds_is_told(
    patient: Patient, database: Path
) -> None:
    program = (
        "import fcntl, sys\nlock = open(sys.argv[1] + '.lock')\n"
        "fcntl.flock(lock, fcntl.LOCK_EX)\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    with python(program, database) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        found = await patient.finding("registry")
    assert found.code == "store_locked"
    assert str(database) in found.mend


async def test_a_registry_that_is_written_just_now_is_well(
    patient: Patient, database: Path
) -> None:
    lock = os.open(f"{database}.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    asyncio.get_running_loop().call_later(0.2, os.close, lock)
    assert await patient.findings("registry") == []


async def test_a_domain_that_this_release_cannot_show_is_told(
    patient: Patient, database: Path
) -> None:
    with closing(Registry.open(database, vault=Vault(KeyFile(database)))) as registry:
        registry.put_domain(Domain(name="odd", limits="nobody's"))
    patient.write(patient.tiny({"name": "well", "inputSchema": {"type": "object"}}))
    checks = {check.name: check for check in await patient.look()}
    [found] = checks["registry"].findings
    assert (found.code, "domain odd" in found.what) == ("config_invalid", True)
    assert "thoughtgate domain rm odd" in found.mend
    assert checks["server it"].said == "1 tools"


@pytest.mark.parametrize("content", [b"", b"junk of another kind" * 500])
async def test_a_damaged_registry_is_told_and_left_as_it_is(
    patient: Patient, database: Path, content: bytes
) -> None:
    put(database, content)
    before = read(database)
    found = await patient.finding("registry")
    assert found.code == "store_corrupt"
    assert "registry restore" in found.mend
    assert read(database) == before


async def test_damage_within_a_registry_is_found(patient: Patient, database: Path) -> None:
    whole = read(database)[database.name]
    put(database, whole[: 4096 * 2] + b"\xff" * 4096 * 4 + whole[4096 * 6 :])
    assert (await patient.finding("registry")).code == "store_corrupt"


async def test_a_registry_that_others_may_read_is_told(patient: Patient, database: Path) -> None:
    modes(database, 0o755, 0o644)
    found = await patient.finding("registry")
    assert found.code == "store_mode"
    assert f"chmod 600 {database}" in found.mend


async def test_a_key_that_others_may_read_is_told(patient: Patient, database: Path) -> None:
    key = database.with_name("registry.key")
    KeyFile(key).create()
    key.chmod(0o644)
    found = await patient.finding("registry")
    assert found.code == "store_sealed"
    assert f"chmod 600 {key}" in found.mend


async def test_secrets_without_their_key_are_told_and_other_servers_looked_at(
    patient: Patient, database: Path
) -> None:
    key = database.with_name("registry.key")
    server = Server(
        name="web", transport=HttpTransport(url="http://h.invalid/", headers={"a": "b"})
    )
    with closing(Registry.open(database, vault=Vault(KeyFile(key)))) as registry:
        registry.put_server(server)
    key.unlink()
    patient.write(patient.tiny({"name": "well", "inputSchema": {"type": "object"}}))
    checks = {check.name: check for check in await patient.look()}
    assert [one.code for one in checks["registry"].findings] == ["store_sealed"]
    assert checks["server it"].findings == ()


async def test_looking_at_no_registry_makes_none(patient: Patient) -> None:
    assert await patient.findings("registry") == []
    assert not patient.state.exists()


def test_a_full_disk_and_one_on_a_network_are_told_apart() -> None:
    """Judged by numbers: a test cannot fill a disk."""

    def codes(**look: Any) -> list[str]:
        usual = store.Disk(free=2**33, total=2**40, writable=True, kind="ext4")
        disk = replace(usual, **look)
        return [one.code for one in store.judged_disk(disk, Path("/state"))]

    assert codes() == []
    assert codes(free=1000) == ["disk_full"]
    assert codes(free=100 * 2**20) == ["disk_low"]
    assert codes(writable=False) == ["disk_readonly"]
    assert codes(kind="nfs4") == ["store_on_network"]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """In another process, since root may write everywhere: it becomes nobody."""
    program = (
        "import os, sys\nfrom pathlib import Path\n"
        "from thoughtgate.app.doctor.store import check_disk\n"
        "if os.geteuid() == 0:\n    os.setgid(65534)\n    os.setuid(65534)\n"
        "found = check_disk(Path(sys.argv[1]) / 'state').findings\n"
        "print([(one.code, one.mend) for one in found], flush=True)\n"
    )
    tmp_path.chmod(0o500)
    with python(program, tmp_path) as looking:
        said, wrong = looking.communicate(timeout=30)
    assert "disk_readonly" in said, wrong
    assert "THOUGHTGATE_HOME" in said


def test_a_state_folder_below_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    checked = store.check_disk(tmp_path / "file" / "state")
    assert [one.code for one in checked.findings] == ["disk_readonly"]


def test_a_state_folder_that_nobody_lets_us_into_is_told(tmp_path: Path) -> None:
    program = (
        "import os, sys\nfrom pathlib import Path\n"
        "from thoughtgate.app.doctor.store import check_store\n"
        "if os.geteuid() == 0:\n    os.setgid(65534)\n    os.setuid(65534)\n"
        "print([one.code for one in check_store(Path(sys.argv[1])).findings], flush=True)\n"
    )
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    with python(program, closed / "registry.db") as looking:
        said, wrong = looking.communicate(timeout=30)
    closed.chmod(0o700)
    assert "store_error" in said, wrong


def test_the_file_system_of_a_folder_is_that_of_the_nearest_mount() -> None:
    mounts = (
        "22 1 8:1 / / rw - ext4 /dev/a rw\n"
        "30 22 0:5 / /home/you rw shared:1 - nfs4 host:/x rw\n"
        "31 30 0:6 / /home/you/my\\040disk rw - xfs /dev/b rw\n"
    )
    assert store.file_system(Path("/home/you/state"), mounts) == "nfs4"
    assert store.file_system(Path("/home/you/my disk/state"), mounts) == "xfs"
    assert store.file_system(Path("/home/you-too"), mounts) == "ext4"
    assert store.file_system(Path("/"), "") == ""


async def test_a_file_of_the_future_tells_that_the_clock_is_behind(
    patient: Patient, database: Path
) -> None:
    later = time.time() + 7200
    os.utime(database, (later, later))
    found = await patient.finding("clock")
    assert found.code == "clock_behind_files"
    assert str(database) in found.where
    assert "timedatectl" in found.mend


def test_a_clock_that_jumps_against_steady_time_is_told() -> None:
    began, ended = clock.Moment(wall=100.0, steady=5.0), clock.Moment(wall=50.0, steady=6.0)
    [found] = clock.judged_jump(began, ended)
    assert (found.code, "-51.0 s" in found.what) == ("clock_jumped", True)
    assert list(clock.judged_jump(began, clock.Moment(wall=101.5, steady=6.0))) == []


def test_dates_that_cannot_be_read_say_nothing() -> None:
    assert list(clock.judged_dates({"http://h": ("yesterday", 0.0)})) == []


def test_a_date_without_a_zone_is_that_of_greenwich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        said = "Mon, 30 Nov 2026 12:00:00 -0000"
        assert list(clock.judged_dates({"http://h": (said, 1_796_040_000.0)})) == []
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_an_endpoint_that_is_down_is_told(patient: Patient) -> None:
    with OtlpReceiver() as receiver:
        patient.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver.url
        assert await patient.findings("traces") == []
        receiver.answer(503)
        refusing = await patient.finding("traces")
        receiver.answer(200)
        assert [post.spans for post in receiver.posts] == [()]
    gone = await patient.finding("traces")
    assert (refusing.code, "503" in refusing.what) == ("exporter_refuses", True)
    assert gone.code == "exporter_down"
    assert f"{receiver.url}/v1/traces" in gone.mend


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_TRACES_EXPORTER", "jaeger"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "brotli"),
        ("OTEL_BSP_SCHEDULE_DELAY", "often"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "-1"),
    ],
)
async def test_a_value_that_means_nothing_is_told_with_one_that_does(
    patient: Patient, variable: str, value: str
) -> None:
    patient.environ[variable] = value
    found = await patient.finding("traces")
    assert found.code == "exporter_value"
    assert f"export {variable}=" in found.mend


async def test_a_port_in_use_is_told_with_the_process(patient: Patient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        patient.config.write_text(f"[gateway]\nport = {port}\n", encoding="utf-8")
        found = await patient.finding("port")
    assert found.code == "port_in_use"
    assert f":{port}" in found.mend
    if sys.platform == "linux":
        assert f"process {os.getpid()}" in found.what


async def test_a_port_in_use_where_grpc_is_to_be_served_is_told(patient: Patient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        patient.config.write_text(f"[gateway]\nport = 0\ngrpc_port = {port}\n", encoding="utf-8")
        found = await patient.finding("port")
    assert (found.code, found.where) == ("port_in_use", f"127.0.0.1:{port}")
    assert "thoughtgate serve --grpc-port 0, or another grpc_port" in found.mend


def test_a_process_is_shown_without_its_secrets() -> None:
    assert command_of(b"db\0--api-key\0s3cret\0--port\08765\0") == "db --api-key *** --port 8765"
    assert len(command_of(b"x" * 500)) == 80


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose a port is")
@pytest.mark.parametrize(
    "words", [("thoughtgate", "a" * 200, "serve"), ("thoughtgate.cli.worker",)]
)
def test_a_gateway_on_the_port_is_known_however_long_its_command_is(words: tuple[str, ...]) -> None:
    program = (
        "import socket, sys\nserver = socket.create_server(('127.0.0.1', 0))\n"
        "print(server.getsockname()[1], flush=True)\nsys.stdin.read()\n"
    )
    with python(program, *words) as listening:
        assert listening.stdout is not None
        checked = check_port("127.0.0.1", int(listening.stdout.readline()))
    assert checked.findings == ()
    assert checked.said.startswith("a gateway listens on")


def test_versions_that_are_too_old_are_told() -> None:
    found = list(versions.judged_versions((3, 10, 1), (3, 34, 0)))
    assert [one.where for one in found] == ["Python", "SQLite"]
    assert "3.11" in found[0].mend
    assert versions.check_versions().findings == ()


def test_every_finding_says_how_bad_it_is_and_why() -> None:
    assert {severity for severity, _ in KINDS.values()} == {Severity.WARNING, Severity.PROBLEM}
    assert all(why for _, why in KINDS.values())
