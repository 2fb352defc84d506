"""Server secrets: never in plain text anywhere, never opened with the wrong key or elsewhere."""

import base64
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from tests.support.registries import CANARY, FILE, bytes_in, make_row, open_in, raw
from thoughtgate.core.errors import StoreSealed
from thoughtgate.core.servers import HttpTransport, LocalTransport, Server, StdioTransport
from thoughtgate.registry.audit import AuditWriter
from thoughtgate.registry.keyring_key import KeyringKey, usable
from thoughtgate.registry.keys import KEY_BYTES, KeyFile, KeySource, choose
from thoughtgate.registry.store import Registry
from thoughtgate.registry.vault import Vault

STDIO = Server(name="stdio", transport=StdioTransport(argv=("x",), env={"TOKEN": CANARY}))
HTTP = Server(
    name="http",
    transport=HttpTransport(
        url=f"https://user:{CANARY}@host/mcp?key={CANARY}#{CANARY}",
        headers={"Authorization": f"Bearer {CANARY}"},
    ),
)
OPEN = Server(name="open", transport=LocalTransport())


class MemoryKeyring(KeyringBackend):
    """A keyring that forgets."""

    priority = 1

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.is_locked:
            raise KeyringLocked
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.is_locked:
            raise KeyringLocked
        self.entries[service, username] = password


@pytest.fixture
def ring() -> Iterator[MemoryKeyring]:
    before, ring = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


@pytest.fixture(params=["file", "keyring"])
def source(request: pytest.FixtureRequest, tmp_path: Path, ring: MemoryKeyring) -> KeySource:
    """Each place that a key may be kept in."""
    if request.param == "file":
        return KeyFile(tmp_path / "deep" / "key")
    assert usable()
    return KeyringKey("test")


def test_a_key_is_random_kept_and_never_replaced(source: KeySource) -> None:
    assert source.load() is None
    key = source.create()
    assert len(key) == KEY_BYTES
    assert len(set(key)) > 10
    assert source.load() == source.create() == key


def test_secrets_stand_in_no_file_in_plain_text(registry: Registry, folder: Path) -> None:
    registry.put_server(STDIO)
    registry.put_server(HTTP)
    registry.backup(folder / "copy.db")
    audit = AuditWriter(registry)
    audit.append(make_row())
    assert audit.close() == 0
    while_open = bytes_in(folder)
    assert registry.servers() == (HTTP, STDIO)
    registry.close()
    shapes = (
        CANARY.encode(),
        base64.b64encode(CANARY.encode()).rstrip(b"="),
        CANARY.encode().hex().encode(),
    )
    for content in (while_open, bytes_in(folder)):
        assert b"Authorization" in content
        assert [shape for shape in shapes if shape in content] == []


def test_without_secrets_no_key_is_made(registry: Registry, folder: Path) -> None:
    registry.put_server(OPEN)
    assert not (folder / "key").exists()
    registry.put_server(STDIO)
    assert stat.S_IMODE((folder / "key").stat().st_mode) == 0o600


def lose(key: Path) -> None:
    key.unlink()


def swap(key: Path) -> None:
    key.unlink()
    KeyFile(key).create()


def shorten(key: Path) -> None:
    key.write_bytes(key.read_bytes()[:20])


def scramble(key: Path) -> None:
    key.write_bytes(b"correct horse battery staple" * 2)


def show(key: Path) -> None:
    key.chmod(0o640)


def link(key: Path) -> None:
    key.rename(key.with_name("moved"))
    key.symlink_to("moved")


def nest(key: Path) -> None:
    key.unlink()
    key.mkdir()


