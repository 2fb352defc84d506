"""Logins for tests: made without a person, kept in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from thoughtgate.upstream.auth import Account, Login, OAuthClient

NOW = 1_000_000.0
"""What a test's clock says at first."""


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def make_login(origin: str, **fields: Any) -> Login:
    """Return a login at server `web`, good for an hour."""
    usual = Login(
        account=Account("web", f"{origin}/mcp"),
        access_token="good",
        refresh_token="again",
        issued_at=NOW,
        expires_at=NOW + 3600,
        scope="read",
        client=OAuthClient(id="made", secret="s3cret", method="client_secret_basic"),
        issuer=origin,
        resource=f"{origin}/mcp",
        token_url=f"{origin}/token",
        revoke_url=f"{origin}/revoke",
    )
    return replace(usual, **fields)


class MemoryLogins:
    """A `LoginStore` for one process."""

    def __init__(self) -> None:
        self.kept: dict[Account, Login] = {}
        self._locks: dict[Account, asyncio.Lock] = {}

    async def put(self, login: Login) -> None:
        """Keep a login as a person's command does."""
        before = self.kept.get(login.account)
        self.kept[login.account] = replace(login, version=before.version + 1 if before else 1)

    async def load(self, account: Account) -> Login | None:
        return self.kept.get(account)

    async def replace(self, login: Login) -> bool:
        before = self.kept.get(login.account)
        if before is None or before.version != login.version:
            return False
        await self.put(login)
        return True

    @asynccontextmanager
    async def held(self, account: Account) -> AsyncIterator[None]:
        async with self._locks.setdefault(account, asyncio.Lock()):
            yield
