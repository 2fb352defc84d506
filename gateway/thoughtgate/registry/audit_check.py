"""Reading and verifying the audit log. Never writes to it, and never holds a long snapshot.

SQLite keeps a value of any type in any column, so nothing that is read here is believed to have
the type that a writer gave it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Row, func, select

from thoughtgate.core.json import JsonObject
from thoughtgate.registry import chain, tables
from thoughtgate.registry.chain import ChainHead
from thoughtgate.registry.database import Database
from thoughtgate.registry.store import Registry

_PAGE = 2000
"""Rows per query: a snapshot must not stop checkpoints for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One stored row; `row` is the JSON object that was hashed, empty fields left out.

    Of a row that somebody made unreadable `row` and `hash` are empty, and `at_ns` may be 0.
    """

    chain: str
    seq: int
    at_ns: int
    hash: str
    row: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainReport:
    """One writer's chain: how many rows hold together, and where and why it breaks, if it does."""

    writer: str
    rows: int
    first_ns: int = 0
    last_ns: int = 0
    broken_at: int | None = None
    why: str = ""

    @property
    def ok(self) -> bool:
        """Say whether nothing of the chain was touched, as far as can be seen."""
        return self.broken_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """All chains, oldest first, those that others remember but that are gone included."""

    chains: tuple[ChainReport, ...]

    @property
    def ok(self) -> bool:
        """Say whether every chain is."""
        return all(report.ok for report in self.chains)

    @property
    def rows(self) -> int:
        """Return how many rows hold together in all."""
        return sum(report.rows for report in self.chains)


class _Stored(NamedTuple):
    seq: object
    at_ns: object
    hash: object
    body: object


@dataclass(frozen=True, slots=True, kw_only=True)
class _Break:
    seq: int
    why: str


class _Walk:
    """Follows one chain from its first row, and collects the heads that it notes of others."""

    def __init__(self, uid: str) -> None:
        self.hash = chain.first_hash(uid)
        self.rows = 0
        self.first_ns = self.last_ns = 0
        self.noted: list[ChainHead] = []

    def step(self, row: _Stored) -> _Break | None:
        """Take the next stored row."""
        expected = self.rows + 1
        if row.seq != expected:
            return _Break(seq=expected, why=f"row {expected} is missing")
        body = row.body if isinstance(row.body, bytes) else None
        if body is None or chain.next_hash(self.hash, body) != row.hash:
            return _Break(seq=expected, why="the row or its hash was changed")
        try:
            decoded = msgspec.json.decode(body, type=dict[str, object])
            self.noted += chain.heads_in(decoded)
        except ValueError:
            return _Break(seq=expected, why="the row is not one that a writer makes")
        if not isinstance(row.at_ns, int) or decoded.get("at_ns", 0) != row.at_ns:
            return _Break(seq=expected, why="the time beside the row was changed")
        self.hash = chain.next_hash(self.hash, body)
        self.rows = expected
        self.first_ns = self.first_ns or row.at_ns
        self.last_ns = row.at_ns
        return None


def verify(registry: Registry, *, anchored: Iterable[ChainHead] = ()) -> AuditReport:
    """Follow every chain and compare it with what is remembered of it.

    Edited, removed, reordered and inserted rows break the hashes. A cut tail shows against the
    stored head, the heads noted in other chains, and the `anchored` heads that were exported
    earlier. Rows written while this runs are not looked at.

    Raises:
        StoreError: The database cannot be read.
    """
    database = registry.database
    with database.read() as connection:
        stored = connection.execute(select(tables.audit_chains).order_by("started_ns")).all()
    remembered = set(anchored)
    reports: dict[str, ChainReport] = {}
    for row in stored:
        head = _head(row)
        reports[head.chain], noted = _follow(database, row.id, head)
        remembered.update(noted)
    ids = {str(row.uid): row.id for row in stored}
    for head in sorted(remembered, key=attrgetter("chain", "seq")):
        _compare(database, ids, reports, head)
    _find_orphans(database, set(ids.values()), reports)
    return AuditReport(chains=tuple(reports.values()))


def heads(registry: Registry) -> tuple[ChainHead, ...]:
    """Return where all chains stand, to be kept outside the registry as an anchor."""
    table = tables.audit_chains
    with registry.database.read() as connection:
        rows = connection.execute(select(table).order_by(table.c.started_ns)).all()
    return tuple(map(_head, rows))


