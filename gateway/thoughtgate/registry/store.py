"""The registry: servers, tools, domains and people in one file. The door to this room.

Never waits on a loop: every method is short, blocking and safe to call from any thread; the
gateway calls them through `asyncio.to_thread`.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self, TypeVar

from sqlalchemy import select

from thoughtgate.core.calls import LOCAL, Principal
from thoughtgate.core.domains import Domain
from thoughtgate.core.errors import Conflict
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Listing, Server
from thoughtgate.core.tools import Effect
from thoughtgate.registry import (
    backups,
    domains,
    files,
    logins,
    models,
    offers,
    servers,
    tables,
    tools,
    trouble,
    values,
    verdicts,
)
from thoughtgate.registry.database import Database, bump, revision
from thoughtgate.registry.domains import DomainRevision
from thoughtgate.registry.locks import LoginLock, UseLock, WriteLock
from thoughtgate.registry.logins import LoginState, StoredLogin
from thoughtgate.registry.models import StoredModel
from thoughtgate.registry.tools import SeenTool, ToolChanges
from thoughtgate.registry.vault import Vault
from thoughtgate.registry.verdicts import Verdict

PATIENCE = 5.0
"""Seconds that one operation waits for other programs before it raises StoreLocked."""


ATTEMPTS = 5
"""How often a decision is made anew when somebody else was faster."""

T = TypeVar("T")


class Registry:
    """An open registry; every method may raise a StoreError that says what to do."""

    def __init__(self, database: Database, vault: Vault, *, only_at: int | None = None) -> None:
        self.database = database
        self._vault = vault
        self._only_at = only_at

    @classmethod
    def open(cls, path: Path, *, vault: Vault, patience: float = PATIENCE) -> Self:
        """Open the registry at `path`, created when missing, upgraded (after a copy) when older.

        Raises:
            StoreError: It cannot be used, and what to do; the file is as it was.
        """
        with trouble.translated_files(path):
            path = path.resolve()
        files.prepare_folder(path)
        with ExitStack() as undo:
            lock = WriteLock(path, patience=patience)
            undo.callback(lock.close)
            use = UseLock(path)
            undo.callback(use.close)
            with lock.held():
                files.make_ready(path, use=use, patience=patience)
            undo.pop_all()
        return cls(Database(path, lock=lock, use=use, patience=patience), vault)

    def close(self) -> None:
        """Close the file; nothing may be called afterwards."""
        self.database.close()

    def revision(self) -> int:
        """Return a number that grows with every change by any process; cheap to poll."""
        with self.database.read() as connection:
            return revision(connection)

    def at(self, revision: int) -> Self:
        """Return the same registry, whose changes are refused unless it stands at `revision`.

        What is refused raises Conflict. It shares the open file: close only one of the two.
        """
        return type(self)(self.database, self._vault, only_at=revision)

    def decide(self, changing: Callable[[Self], T]) -> T:
        """Let `changing` read, decide and write once, as if nobody else wrote meanwhile.

        It is called again when somebody was faster.

        Raises:
            Conflict: Somebody was each time, or `changing` says so.
        """
        for _ in range(ATTEMPTS - 1):
            with suppress(Conflict):
                return changing(self.at(self.revision()))
        return changing(self.at(self.revision()))

    def install_id(self) -> str:
        """Return the random id that this registry got when it was created."""
        with self.database.read() as connection:
            return str(connection.execute(select(tables.meta.c.install_id)).scalar_one())

    def principals(self) -> tuple[Principal, ...]:
        """Return everyone who ever changed something here."""
        with self.database.read() as connection:
            return values.all_principals(connection)

    # servers

    def servers(self) -> tuple[Server, ...]:
        """Return all servers with their secrets, sorted by name."""
        with self.database.read() as connection:
            return servers.load(connection, self._vault)

    def servers_without_secrets(self) -> tuple[Server, ...]:
        """Return all servers with every secret empty, sorted by name; works without the key too."""
        with self.database.read() as connection:
            return servers.load(connection, None)

    def server(self, name: str) -> Server | None:
        """Return one server with its secrets."""
        with self.database.read() as connection:
            return next(iter(servers.load(connection, self._vault, name)), None)

    def server_names(self) -> tuple[str, ...]:
        """Return the servers' names, sorted; works without the key too."""
        with self.database.read() as connection:
            return servers.names(connection)

    def put_server(self, server: Server, principal: Principal = LOCAL) -> None:
        """Add a server, or replace the one of its name.

        Raises:
            ConfigError: Its name or transport cannot be used.
            StoreSealed: It has secrets, and the key is missing or wrong.
        """
        self.put_servers((server,), principal)

    def put_servers(self, entries: Iterable[Server], principal: Principal = LOCAL) -> None:
        """Add servers, or replace those of their names: all of them, or none.

        Raises:
            ConfigError: A name or a transport cannot be used.
            StoreSealed: There are secrets, and the key is missing or wrong.
        """
        with self.database.change(at=self._only_at) as connection:
            stamp = values.stamp(connection, principal)
            for server in entries:
                if servers.put(connection, server, stamp, self._vault):
                    tools.forget_current(connection, server.name)
                    offers.forget(connection, server.name)
                logins.keep_only(connection, server)

    def remove_server(self, name: str) -> None:
        """Remove a server, its secrets and what was said about its tools.

        The definitions that were seen stay as history. Works without the key too.

        Raises:
            ConfigError: There is none of this name.
        """
        with self.database.change(at=self._only_at) as connection:
            servers.remove(connection, name)
            logins.remove(connection, name)
            tools.forget_current(connection, name)
            offers.forget(connection, name)
            tools.drop_settings(connection, name)

    def set_enabled(self, name: str, enabled: bool, principal: Principal = LOCAL) -> None:
        """Switch a server on or off.

        Raises:
            ConfigError: There is none of this name.
        """
        with self.database.change(at=self._only_at) as connection:
            stamp = values.stamp(connection, principal)
            servers.set_flag(connection, name, {"enabled": enabled}, stamp)

    def set_trusted(self, name: str, trusted: bool, principal: Principal = LOCAL) -> None:
        """Say whether a server's own annotations may be believed.

        Raises:
            ConfigError: There is none of this name.
        """
        with self.database.change(at=self._only_at) as connection:
            stamp = values.stamp(connection, principal)
            servers.set_flag(connection, name, {"trusted": trusted}, stamp)

    # logins

    def put_login(self, login: StoredLogin, principal: Principal = LOCAL) -> None:
        """Keep a login at a server, in place of the one before.

        Raises:
            StoreSealed: The key is missing or wrong.
        """
        with self.database.change() as connection:
            stamp = values.stamp(connection, principal)
            logins.put(connection, login, stamp, self._vault)

    def renew_login(self, login: StoredLogin) -> bool:
        """Replace a login by its renewal, unless it was replaced or forgotten meanwhile.

        The registry's revision stays: nobody has to load anything anew for it.
        """
        with self.database.write() as connection:
            return logins.renew(connection, login, time.time_ns(), self._vault)

    def login(self, server: str, url: str) -> StoredLogin | None:
        """Return the login at a server, None when there is none for this URL."""
        with self.database.read() as connection:
            return logins.load(connection, server, url, self._vault)

    def remove_login(self, server: str) -> bool:
        """Forget the login at a server; say whether there was one. Works without the key too."""
        with self.database.change() as connection:
            return logins.remove(connection, server)

    def login_states(self) -> Mapping[str, LoginState]:
        """Return how the logins stand, by server; works without the key too."""
        with self.database.read() as connection:
            return logins.states(connection)

    def login_lock(self, server: str) -> LoginLock:
        """Return the lock under which the login at a server is renewed, not yet taken."""
        return LoginLock(self.database.path, server)

    # models

    def models(self) -> tuple[StoredModel, ...]:
        """Return all models with their keys, sorted by name."""
        with self.database.read() as connection:
            return models.load(connection, self._vault)

    def models_without_keys(self) -> tuple[StoredModel, ...]:
        """Return all models with every key empty, sorted by name; needs no key."""
        with self.database.read() as connection:
            return models.load(connection, None)

    def put_model(self, model: StoredModel, principal: Principal = LOCAL) -> None:
        """Add a model, or replace the one of its name.

        Raises:
            ConfigError: Its name cannot be used.
            StoreSealed: It has a key, and the registry's is missing or wrong.
        """
        with self.database.change(at=self._only_at) as connection:
            models.put(connection, model, values.stamp(connection, principal), self._vault)

    def remove_model(self, name: str) -> None:
        """Remove a model and its key. Works without the registry's key too.

        Raises:
            ConfigError: There is none of this name.
        """
        with self.database.change(at=self._only_at) as connection:
            models.remove(connection, name)

    # tools

    def record_tools(self, server: str, definitions: Sequence[JsonObject]) -> ToolChanges:
        """Note the tools of a server, also of one that has no row here."""
        with self.database.write() as connection:
            changes = tools.record(connection, server, definitions, time.time_ns())
            if changes:
                bump(connection)
            return changes

    def record_listing(self, listing: Listing) -> ToolChanges:
        """Note all that a discovery found, also at a server that has no row here."""
        with self.database.write() as connection:
            now = time.time_ns()
            changes = tools.record(connection, listing.server, listing.tools, now)
            if offers.record(connection, listing, now) or changes:
                bump(connection)
            return changes

    def with_known_offers(self, listing: Listing) -> Listing:
        """Return a listing with the prompts, resources and so on that were recorded last."""
        with self.database.read() as connection:
            return offers.added(connection, listing)

    def known_tools(self, server: str) -> tuple[JsonObject, ...]:
        """Return the listing that was recorded last, so that lists survive a restart."""
        with self.database.read() as connection:
            return tools.known(connection, server)

    def tool_history(self, server: str, tool: str) -> tuple[SeenTool, ...]:
        """Return every definition of one tool ever seen, newest first."""
        with self.database.read() as connection:
            return tools.history(connection, server, tool)

    def set_effect(
        self, server: str, tool: str, effect: Effect | None, principal: Principal = LOCAL
    ) -> None:
        """Say what a call of this tool does to the world; None takes it back."""
        with self.database.change(at=self._only_at) as connection:
            stamp = values.stamp(connection, principal)
            tools.set_effect(connection, (server, tool), effect, stamp)

    def effects(self, server: str) -> Mapping[str, Effect]:
        """Return what the operator said about the tools of a server, by tool name."""
        with self.database.read() as connection:
            return tools.effects(connection, server)

    def verdicts(self, digests: Iterable[str], *, checker: str) -> Mapping[str, Verdict]:
        """Return the remembered verdicts on schemas; `checker` names rules and version."""
        with self.database.read() as connection:
            return verdicts.load(connection, digests, checker)

    def put_verdicts(self, found: Mapping[str, Verdict], *, checker: str) -> None:
        """Remember verdicts on schemas, by digest."""
        if not found:
            return
        with self.database.write() as connection:
            verdicts.put(connection, found, checker)

    # domains

    def domains(self) -> tuple[Domain, ...]:
        """Return all domains at their current revision, sorted by name."""
        with self.database.read() as connection:
            return domains.load(connection)

    def domain(self, name: str) -> Domain | None:
        """Return one domain at its current revision."""
        with self.database.read() as connection:
            return next(iter(domains.load(connection, name)), None)

    def put_domain(self, domain: Domain, principal: Principal = LOCAL) -> Domain:
        """Store a domain as its next revision and return it; the same again is no change.

        Raises:
            ConfigError: Its name cannot be used.
        """
        with self.database.change(at=self._only_at) as connection:
            return domains.put(connection, domain, values.stamp(connection, principal))

    def remove_domain(self, name: str, principal: Principal = LOCAL) -> None:
        """Remove a domain; its revisions stay as history.

        Raises:
            ConfigError: There is none of this name.
        """
        with self.database.change(at=self._only_at) as connection:
            domains.remove(connection, name, values.stamp(connection, principal))

    def domain_history(self, name: str) -> tuple[DomainRevision, ...]:
        """Return all revisions of a domain, oldest first."""
        with self.database.read() as connection:
            return domains.history(connection, name)

    def backup(self, target: Path) -> None:
        """Write a consistent copy to `target`, a new file; the registry stays in use.

        Raises:
            ConfigError: `target` exists, or its folder does not.
        """
        backups.backup(self.database, target)
