"""Servers, domains, tools and records of a running gateway, over its admin API.

Never registers a command there: those are for who sits at that machine.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from thoughtgate.cli.desks import Say
from thoughtgate.cli.output import count
from thoughtgate.cli.remote_line import Line
from thoughtgate.config.grpc_servers import files_of
from thoughtgate.core.errors import ConfigError, Conflict, Missing, UpstreamGarbled
from thoughtgate.core.servers import GrpcTransport, HttpTransport, Server, UpstreamState
from thoughtgate.core.tools import Effect
from thoughtgate.surface import admin_values as values
from thoughtgate.surface.admin_commands import refusal_of_command, refusal_of_file
from thoughtgate.surface.admin_grpc import GrpcPut

_THERE, _NOT_THERE = {"If-Match": "*"}, {"If-None-Match": "*"}
_PAGE = 500
_MOST_PAGES = 10_000
_ATTEMPTS = 10
"""How often a change is tried on what is there by then, while others change things too."""


P = TypeVar("P", values.ServerList, values.DomainList, values.DomainTools, values.AuditPage)


class RemoteServers:
    """The servers of a running gateway."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def listed(self, *, check: bool, say: Say) -> tuple[values.ServerEntry, ...]:
        """Return them by name; with `check` each that is used is asked for its tools first."""
        silent = dict[str, str]()
        if check:
            for entry in self._entries():
                if entry.enabled:
                    done = checked(self._line, entry.name)
                    say(_answer(done))
                    if not done.ok:
                        silent[entry.name] = done.reason
        return tuple(_as_checked(entry, silent.get(entry.name, "")) for entry in self._entries())

    def put(self, server: Server, *, replace: bool) -> None:
        """Register a server at a URL."""
        transport = server.transport
        if not isinstance(transport, HttpTransport | GrpcTransport):
            raise refusal_of_command()
        if files_of(transport):
            raise refusal_of_file()
        body = values.ServerPut(
            url=transport.url,
            headers=dict(transport.headers),
            sse=isinstance(transport, HttpTransport) and transport.sse,
            grpc=_grpc(transport) if isinstance(transport, GrpcTransport) else None,
            enabled=server.enabled,
            trusted=server.trusted,
            tags=tuple(sorted(server.tags)),
            era=server.era,
            results=server.results,
            nulls=server.nulls,
            start_timeout=server.start_timeout,
            call_timeout=server.call_timeout,
            sharing=server.sharing,
            idle_timeout=server.idle_timeout,
        )
        if replace and self._is_there(server.name):
            self._do("PUT", server.name, body=body, match=_THERE)
            return
        try:
            self._do("PUT", server.name, body=body, match=_NOT_THERE)
        except Conflict as error:
            raise ConfigError(
                message=f"server {server.name} is registered already; add --replace"
            ) from error

    def switch(self, name: str, *, enabled: bool) -> None:
        """Use a server, or not."""
        verb = "enable" if enabled else "disable"
        self._line.do(values.ServerEntry, "POST", "servers", name, verb)

    def remove(self, name: str) -> None:
        """Remove a server."""
        self._do("DELETE", name, match=_THERE)

    def _is_there(self, name: str) -> bool:
        try:
            self._line.get(values.ServerEntry, "servers", name)
        except Missing:
            return False
        return True

    def _do(
        self,
        method: str,
        name: str,
        *,
        match: dict[str, str],
        body: values.ServerPut | None = None,
    ) -> None:
        self._line.do(values.ServerEntry, method, "servers", name, body=body, match=match)

    def _entries(self) -> Iterator[values.ServerEntry]:
        for page in _pages(self._line, values.ServerList, "servers"):
            yield from page.servers


def _grpc(transport: GrpcTransport) -> GrpcPut:
    return GrpcPut(
        reflect=transport.reflect,
        streaming=transport.streaming,
        bidi=transport.bidi,
        tls_name=transport.tls.name,
    )


