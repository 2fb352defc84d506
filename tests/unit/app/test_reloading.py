"""Reading the configuration again: all of it or nothing, and nothing bad is taken."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.admin_api import api
from tests.support.waiting import until, within
from thoughtgate.app.keeper import POLL
from thoughtgate.app.reloading import Reloader
from thoughtgate.core.errors import GateError

GOOD = '[domains.old]\ninstructions = "old"\n'
NEW = """
[domains.new]
instructions = "new"
[servers.far]
url = "http://127.0.0.1:9"
enabled = false
"""


def write(folder: Path, text: str) -> None:
    (folder / "thoughtgate.toml").write_text(text, encoding="utf-8")


async def test_a_good_file_is_taken_at_once(tmp_path: Path) -> None:
    async with api(tmp_path, GOOD) as ours:
        write(tmp_path, NEW)
        done = await ours.good("reload")
        assert sorted(ours.app.gateway.domains) == ["default", "new"]
        assert [one.name for one in ours.app.keeper.servers] == ["far"]
    assert (done["servers"], done["domains"], done["restart"]) == (["far"], ["new", "old"], [])


async def test_what_needs_a_restart_is_said_and_not_half_taken(tmp_path: Path) -> None:
    async with api(tmp_path, GOOD) as ours:
        write(tmp_path, GOOD + "[gateway]\nport = 1\n[limits]\npage_size = 7\n")
        first = await ours.good("reload")
        second = await ours.good("reload")
        assert ours.app.keeper.loaded.settings.limits.page_size == 100
    assert first["restart"] == second["restart"] == ["gateway", "limits"]


BAD = [
    ("not = [toml", ["not valid TOML"]),
    ('[servers.a]\nurl = 3\n[servers.b]\nurl = "ftp://x"\n[domains.c]\nmax_tools = 0\nother = 1\n',
     ["servers.a.url", "servers.b.url", "domains.c.max_tools", "domains.c.other"]),
    ('[servers.a]\nurl = "http://${NOT_SET_ANYWHERE}"\n', ["NOT_SET_ANYWHERE"]),
    ('[domains.d]\nlimits = "nobody"\n', ["domains.d.limits"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "faults"), BAD)
async def test_a_bad_file_changes_nothing_and_every_fault_is_told(
    tmp_path: Path, text: str, faults: list[str]
) -> None:
    async with api(tmp_path, GOOD) as ours:
        write(tmp_path, text)
        reply = await ours.ask("reload")
        assert sorted(ours.app.gateway.domains) == ["default", "old"]
        await ours.good("put_domain", {}, domain="still", If_None_Match="*")
        assert sorted(ours.app.gateway.domains) == ["default", "old", "still"]
    assert (reply.status, reply.code) == (422, "config_error")
    problems = reply.body["data"]["problems"]
    assert len(problems) >= len(faults)
    for fault in faults:
        assert any(fault in problem for problem in problems), (fault, problems)


async def test_a_file_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    async with api(tmp_path, GOOD) as ours:
        (tmp_path / "thoughtgate.toml").unlink()
        assert (await ours.ask("reload")).status == 422
        assert sorted(ours.app.gateway.domains) == ["default", "old"]


async def test_a_signal_says_what_became_of_it(tmp_path: Path) -> None:
    said: list[str] = []
    async with api(tmp_path, GOOD) as ours:
        reloader = Reloader(ours.app.keeper, ours.environ, said.append)
        write(tmp_path, NEW)
        reloader.begin()
        reloader.begin()
        await until(lambda: said)
        write(tmp_path, "[gateway\n")
        reloader.begin()
        await until(lambda: len(said) == 2)
        await within(reloader.aclose())
    assert said[0].startswith("the configuration was read again: ")
    assert said[1].startswith("the configuration was not taken, the old state stays:\n")


def break_body(file: Path) -> None:
    change(file, "UPDATE domain_revisions SET body = x'7b'")


def break_limits(file: Path) -> None:
    change(
        file,
        """UPDATE domain_revisions SET body =
           CAST(replace(CAST(body AS TEXT), '"limits":"mcp"', '"limits":"nobody"') AS BLOB)""",
    )


def break_shape(file: Path) -> None:
    change(file, "UPDATE domain_revisions SET body = CAST('{\"include\":7}' AS BLOB)")


def change(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)
        connection.execute("UPDATE meta SET revision = revision + 1")


@pytest.mark.parametrize("damage", [break_body, break_limits, break_shape])
async def test_a_bad_domain_in_the_registry_leaves_the_old_state(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    async with api(tmp_path, GOOD) as ours:
        await ours.good("put_domain", {"instructions": "kept"}, domain="d", If_None_Match="*")
        await asyncio.to_thread(damage, tmp_path / "state" / "registry.db")
        with pytest.raises(GateError):
            await within(ours.app.keeper.refresh())
        assert ours.app.gateway.view("d").instructions == "kept"
        reply = await ours.ask("list_domains")
        assert reply.status >= 400
        await asyncio.to_thread(ours.app.registry.remove_domain, "d")
        await until(lambda: "d" not in ours.app.gateway.domains)


async def test_a_registry_that_stays_bad_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    async with api(tmp_path, GOOD) as ours:
        await ours.good("put_domain", {}, domain="d", If_None_Match="*")
        await asyncio.to_thread(break_limits, tmp_path / "state" / "registry.db")
        revision = ours.app.registry.revision

        def counted() -> int:
            looks.append(revision())
            return looks[-1]

        monkeypatch.setattr(ours.app.registry, "revision", counted)
        await until(lambda: len(looks) >= 3)
        await asyncio.to_thread(ours.app.registry.remove_domain, "d")
        await until(lambda: "d" not in ours.app.gateway.domains)
    told = [one for one in caplog.records if "the old state stays" in one.getMessage()]
    assert len(told) == 1


async def test_a_reload_over_a_bad_registry_takes_nothing(tmp_path: Path) -> None:
    async with api(tmp_path, GOOD) as ours:
        await ours.good("put_domain", {}, domain="d", If_None_Match="*")
        before = ours.app.keeper.loaded
        await asyncio.to_thread(break_body, tmp_path / "state" / "registry.db")
        write(tmp_path, NEW)
        reply = await ours.ask("reload")
        assert sorted(ours.app.gateway.domains) == ["d", "default", "old"]
        assert ours.app.keeper.loaded is before
    assert (reply.status, reply.code) == (500, "store_corrupt")


def test_the_registry_is_looked_at_more_than_once_a_second() -> None:
    assert POLL < 1.0
