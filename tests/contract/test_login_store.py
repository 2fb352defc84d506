"""What every store of logins promises, in memory and in the registry."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support.logins import MemoryLogins, make_login
from tests.support.registries import open_in
from tests.support.waiting import within
from thoughtgate.app.logins import RegistryLogins, stored
from thoughtgate.upstream.auth import Account, Login
from thoughtgate.upstream.auth_logins import LoginStore

LOGIN = make_login("http://127.0.0.1:9")


@dataclass
class Kept:
    """A store, a second view of it as another process has it, and how a login gets in."""

    store: LoginStore
    other: LoginStore
    put: Callable[[Login], Awaitable[None]]

    async def now(self) -> Login:
        login = await self.other.load(LOGIN.account)
        assert login is not None
        return login


@asynccontextmanager
async def memory(folder: Path) -> AsyncIterator[Kept]:
    store = MemoryLogins()
    yield Kept(store=store, other=store, put=store.put)


@asynccontextmanager
async def registry(folder: Path) -> AsyncIterator[Kept]:
    one, two = open_in(folder), open_in(folder)

    async def put(login: Login) -> None:
        one.put_login(stored(login))

    try:
        yield Kept(store=RegistryLogins(one), other=RegistryLogins(two), put=put)
    finally:
        one.close()
        two.close()


Make = Callable[[Path], AbstractAsyncContextManager[Kept]]


@pytest.fixture(params=[memory, registry], ids=lambda made: str(made.__name__))
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kept]:
    make: Make = request.param
    async with make(tmp_path / "home") as made:
        yield made


async def test_a_login_comes_back_whole(kept: Kept) -> None:
    await kept.put(LOGIN)
    assert replace(await kept.now(), version=0) == LOGIN


async def test_there_is_no_login_at_another_server_or_place(kept: Kept) -> None:
    await kept.put(LOGIN)
    assert await kept.store.load(Account("other", LOGIN.account.url)) is None
    assert await kept.store.load(Account("web", "http://127.0.0.1:9/other")) is None


async def test_of_two_renewals_of_one_version_the_first_is_kept(kept: Kept) -> None:
    await kept.put(LOGIN)
    first = await kept.now()
    assert await kept.store.replace(replace(first, access_token="one"))
    assert not await kept.other.replace(replace(first, access_token="two"))
    assert (await kept.now()).access_token == "one"


async def test_a_renewal_of_what_is_not_there_changes_nothing(kept: Kept) -> None:
    await kept.put(replace(LOGIN, account=Account("other", LOGIN.account.url)))
    assert not await kept.store.replace(LOGIN)
    assert await kept.other.load(LOGIN.account) is None


async def test_one_at_a_time_holds_a_login(kept: Kept) -> None:
    order: list[str] = []
    entered, leave = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with kept.store.held(LOGIN.account):
            entered.set()
            await leave.wait()
            order.append("first")

    async def second() -> None:
        async with kept.other.held(LOGIN.account):
            order.append("second")

    one = asyncio.create_task(first())
    await within(entered.wait())
    two = asyncio.create_task(second())
    async with kept.other.held(Account("another", LOGIN.account.url)):
        assert order == []
    leave.set()
    await within(asyncio.gather(one, two))
    assert order == ["first", "second"]
