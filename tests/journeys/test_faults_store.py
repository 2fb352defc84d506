"""A gateway whose disk is full, whose registry is held, or which has no files left, and after."""

import asyncio
import resource
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.gate import START, Gate, gated, home, python_server
from tests.support.raw_clients import Got, RawPost
from tests.support.raw_json import spell
from tests.support.raw_upstreams import STATELESS
from tests.support.waiting import until
from thoughtgate.testing.fault_log import read_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

FAKE = "thoughtgate.testing.fake_server"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A gateway, a client of it, and the log of its one server."""

    gate: Gate
    client: RawPost
    log: Path

    async def write(self, n: int) -> Got:
        return await self.client.call("fake__write", spell({"n": n}))

    def ran(self) -> list[int]:
        return [row["arguments"]["n"] for row in read_log(self.log) if row["what"] == "ran"]

    @contextmanager
    def without_room(self) -> Iterator[None]:
        """Let no file of the gateway grow, as on a full disk."""
        pid = self.gate.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        try:
            yield
        finally:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the registry as another program may."""
        path = self.gate.home.state / "registry.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            yield


def port_of(gate: Gate) -> int:
    return int(gate.url().split(":")[2].partition("/")[0])


@asynccontextmanager
async def placed(folder: Path, settings: str, *through: str) -> AsyncIterator[Place]:
    log = folder / "log"
    text = settings + python_server("fake", FAKE, "--log", str(log))
    async with gated(home(folder, text), through=through) as gate:
        with ExitStack() as ending:
            client = RawPost(STATELESS, port_of(gate))
            ending.callback(client.close)
            yield Place(gate=gate, client=client, log=log)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lenient(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with placed(tmp_path_factory.mktemp("lenient"), "") as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def strict(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with placed(tmp_path_factory.mktemp("strict"), 'audit = "required"\n') as made:
        yield made


async def rows_of(place: Place, count: int) -> None:
    """Return when so many calls have their row, and the log is whole."""
    await until(lambda: len(place.gate.home.audit_rows()) >= count, START)
    checked = await asyncio.to_thread(place.gate.home.said, "audit", "verify")
    assert checked["ok"] is True, checked


async def test_calls_go_on_while_the_disk_is_full_and_their_rows_follow(lenient: Place) -> None:
    before = len(lenient.gate.home.audit_rows())
    with lenient.without_room():
        for n in range(3):
            assert (await lenient.write(n)).result["structuredContent"] == {"n": n}
    await rows_of(lenient, before + 3)


async def test_where_audit_is_required_a_full_disk_refuses_calls_until_there_is_room(
    strict: Place,
) -> None:
    assert (await strict.write(1)).result["structuredContent"] == {"n": 1}
    with strict.without_room():
        assert (await strict.write(2)).trouble == "refused"
    async with asyncio.timeout(START):
        while "isError" in (await strict.write(3)).result:  # until the log has tried again
            continue
    assert [n for n in strict.ran() if n in {1, 2, 3}] == [1, 3]


async def test_calls_go_on_while_another_program_holds_the_registry(lenient: Place) -> None:
    before = len(lenient.gate.home.audit_rows())
    with lenient.held():
        assert (await lenient.write(7)).result["structuredContent"] == {"n": 7}
    await rows_of(lenient, before + 1)


async def test_where_audit_is_required_a_call_waits_for_who_holds_the_registry(
    strict: Place,
) -> None:
    with strict.held():
        call = asyncio.create_task(strict.write(8))
        await asyncio.wait([call], timeout=0.2)
        assert not call.done(), call.result()
        assert 8 not in strict.ran()
    assert (await call).result["structuredContent"] == {"n": 8}


async def test_where_audit_is_required_nothing_is_called_while_the_registry_is_moved_away(
    strict: Place,
) -> None:
    path = strict.gate.home.state / "registry.db"
    away = path.rename(path.with_name("away"))
    assert (await strict.write(21)).trouble == "refused"
    away.rename(path)
    async with asyncio.timeout(START):
        while "isError" in (await strict.write(22)).result:
            continue
    assert 21 not in strict.ran()


async def test_without_files_left_clients_are_refused_and_served_again_later(
    tmp_path: Path,
) -> None:
    """A thousand calls by clients of whom not all fit; nobody is left without an answer."""
    few = ("sh", "-c", 'ulimit -n 64; exec "$@"', "sh")
    async with placed(tmp_path, "", *few) as made:
        clients = [RawPost(STATELESS, port_of(made.gate)) for _ in range(28)]
        served = refused = 0
        for n in range(36):
            for client in clients[:4] if n % 4 == 3 else ():
                client.close()
            calls = (client.call("fake__read", spell({"n": n})) for client in clients)
            for got in await asyncio.gather(*calls):
                assert got.status in {200, 503}
                served += got.status == 200
                refused += got.status == 503
        for client in clients:
            client.close()
        assert served + refused == 28 * 36
        assert served > 300
        assert refused > 100
        async with asyncio.timeout(START):
            while (await made.write(1)).status == 503:  # until the gateway has seen them go
                continue
