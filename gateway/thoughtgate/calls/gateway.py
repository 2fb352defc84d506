"""The gateway: the live catalogue, its domains, and the path that every call takes.

Never changes what a running call sees, and never waits: an update builds a new snapshot, and
calls that began before it end on the old one.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from thoughtgate.calls.path import Equipment, explain, path
from thoughtgate.calls.resolved import unknown
from thoughtgate.calls.sent import peer
from thoughtgate.calls.snapshot import Snapshot
from thoughtgate.catalog import Catalog, Part, merge, settled
from thoughtgate.core.calls import Call, Listener, Result
from thoughtgate.core.domains import Domain
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Server
from thoughtgate.views import View, build

Watcher = Callable[[frozenset[tuple[str, str]]], None]
"""Takes which lists changed: pairs of a domain and `tools`, `prompts` or `resources`."""

_MAX_GONE = 200
"""Names that a domain remembers to have shown earlier."""

_NOTHING = Snapshot(catalog=merge(()), domains={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What changes at once: what servers offer now, which are gone, and all domains, or None.

    `parts` go with the servers that they are of.
    """

    parts: tuple[tuple[Part, Server], ...] = ()
    gone: frozenset[str] = frozenset()
    domains: tuple[Domain, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inputs:
    """What a snapshot is made of, by server; replaced as a whole, never changed."""

    parts: Mapping[str, Part] = field(default_factory=dict)
    servers: Mapping[str, Server] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An update with the snapshot that it leads to from the one before."""

    update: Update
    before: Snapshot
    inputs: _Inputs
    after: Snapshot
    changed: frozenset[tuple[str, str]]


class Gateway:
    """Everything that clients and runs call through; belongs to one event loop."""

    def __init__(self, equipment: Equipment, *, domains: Iterable[Domain] = ()) -> None:
        self._equipment = equipment
        self._inputs = _Inputs()
        self._watchers: list[Watcher] = []
        self._snapshot = _after(_NOTHING, merge(()), {one.name: one for one in domains}, {})
        self._path = path(self._snapshot, equipment)

    def call(self, call: Call) -> Awaitable[Result]:
        """Carry one call through all stages.

        Raises:
            GateError: As the stages and the sender say.
        """
        return self._path(call)

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
        self.adopt(self.prepared(Update(parts=((part, server),))))

    def drop(self, server: str) -> None:
        """Forget a server and its tools; its running calls end as they can."""
        self.adopt(self.prepared(Update(gone=frozenset({server}))))

    def set_domains(self, domains: Iterable[Domain]) -> None:
        """Replace all domains."""
        self.adopt(self.prepared(Update(domains=tuple(domains))))

    def prepared(self, update: Update) -> Prepared:
        """Return what `adopt` takes: every view as it will be.

        It changes nothing, so it may run in a thread: with thousands of tools it takes its time.
        """
        before, inputs = self._snapshot, _updated(self._inputs, update)
        catalog, domains = before.catalog, before.domains
        if inputs.parts != self._inputs.parts:
            catalog = merge(inputs.parts.values(), earlier=catalog)
        if update.domains is not None:
            domains = {domain.name: domain for domain in update.domains}
        after = _after(before, catalog, domains, inputs.servers)
        changed = {
            (name, which) for name in before.views for which in _changed(name, before, after)
        }
        return Prepared(
            update=update,
            before=before,
            inputs=inputs,
            after=after,
            changed=frozenset(changed),
        )

    def adopt(self, prepared: Prepared) -> None:
        """Let an update take effect, and tell of it."""
        if prepared.before is not self._snapshot:  # another one came first
            prepared = self.prepared(prepared.update)
        self._inputs, self._snapshot = prepared.inputs, prepared.after
        self._path = path(self._snapshot, self._equipment)
        if prepared.changed:
            for watcher in list(self._watchers):
                watcher(prepared.changed)

    def watch(self, callback: Watcher) -> Callable[[], None]:
        """Call back when lists that domains show have changed; returns how to stop that."""
        self._watchers.append(callback)
        return lambda: self._watchers.remove(callback)


def _updated(inputs: _Inputs, update: Update) -> _Inputs:
    parts, servers = dict(inputs.parts), dict(inputs.servers)
    for name in update.gone:
        parts.pop(name, None)
        servers.pop(name, None)
    for part, server in update.parts:
        parts[part.server] = settled(part, inputs.parts.get(part.server))
        servers[part.server] = server
    return _Inputs(parts=parts, servers=servers)


def _after(
    before: Snapshot,
    catalog: Catalog,
    domains: Mapping[str, Domain],
    servers: Mapping[str, Server],
) -> Snapshot:
    """Return the catalogue with the views of all domains over it, as few as possible built anew."""
    views: dict[str, View] = {}
    for name, domain in domains.items():
        known = before.views.get(name)
        same = known and before.catalog is catalog and known.domain == domain
        views[name] = known if known and same else build(domain, catalog, earlier=known)
    return Snapshot(
        catalog=catalog,
        domains=domains,
        peers={name: peer(server) for name, server in servers.items()},
        gone=_gone(before, catalog, views),
        views=views,
    )


def _changed(domain: str, before: Snapshot, after: Snapshot) -> Iterable[str]:
    """Return the lists of a domain that clients would see differently."""
    shown = before.views[domain]
    if domain not in after.views:
        lists = {"tools": shown.entries, "prompts": shown.prompts, "resources": shown.resources}
        return [which for which, things in lists.items() if things]
    revisions = after.views[domain].revisions
    return [which for which, seen in shown.revisions.items() if revisions[which] != seen]


def _gone(
    before: Snapshot, catalog: Catalog, views: Mapping[str, View]
) -> Mapping[str, Mapping[str, str]]:
    """Return the names that domains no longer show, the latest of them, with the revision."""
    gone = {name: names for name, names in before.gone.items() if name in views}
    for domain, view in views.items():
        known = before.views.get(domain)
        if known is None or known.revision == view.revision:
            continue
        names = {**gone.get(domain, {}), **dict.fromkeys(known.table, catalog.revision)}
        kept = [(name, revision) for name, revision in names.items() if name not in view.table]
        gone[domain] = dict(kept[-_MAX_GONE:])
    return gone