@pytest.mark.parametrize("spoil", [lose, swap, shorten, scramble, show, link, nest])
def test_a_key_that_is_lost_or_not_private_is_named_and_none_is_made_up(
    folder: Path, spoil: Callable[[Path], None]
) -> None:
    registry = open_in(folder)
    registry.put_server(STDIO)
    registry.close()
    spoil(folder / "key")
    registry = open_in(folder)
    for attempt in (registry.servers, lambda: registry.put_server(HTTP)):
        with pytest.raises(StoreSealed) as caught:
            attempt()
        assert str(folder / "key") in caught.value.message
        assert spoil not in {lose, swap} or "server stdio" in caught.value.message
        assert CANARY not in caught.value.message
    assert (folder / "key").exists() is (spoil is not lose)
    assert registry.server_names() == ("stdio",)
    (shown,) = registry.servers_without_secrets()
    assert shown.transport == StdioTransport(argv=("x",), env={"TOKEN": ""})
    registry.put_server(OPEN)
    registry.close()


def test_after_the_servers_of_a_lost_key_are_removed_a_new_one_begins(folder: Path) -> None:
    registry = open_in(folder)
    registry.put_server(STDIO)
    registry.close()
    lose(folder / "key")
    registry = open_in(folder)
    registry.remove_server("stdio")
    registry.put_server(HTTP)
    assert registry.servers() == (HTTP,)
    registry.close()


def test_a_server_whose_key_is_lost_can_be_put_again_when_it_was_the_only_one(
    folder: Path,
) -> None:
    registry = open_in(folder)
    registry.put_server(STDIO)
    registry.close()
    lose(folder / "key")
    registry = open_in(folder)
    registry.put_server(STDIO)
    assert registry.servers() == (STDIO,)
    registry.close()


def move(registry_folder: Path, statement: str) -> None:
    with raw(registry_folder) as connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE server_secrets SET server = 'twin'",
        "UPDATE server_secrets SET field = 'env:PATH'",
        "UPDATE server_secrets SET sealed = substr(sealed, 1, length(sealed) - 1)",
        "UPDATE server_secrets SET sealed = CAST(x'02' || substr(sealed, 2) AS BLOB)",
        "UPDATE server_secrets SET sealed = x''",
    ],
)
def test_a_ciphertext_opens_only_whole_and_in_its_own_place(
    registry: Registry, folder: Path, tampering: str
) -> None:
    registry.put_server(STDIO)
    registry.put_server(replace(OPEN, name="twin"))
    move(folder, tampering)
    with pytest.raises(StoreSealed, match="does not open"):
        registry.servers()


def test_the_same_secret_never_looks_the_same_twice(registry: Registry, folder: Path) -> None:
    registry.put_server(STDIO)
    registry.put_server(replace(STDIO, name="twin"))
    with raw(folder) as connection:
        sealed = connection.execute("SELECT sealed FROM server_secrets").fetchall()
    assert len(set(sealed)) == 2


def test_a_value_that_is_not_utf_8_comes_back(registry: Registry) -> None:
    odd = replace(STDIO, transport=StdioTransport(argv=("x",), env={"RAW": os.fsdecode(b"\xff")}))
    registry.put_server(odd)
    assert registry.servers() == (odd,)


def test_a_key_file_that_exists_wins_over_the_keyring(tmp_path: Path) -> None:
    file, ring = KeyFile(tmp_path / "key"), KeyringKey("test")
    assert choose(file, None) is file
    assert choose(file, ring) is ring
    file.create()
    assert choose(file, ring) is file


def test_a_keyring_keeps_the_key_of_a_registry(folder: Path, ring: MemoryKeyring) -> None:
    registry = Registry.open(folder / FILE, vault=Vault(KeyringKey("one")))
    registry.put_server(STDIO)
    registry.close()
    again = Registry.open(folder / FILE, vault=Vault(KeyringKey("one")))
    assert again.servers() == (STDIO,)
    again.close()
    assert list(ring.entries) == [("thoughtgate", "one")]


def test_a_locked_or_unfit_keyring_is_named(ring: MemoryKeyring) -> None:
    source = KeyringKey("one")
    ring.entries["thoughtgate", "one"] = "not a key"
    with pytest.raises(StoreSealed, match="64 hexadecimal"):
        source.load()
    ring.is_locked = True
    assert not usable()
    for attempt in (source.load, source.create):
        with pytest.raises(StoreSealed, match="thoughtgate/one"):
            attempt()
