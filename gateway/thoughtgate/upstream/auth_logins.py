"""The logins of a running gateway: looked up for each request, renewed in time, by one at a time.

Never asks for a token while another task or process renews the same login: a refresh token that
is used twice may end the login.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from thoughtgate.core.errors import UpstreamDenied, UpstreamError, UpstreamUnreachable
from thoughtgate.upstream.auth import NOTHING, Account, Login, advice
from thoughtgate.upstream.auth_tokens import LoginOver, renewed, told
from thoughtgate.upstream.ports import HttpClient

PATIENCE = 30.0
"""Seconds that a renewal may take, the wait for other processes included."""

PAUSE = 10.0
"""Seconds until a renewal that failed is tried again, while the token still serves."""

OFTEN, WINDOW = 5, 60.0
"""Renewals of tokens that a server refused, in so many seconds, after which it is the server."""

_log = logging.getLogger(__name__)


class LoginStore(Protocol):
    """Where logins are kept, for all processes."""

    async def load(self, account: Account) -> Login | None:
        """Return the login as it stands now."""
        ...

    async def replace(self, login: Login) -> bool:
        """Keep a renewal of the version that `login` carries; False if that is not there now."""
        ...

    def held(self, account: Account) -> AbstractAsyncContextManager[None]:
        """Keep every other task and process from renewing this login."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A login as it is sent, until it must be renewed."""

    login: Login
    headers: Mapping[str, str]
    renew_at: float


class Logins:
    """The `Credentials` of all servers; belongs to one event loop.

    `patience` bounds one renewal, in seconds; `clock` gives Unix seconds.
    """

    def __init__(
        self,
        store: LoginStore,
        client: HttpClient,
        *,
        clock: Callable[[], float] = time.time,
        patience: float = PATIENCE,
    ) -> None:
        self._patience = patience
        self._store = store
        self._client = client
        self._clock = clock
        self._held: dict[Account, _Held] = {}
        self._renewing: dict[Account, asyncio.Task[Mapping[str, str]]] = {}
        self._refusals: dict[Account, deque[float]] = {}

    def apply(self, logins: Iterable[Login]) -> frozenset[str]:
        """Take the logins that there are; return the servers that are logged in otherwise now."""
        before, self._held = self._held, {login.account: _sent(login) for login in logins}
        return frozenset(
            account.server
            for account in before.keys() | self._held.keys()
            if _version(before.get(account)) != _version(self._held.get(account))
        )

    def headers(self, account: Account) -> Mapping[str, str] | None:
        """Return what to send now; see `Credentials.headers`."""
        held = self._held.get(account)
        if held is None:
            return NOTHING
        return held.headers if self._clock() < held.renew_at else None

    def scope(self, account: Account) -> str:
        """Return the scope that the login has; see `Credentials.scope`."""
        held = self._held.get(account)
        return "" if held is None else held.login.scope

    async def renewed(
        self, account: Account, refused: Mapping[str, str] | None
    ) -> Mapping[str, str]:
        """Return headers that are not `refused`; see `Credentials.renewed`."""
        now = self.headers(account)
        if now and now != refused:
            return now
        task = self._renewing.get(account)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._renew(account, refused))
            self._renewing[account] = task
            task.add_done_callback(lambda done: self._ended(account, done))
        # a caller that gives up must not take a refresh token along that is already used
        headers = await asyncio.shield(task)
        if headers == refused:
            raise UpstreamUnreachable(message="its login could not be renewed just now")
        return headers

    async def aclose(self) -> None:
        """Let renewals end: their tokens have to be kept."""
        if self._renewing:
            await asyncio.wait(self._renewing.values(), timeout=self._patience)

    def _ended(self, account: Account, task: "asyncio.Task[Mapping[str, str]]") -> None:
        del self._renewing[account]
        if not task.cancelled():
            task.exception()  # perhaps nobody waits any more

    async def _renew(
        self, account: Account, refused: Mapping[str, str] | None
    ) -> Mapping[str, str]:
        try:
            async with asyncio.timeout(self._patience), self._store.held(account):
                login = await self._store.load(account)
                if login is None:
                    self._held.pop(account, None)
                    raise UpstreamDenied(message=f"the server wants a login; {_way_in(account)}")
                held = self._take(login)
                if held.headers != refused and self._clock() < held.renew_at:
                    return held.headers  # somebody else was faster
                self._check(login, refused)
                return await self._asked(login, refused)
        except TimeoutError:
            raise UpstreamUnreachable(
                message=f"its login could not be renewed within {self._patience:g} seconds"
            ) from None

    def _check(self, login: Login, refused: Mapping[str, str] | None) -> None:
        """Refuse to ask for a token that nobody will give, or that will not help."""
        server = login.account.server
        if login.refused:
            raise UpstreamDenied(message=f"its login is over: {login.refused}; {advice(server)}")
        refusals = self._refusals.setdefault(login.account, deque(maxlen=OFTEN))
        if refused and len(refusals) == OFTEN and self._clock() - refusals[0] < WINDOW:
            raise UpstreamDenied(
                message=f"the server refuses one renewed login after the other; {advice(server)}"
            )
        if not login.renewable:
            raise UpstreamDenied(
                message=f"its login has ended and cannot be renewed; {advice(server)}"
            )

    async def _asked(self, login: Login, refused: Mapping[str, str] | None) -> Mapping[str, str]:
        account = login.account
        try:
            new = await renewed(self._client, login, self._clock())
        except LoginOver as error:
            held = await self._kept(replace(login, refused=told(error), refresh_token=""))
            if not held.login.refused:
                return held.headers  # a person has logged in meanwhile
            raise UpstreamDenied(
                message=f"its login cannot be renewed: {told(error)}; {advice(account.server)}"
            ) from None
        except UpstreamError as error:
            if refused is None and login.expires_at and self._clock() < login.expires_at:
                return self._later(login, error)
            raise UpstreamUnreachable(
                message=f"its login could not be renewed just now: {error.message}"
            ) from None
        if refused:
            self._refusals[account].append(self._clock())
        return (await self._kept(new)).headers

    def _later(self, login: Login, error: UpstreamError) -> Mapping[str, str]:
        """Go on with a token that is still good, and try again soon."""
        _log.warning(
            "server %s: its login could not be renewed yet: %s", login.account.server, error.message
        )
        again = min(self._clock() + PAUSE, login.expires_at or 0.0)
        held = replace(_sent(login), renew_at=again)
        self._held[login.account] = held
        return held.headers

    async def _kept(self, login: Login) -> _Held:
        """Keep a renewal; when a person logged in or out meanwhile, that counts."""
        if await self._store.replace(login):
            return self._take(replace(login, version=login.version + 1))
        other = await self._store.load(login.account)
        if other is None:
            self._held.pop(login.account, None)
            raise UpstreamDenied(message=f"its login was forgotten; {advice(login.account.server)}")
        return self._take(other)

    def _take(self, login: Login) -> _Held:
        held = self._held[login.account] = _sent(login)
        return held


def _sent(login: Login) -> _Held:
    return _Held(login=login, headers=login.headers, renew_at=login.renew_at)


def _version(held: _Held | None) -> object:
    return None if held is None else (held.login.version, held.login.access_token)


def _way_in(account: Account) -> str:
    return f"{advice(account.server)}, or set the header that it wants"