def latest(
    registry: Registry, *, limit: int = 100, before_ns: int | None = None, notes: bool = True
) -> tuple[AuditRecord, ...]:
    """Return the newest rows of all chains, newest first; `before_ns` pages back.

    Without `notes` the rows that writers add by themselves to tie the chains together are left
    out; what says that rows were lost is not.
    """
    table, chains = tables.audit, tables.audit_chains
    query = (
        select(chains.c.uid, table.c.seq, table.c.at_ns, table.c.hash, table.c.body)
        .join(chains, chains.c.id == table.c.chain)
        .order_by(table.c.at_ns.desc(), table.c.chain.desc(), table.c.seq.desc())
        .limit(limit)
    )
    if before_ns is not None:
        query = query.where(table.c.at_ns < before_ns)
    for start in () if notes else chain.NOTE_STARTS:
        query = query.where(func.substr(table.c.body, 1, len(start)) != start)
    with registry.database.read() as connection:
        rows = connection.execute(query).all()
    return tuple(
        AuditRecord(
            chain=row.uid,
            seq=row.seq,
            at_ns=_number(row.at_ns),
            hash=_hex(row.hash),
            row=_readable(row.body),
        )
        for row in rows
    )


def _head(row: Row[Any]) -> ChainHead:
    return ChainHead(chain=str(row.uid), seq=_number(row.head_seq), hash=_hex(row.head_hash))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _hex(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else ""


def _readable(body: object) -> JsonObject:
    """Return a row's body, empty when it is not one that a writer makes."""
    try:
        row = msgspec.json.decode(body, type=dict[str, Any]) if isinstance(body, bytes) else {}
    except ValueError:
        return {}
    return row if isinstance(row.get("action"), str) else {}


def _follow(
    database: Database, chain_id: int, head: ChainHead
) -> tuple[ChainReport, list[ChainHead]]:
    walk = _Walk(head.chain)
    broken: _Break | None = None
    for row in _rows(database, chain_id, head.seq):
        broken = walk.step(row)
        if broken is not None:
            break
    if broken is None:
        broken = _end(database, chain_id, head, walk)
    report = ChainReport(
        writer=head.chain,
        rows=walk.rows,
        first_ns=walk.first_ns,
        last_ns=walk.last_ns,
        broken_at=broken.seq if broken else None,
        why=broken.why if broken else "",
    )
    return report, walk.noted


def _end(database: Database, chain_id: int, head: ChainHead, walk: _Walk) -> _Break | None:
    """Hold the end of a chain against its stored head."""
    if walk.rows < head.seq:
        return _Break(seq=walk.rows + 1, why=f"the rows up to {head.seq} are missing")
    if walk.hash.hex() != head.hash:
        return _Break(seq=max(head.seq, 1), why="the stored head was changed")
    table, chains = tables.audit, tables.audit_chains
    with database.read() as connection:
        last = connection.execute(
            select(func.max(table.c.seq)).where(table.c.chain == chain_id)
        ).scalar_one()
        known = connection.execute(
            select(chains.c.head_seq).where(chains.c.id == chain_id)
        ).scalar_one()
    if last is not None and (not isinstance(last, int) or last > _number(known)):
        return _Break(seq=_number(known) + 1, why="rows were added behind the stored head")
    return None


def _compare(
    database: Database, ids: dict[str, int], reports: dict[str, ChainReport], head: ChainHead
) -> None:
    """Hold a chain against a head that is remembered elsewhere."""
    report = reports.get(head.chain)
    if report is None:
        reports[head.chain] = ChainReport(
            writer=head.chain, rows=0, broken_at=head.seq, why="the whole chain is missing"
        )
        return
    if not report.ok or head.seq == 0:
        return
    table = tables.audit
    with database.read() as connection:
        stored = connection.execute(
            select(table.c.hash).where(table.c.chain == ids[head.chain], table.c.seq == head.seq)
        ).scalar_one_or_none()
    if _hex(stored) != head.hash:
        reports[head.chain] = replace(
            report,
            broken_at=head.seq,
            why="the chain is not the one that was noted elsewhere: it was cut or rewritten",
        )


def _find_orphans(database: Database, known: set[int], reports: dict[str, ChainReport]) -> None:
    table = tables.audit
    with database.read() as connection:
        found = connection.execute(select(table.c.chain).distinct()).scalars().all()
    for chain_id in sorted(set(found) - known):
        # a chain that began after the list was read is no orphan
        with database.read() as connection:
            chains = tables.audit_chains
            uid = connection.execute(
                select(chains.c.uid).where(chains.c.id == chain_id)
            ).scalar_one_or_none()
        if uid is None:
            name = f"#{chain_id}"
            reports[name] = ChainReport(
                writer=name, rows=0, broken_at=1, why="rows without a chain: its entry was removed"
            )


def _rows(database: Database, chain_id: int, upto: int) -> Iterator[_Stored]:
    """Yield the rows of a chain in order, page by page."""
    table = tables.audit
    query = select(table.c.seq, table.c.at_ns, table.c.hash, table.c.body)
    done = -(2**63)
    while True:
        with database.read() as connection:
            page = connection.execute(
                query
                .where(table.c.chain == chain_id, table.c.seq > done, table.c.seq <= upto)
                .order_by(table.c.seq)
                .limit(_PAGE)
            ).all()
        for row in page:
            yield _Stored(*row)
        if len(page) < _PAGE:
            return
        done = page[-1].seq