class RemoteDomains:
    """The domains of a running gateway."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def listed(self) -> tuple[values.DomainEntry, ...]:
        """Return them by name."""
        pages = _pages(self._line, values.DomainList, "domains")
        return tuple(entry for page in pages for entry in page.domains)

    def shown(self, name: str) -> tuple[values.DomainEntry, tuple[values.DomainTool, ...]]:
        """Return one, and the tools that it shows."""
        entry = self._line.get(values.DomainEntry, "domains", name)
        return entry, listed_tools(self._line, name).tools

    def change(
        self, name: str, changing: Callable[[values.DomainPut], values.DomainPut]
    ) -> values.DomainEntry:
        """Make a domain, or change the rules of the one that is there.

        What somebody else changes in between is looked at again, so that nothing of it is lost.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._change(name, changing)
            except Conflict:
                continue
        return self._change(name, changing)

    def _change(
        self, name: str, changing: Callable[[values.DomainPut], values.DomainPut]
    ) -> values.DomainEntry:
        try:
            entry, tag = self._line.tagged(values.DomainEntry, "domains", name)
            rules, match = entry.rules, {"If-Match": tag}
        except Missing:
            rules, match = values.DomainPut(), _NOT_THERE
        body = changing(rules)
        return self._line.do(values.DomainEntry, "PUT", "domains", name, body=body, match=match)

    def remove(self, name: str) -> None:
        """Remove a domain."""
        self._line.do(values.DomainEntry, "DELETE", "domains", name, match=_THERE)


class RemoteTools:
    """The tools of a running gateway."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def listed(self, domain: str, *, refresh: bool, say: Say) -> values.DomainTools:
        """Return what a domain shows; with `refresh` every server is asked again."""
        if refresh:
            RemoteServers(self._line).listed(check=True, say=say)
        return listed_tools(self._line, domain)

    def shown(self, domain: str, name: str, say: Say) -> values.DomainTool:
        """Return one tool as clients see it."""
        del say
        return self._line.get(values.DomainTool, "domains", domain, "tools", name)

    def explained(self, domain: str, name: str, say: Say) -> values.Explained:
        """Return the path of a call of a tool."""
        del say
        return self._line.get(values.Explained, "domains", domain, "tools", name, "explain")

    def say_effect(self, server: str, tool: str, effect: Effect | None) -> values.EffectSaid:
        """Say what a tool does to the world."""
        body = values.EffectPut(effect=effect)
        return self._line.do(values.EffectSaid, "PUT", "tools", server, tool, "effect", body=body)


class RemoteRecords:
    """The audit log of a running gateway, and copies of its registry."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def rows(self, last: int, *, notes: bool) -> tuple[values.AuditEntry, ...]:
        """Return the newest rows, newest first."""
        asked = {"notes": str(notes).lower(), "limit": str(min(last, _PAGE))}
        pages = _pages(self._line, values.AuditPage, "audit", **asked)
        return tuple(islice((row for page in pages for row in page.rows), last))

    def verified(self) -> values.AuditVerdict:
        """Return whether the log is whole."""
        return self._line.do(values.AuditVerdict, "POST", "audit", "verify")

    def copied(self, to: Path) -> str:
        """Write a copy of the registry on the gateway's machine."""
        if to.name != str(to):
            raise ConfigError(
                message="with --server, give a name without folders: the copy is made in the "
                "folder `backups` of the gateway's state folder"
            )
        body = values.BackupPut(name=to.name)
        done = self._line.do(values.BackedUp, "POST", "registry", "backup", body=body)
        return f"{done.path} on the gateway's machine"


def checked(line: Line, name: str) -> values.ServerChecked:
    """Ask a server for its tools and return what it answered."""
    return line.do(values.ServerChecked, "POST", "servers", name, "check")


def _answer(done: values.ServerChecked) -> str:
    said = count(len(done.tools), "tool") if done.ok else done.reason
    return f"{done.name}: {said.removeprefix(f'server {done.name}: ')}"


def _as_checked(entry: values.ServerEntry, reason: str) -> values.ServerEntry:
    """Return a server as its check found it: what is remembered of it does not count as ready."""
    if not reason or entry.state != UpstreamState.READY:
        return entry
    return msgspec.structs.replace(entry, state=UpstreamState.DEGRADED.value, reason=reason)


def listed_tools(line: Line, domain: str) -> values.DomainTools:
    """Return all that a domain shows, page by page."""
    first, *others = _pages(line, values.DomainTools, "domains", domain, "tools")
    tools = (*first.tools, *(tool for page in others for tool in page.tools))
    return msgspec.structs.replace(first, tools=tools)


def _pages(line: Line, kind: type[P], *path: str, **query: str | int) -> Iterator[P]:
    """Yield a list page by page, as far as somebody reads.

    Raises:
        UpstreamGarbled: The list leads back to where it was.
    """
    cursor: str | None = ""
    seen: set[str | None] = set()
    while cursor is not None:
        page = line.get(kind, *path, query={"limit": _PAGE, "cursor": cursor, **query})
        yield page
        seen.add(cursor)
        cursor = page.next
        if cursor in seen or len(seen) > _MOST_PAGES:
            raise UpstreamGarbled(message=f"the list of {path[0]} does not end")
