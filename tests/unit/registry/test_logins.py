"""Logins in the registry: sealed, bound to name and URL, renewed by one at a time."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.registries import CANARY, Spawn, bytes_in, open_in, raw
from thoughtgate.core.errors import StoreSealed
from thoughtgate.core.servers import HttpTransport, Server
from thoughtgate.registry.logins import StoredLogin
from thoughtgate.registry.store import Registry

URL = f"http://127.0.0.1:9/mcp?key={CANARY}"
LOGIN = StoredLogin(server="web", url=URL, secret=f"{CANARY} token", valid_until=2e9)


def put(registry: Registry, login: StoredLogin = LOGIN) -> StoredLogin:
    """Keep a login and return it as the registry has it."""
    registry.put_login(login)
    kept = registry.login(login.server, login.url)
    assert kept is not None
    return kept


def test_a_login_comes_back_as_it_was_put(registry: Registry) -> None:
    assert put(registry) == replace(LOGIN, version=1)


def test_no_file_holds_any_of_a_login_in_the_clear(registry: Registry, folder: Path) -> None:
    put(registry)
    registry.close()
    assert CANARY.encode() not in bytes_in(folder)


def test_a_login_shows_none_of_its_secrets_when_it_is_printed(registry: Registry) -> None:
    assert CANARY not in repr(put(registry))


def test_a_login_is_for_its_url_only(registry: Registry) -> None:
    put(registry)
    assert registry.login("web", URL + "&more") is None
    assert registry.login("other", URL) is None


def test_a_server_that_moves_loses_its_login(registry: Registry) -> None:
    server = Server(name="web", transport=HttpTransport(url=URL))
    registry.put_server(server)
    put(registry)
    registry.put_server(replace(server, trusted=True))
    assert registry.login("web", URL) is not None
    registry.put_server(replace(server, transport=HttpTransport(url="http://127.0.0.1:8/mcp")))
    registry.put_server(server)
    assert registry.login("web", URL) is None


def test_a_server_that_is_removed_takes_its_login_along(registry: Registry) -> None:
    registry.put_server(Server(name="web", transport=HttpTransport(url=URL)))
    put(registry)
    registry.remove_server("web")
    assert registry.login_states() == {}


@pytest.mark.parametrize(
    "change", ["server = 'other'", "place = 'another'", "sealed = zeroblob(40)"]
)
def test_a_login_that_was_moved_or_changed_by_hand_does_not_open(
    registry: Registry, folder: Path, change: str
) -> None:
    put(registry)
    put(registry, replace(LOGIN, server="victim"))
    with raw(folder) as connection:
        connection.execute("DELETE FROM logins WHERE server = 'victim'")
        connection.execute(f"UPDATE logins SET {change}")
        name, place = connection.execute("SELECT server, place FROM logins").fetchone()
    if place == "another":
        assert registry.login(name, URL) is None
        return
    with pytest.raises(StoreSealed):
        registry.login(name, URL)


def test_a_renewal_replaces_the_version_that_it_was_made_from_and_no_other(
    registry: Registry,
) -> None:
    first = put(registry)
    assert registry.renew_login(replace(first, secret="second"))
    assert not registry.renew_login(replace(first, secret="late"))
    kept = registry.login("web", URL)
    assert kept is not None
    assert (kept.secret, kept.version) == ("second", 2)


def test_a_login_that_was_forgotten_is_not_brought_back_by_a_renewal(registry: Registry) -> None:
    first = put(registry)
    assert registry.remove_login("web")
    assert not registry.renew_login(first)
    assert not registry.remove_login("web")
    assert registry.login_states() == {}


def test_a_renewal_wakes_nobody_but_login_and_logout_do(registry: Registry) -> None:
    before = registry.revision()
    first = put(registry)
    after = registry.revision()
    registry.renew_login(first)
    assert before < after == registry.revision()
    registry.remove_login("web")
    assert registry.revision() > after


def test_how_a_login_stands_is_told_without_the_key(registry: Registry, folder: Path) -> None:
    put(registry, replace(LOGIN, refused="the server said no"))
    (folder / "key").unlink()
    again = open_in(folder)
    state = again.login_states()["web"]
    with pytest.raises(StoreSealed):
        again.login("web", URL)
    again.close()
    assert (state.valid_until, state.renewable, state.refused) == (2e9, False, "the server said no")


def test_no_second_key_is_made_beside_a_login_whose_key_is_lost(
    registry: Registry, folder: Path
) -> None:
    put(registry)
    (folder / "key").unlink()
    again = open_in(folder)
    with pytest.raises(StoreSealed):
        again.put_server(
            Server(name="b", transport=HttpTransport(url="http://b.test/", headers={"a": "b"}))
        )
    again.close()
    assert not (folder / "key").exists()


def test_one_process_at_a_time_renews_a_login(
    registry: Registry, folder: Path, spawn: Spawn
) -> None:
    other = spawn(
        "import sys; from pathlib import Path; from thoughtgate.registry.locks import LoginLock\n"
        "lock = LoginLock(Path(sys.argv[1]), 'web'); print(lock.taken(), flush=True); input()",
        folder / "registry.db",
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "True\n"
    lock, free = registry.login_lock("web"), registry.login_lock("files")
    assert not lock.taken()
    assert free.taken()
    other.kill()
    other.wait()
    assert lock.taken()
    lock.close()
    free.close()
    assert os.stat(folder / "registry.db.login-web").st_mode & 0o777 == 0o600
