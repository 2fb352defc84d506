"""Logins at servers: kept in the registry, used by a running gateway, made by the command line.

Never holds the registry open while a person logs in.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import repeat
from typing import TypeVar

import msgspec

from thoughtgate.app.entries import server_named
from thoughtgate.app.stores import opened_registry
from thoughtgate.config.files import Loaded
from thoughtgate.core.errors import (
    ConfigError,
    StoreCorrupt,
    StoreError,
    StoreSealed,
    UpstreamError,
    UpstreamUnreachable,
)
from thoughtgate.core.servers import GrpcTransport, HttpTransport, Server
from thoughtgate.registry.logins import LoginState, StoredLogin, place_of
from thoughtgate.registry.store import Registry
from thoughtgate.upstream.auth import Account, Login, OAuthClient, advice
from thoughtgate.upstream.auth_tokens import revoke
from thoughtgate.upstream.auth_wish import Wish
from thoughtgate.upstream.http_client import PooledClient

OpenPage = Callable[[str], Awaitable[None]]

_TURN = 0.05
"""Seconds between two looks at whether another process has finished a renewal."""

_REVOKING = 10.0
"""Seconds that giving tokens back may take."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


class RegistryLogins:
    """The `LoginStore` of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def load(self, account: Account) -> Login | None:
        """Return the login as it stands now."""
        return await _asked(lambda: _found(self._registry, account))

    async def replace(self, login: Login) -> bool:
        """Keep a renewal; when it cannot be kept, it still serves this process."""
        try:
            return await asyncio.to_thread(self._registry.renew_login, stored(login))
        except StoreError as error:
            _log.error(
                "server %s: its renewed login cannot be kept: %s",
                login.account.server,
                error.message,
            )
            return True

    @asynccontextmanager
    async def held(self, account: Account) -> AsyncIterator[None]:
        """Keep every other task and process from renewing this login."""
        lock = await _asked(lambda: self._registry.login_lock(account.server))
        try:
            for pause in repeat(_TURN):
                if lock.taken():
                    break
                await asyncio.sleep(pause)
            yield
        finally:
            lock.close()


async def _asked(ask: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(ask)
    except StoreError as error:
        raise UpstreamUnreachable(message=f"its login cannot be read: {error.message}") from None


def read_logins(servers: Iterable[Server], registry: Registry) -> tuple[Login, ...]:
    """Return the logins at these servers; one that cannot be opened is told and left out."""
    found = []
    for name in registry.login_states().keys() & {server.name for server in servers}:
        server = next(one for one in servers if one.name == name)
        try:
            login = _found(registry, _account(server))
        except (StoreSealed, StoreCorrupt) as error:
            _log.error("server %s: its login cannot be used: %s", name, error.message)
            continue
        if login is not None:
            found.append(login)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginOrder:
    """What somebody says of the login that they want; see `Wish`."""

    server: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    issuer: str = ""
    scope: str = ""
    machine: bool = False
    port: int = 0


async def log_in(loaded: Loaded, order: LoginOrder, open_page: OpenPage) -> LoginState:
    """Log in at a server and keep the login; return how it stands.

    Raises:
        GateError: Why not.
    """
    wish = await asyncio.to_thread(_wish, loaded, order)
    # imported only now: the SDK takes longer to import than a gateway to start
    login: Login = await import_module("thoughtgate.upstream.auth_flow").log_in(wish, open_page)
    await asyncio.to_thread(_keep, loaded, login)
    return LoginState(
        place=place_of(login.account.url),
        valid_until=login.expires_at,
        renewable=login.renewable,
        refused="",
    )


async def log_out(loaded: Loaded, name: str) -> str | None:
    """Forget the login at a server, and give its tokens back.

    Returns what the authorization server was told, or why not; None when there was no login.

    Raises:
        ConfigError: There is no such server.
    """
    found, login = await asyncio.to_thread(_forget, loaded, name)
    if not found:
        return None
    if login is None or not login.revoke_url:
        return "the authorization server was not told: it takes no tokens back"
    client = PooledClient()
    try:
        async with asyncio.timeout(_REVOKING):
            await revoke(client, login)
    except (UpstreamError, TimeoutError) as error:
        why = error.message if isinstance(error, UpstreamError) else "no answer in time"
        return f"the authorization server could not be told: {why}"
    finally:
        await client.aclose()
    return "its tokens were given back"


def stored(login: Login) -> StoredLogin:
    """Return a login as the registry keeps it."""
    return StoredLogin(
        server=login.account.server,
        url=login.account.url,
        secret=msgspec.json.encode(login).decode(),
        valid_until=login.expires_at,
        renewable=login.renewable,
        refused=login.refused,
        version=login.version,
    )


def _wish(loaded: Loaded, order: LoginOrder) -> Wish:
    with opened_registry(loaded) as registry:
        server = server_named(loaded, registry, order.server)
        account = _account(server)
        if account is None:
            raise ConfigError(message=_no_login(server))
        before = _found(registry, account)
    assert isinstance(server.transport, HttpTransport)
    if any(name.lower() == "authorization" for name in server.transport.headers):
        raise ConfigError(
            message=f"server {server.name} has an Authorization header of its own, which would"
            " win over a login; add it anew without"
        )
    wish = Wish(
        account=account,
        headers=server.transport.headers,
        scope=order.scope,
        machine=order.machine,
        port=order.port,
        issuer=order.issuer,
    )
    return _with_client(wish, order, before)


def _no_login(server: Server) -> str:
    if isinstance(server.transport, GrpcTransport):
        return (
            f"server {server.name} speaks gRPC, which has no OAuth login; give it a key instead: "
            f"thoughtgate server add {server.name} {server.transport.url} --header "
            "'authorization=Bearer …' --replace"
        )
    return f"server {server.name} is a command; only a server at a url has a login"


def _with_client(wish: Wish, order: LoginOrder, before: Login | None) -> Wish:
    """Return the wish with the client to use: the one that is named, or was named before."""
    if order.client_id:
        if order.client_secret and not order.issuer:
            raise ConfigError(
                message="a client secret needs --issuer: the url of the authorization server that"
                " it belongs to, so that it is sent to no other"
            )
        given = OAuthClient(id=order.client_id, secret=order.client_secret, given=True)
        return replace(wish, client=given)
    if order.client_secret:
        raise ConfigError(message="--client-secret-env needs --client-id")
    scope = wish.scope or (before.asked_scope if before else "")
    if before is None or not before.client.given:
        return replace(wish, scope=scope)
    return replace(
        wish,
        scope=scope,
        client=before.client,
        issuer=wish.issuer or before.issuer,
        machine=wish.machine or before.machine,
    )


def _keep(loaded: Loaded, login: Login) -> None:
    with opened_registry(loaded) as registry:
        server = server_named(loaded, registry, login.account.server)
        if _account(server) != login.account:
            raise ConfigError(
                message=f"server {server.name} has moved while you logged in; log in again"
            )
        registry.put_login(stored(login))


def _forget(loaded: Loaded, name: str) -> tuple[bool, Login | None]:
    with opened_registry(loaded) as registry:
        account = _account(server_named(loaded, registry, name))
        try:
            login = _found(registry, account)
        except (StoreSealed, StoreCorrupt):
            login = None  # it can be forgotten, but not given back
        return registry.remove_login(name), login


def _account(server: Server) -> Account | None:
    transport = server.transport
    return Account(server.name, transport.url) if isinstance(transport, HttpTransport) else None


def _found(registry: Registry, account: Account | None) -> Login | None:
    """Return the login that is kept.

    Raises:
        StoreError: It cannot be opened, or read.
    """
    kept = None if account is None else registry.login(*account)
    if kept is None:
        return None
    try:
        login = msgspec.json.decode(kept.secret, type=Login)
    except msgspec.MsgspecError:
        raise StoreCorrupt(
            message=f"the login at server {kept.server} is none; {advice(kept.server)}"
        ) from None
    return replace(login, version=kept.version)
