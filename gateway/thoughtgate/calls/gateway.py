"""The gateway: the live catalogue, its domains, and the path that every call takes.

Never changes what a running call sees, and never waits: an update builds a new snapshot, and
calls that began before it end on the old one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from thoughtgate.calls.path import Equipment, explain, path
from thoughtgate.calls.resolved import unknown
from thoughtgate.calls.sent import peer
from thoughtgate.calls.snapshot import Snapshot
from thoughtgate.catalog import Catalog, Part, merge
from thoughtgate.core.calls import Call, Listener, Result
from thoughtgate.core.domains import Domain
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Server
from thoughtgate.views import View

Watcher = Callable[[frozenset[tuple[str, str]]], None]
"""Takes which lists changed: pairs of a domain and `tools`, `prompts` or `resources`."""

_MAX_GONE = 200
"""Names that a domain remembers to have shown earlier."""


class Gateway:
    """Everything that clients and runs call through; belongs to one event loop."""

    def __init__(self, equipment: Equipment, *, domains: Iterable[Domain] = ()) -> None:
        self._equipment = equipment
        self._parts: dict[str, Part] = {}
        self._servers: dict[str, Server] = {}
        self._watchers: list[Watcher] = []
        self._snapshot = Snapshot(
            catalog=merge(()), domains={domain.name: domain for domain in domains}
        )
        self._path = path(self._snapshot, equipment)

    async def call(self, call: Call) -> Result:
        """Carry one call through all stages.

        Raises:
            GateError: As the stages and the sender say.
        """
        return await self._path(call)

    def leave(self, listener: Listener) -> None:
        """Forget what a listener has subscribed to; see `Ties.leave`."""
        if self._equipment.ties is not None:
            self._equipment.ties.leave(listener)

    def leave_session(self, session_id: str) -> None:
        """End what a client session had of its own; see `Ties.leave_session`."""
        if self._equipment.ties is not None:
            self._equipment.ties.leave_session(session_id)

    def tell(self, session_id: str, method: str, params: JsonObject) -> None:
        """Pass a client's notification on; see `Ties.tell`."""
        if self._equipment.ties is not None:
            self._equipment.ties.tell(session_id, method, params)

    def view(self, domain: str) -> View:
        """Return what a domain shows now.

        Raises:
            UnknownTarget: There is no such domain.
        """
        return self._snapshot.view(domain)

    @property
    def catalog(self) -> Catalog:
        """Return the catalogue as it stands."""
        return self._snapshot.catalog

    @property
    def domains(self) -> Mapping[str, Domain]:
        """Return the domains by name."""
        return self._snapshot.domains

    def explain(self, domain: str, name: str) -> tuple[tuple[str, str], ...]:
        """Return the stages that a call of this tool takes, and what each does to it.

        Raises:
            UnknownTarget: The domain shows no such tool.
        """
        entry = self.view(domain).table.get(name)
        if entry is None:
            raise unknown(name, domain, self._snapshot)
        return explain(entry, self._snapshot, self._equipment)

    def update(self, part: Part, server: Server) -> None:
        """Put what a server offers now in the place of what it offered before."""
        self._parts[part.server] = part
        self._servers[part.server] = server
        self._renew(merge(self._parts.values()), self._snapshot.domains)

    def drop(self, server: str) -> None:
        """Forget a server and its tools; its running calls end as they can."""
        self._servers.pop(server, None)
        if self._parts.pop(server, None) is not None:
            self._renew(merge(self._parts.values()), self._snapshot.domains)

    def set_domains(self, domains: Iterable[Domain]) -> None:
        """Replace all domains."""
        self._renew(self._snapshot.catalog, {domain.name: domain for domain in domains})

    def watch(self, callback: Watcher) -> Callable[[], None]:
        """Call back when lists that domains show have changed; returns how to stop that.

        A domain that nobody has looked at yet is not told of.
        """
        self._watchers.append(callback)
        return lambda: self._watchers.remove(callback)

    def _renew(self, catalog: Catalog, domains: Mapping[str, Domain]) -> None:
        before = self._snapshot
        after = Snapshot(
            catalog=catalog,
            domains=domains,
            earlier=before.views,
            peers={name: peer(server) for name, server in self._servers.items()},
            views={
                name: view
                for name, view in before.views.items()
                if view.catalog == catalog.revision and view.domain == domains.get(name)
            },
        )
        changed = frozenset(
            (name, which) for name in before.views for which in _changed(name, before, after)
        )
        tools = [name for name, which in changed if which == "tools"]
        self._snapshot = replace(after, gone=_gone(tools, before, after))
        self._path = path(self._snapshot, self._equipment)
        if changed:
            for watcher in list(self._watchers):
                watcher(changed)


def _changed(domain: str, before: Snapshot, after: Snapshot) -> Iterable[str]:
    """Return the lists of a domain that clients would see differently. Builds the new view."""
    shown = before.views[domain]
    if domain not in after.domains:
        lists = {"tools": shown.entries, "prompts": shown.prompts, "resources": shown.resources}
        return [which for which, things in lists.items() if things]
    revisions = after.view(domain).revisions
    return [which for which, seen in shown.revisions.items() if revisions[which] != seen]


def _gone(
    changed: Iterable[str], before: Snapshot, after: Snapshot
) -> Mapping[str, Mapping[str, str]]:
    """Return the names that domains no longer show, the latest of them, with the revision."""
    gone = {name: names for name, names in before.gone.items() if name in after.domains}
    for domain in changed:
        if domain not in after.domains:
            continue
        shown = after.view(domain).table
        lost = dict.fromkeys(before.views[domain].table, after.catalog.revision)
        names = {**gone.get(domain, {}), **lost}
        kept = [(name, revision) for name, revision in names.items() if name not in shown]
        gone[domain] = dict(kept[-_MAX_GONE:])
    return gone
