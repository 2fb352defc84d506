"""A hash chain of audit rows as pure functions. Never touches a database, a clock or a thread.

`hash(n) = SHA-256(hash(n-1) + body(n))`, and `hash(0)` is drawn from the chain's own id, so rows
can be neither edited, dropped, swapped nor moved to another chain without breaking every hash
after them. Whoever can rewrite the whole chain can make a new valid one: so heads are noted in
other chains and can be exported. This makes tampering evident; it does not prevent it.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import msgspec

from thoughtgate.core.audit import AuditRow
from thoughtgate.core.json import JsonObject

STARTED, CHECKPOINT, CLOSED = "audit.started", "audit.checkpoint", "audit.closed"
"""Rows that a writer adds by itself; they note the heads of the other chains."""

NOTE_STARTS = tuple(f'{{"action":"{note}"'.encode() for note in (STARTED, CHECKPOINT, CLOSED))
"""How the bodies of those rows begin: keys are sorted."""

GAP = "audit.gap"
"""A row that says how many rows were lost at its place."""

BODY_LIMIT = 32 * 1024
"""Bytes of one row; longer texts in it are cut."""

_TEXT_LIMIT = 500
_NAMES = tuple(sorted(AuditRow._fields))
_values = itemgetter(*map(AuditRow._fields.index, _NAMES))
_EMPTY: Mapping[str, object] = {"at_ns": 0, "duration_us": 0, "notes": ()}
_Body: Callable[..., msgspec.Struct] = msgspec.defstruct(
    "_Body", [(name, object, _EMPTY.get(name, "")) for name in _NAMES], omit_defaults=True
)
"""A row with its fields in the order of canonical JSON: a third of the time of a dict of them."""

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """The last row of a chain, enough to prove later that nothing before it was touched."""

    chain: str
    seq: int
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Stands for `lost` rows that could not be kept, the first of them at `at_ns`."""

    at_ns: int
    lost: int


def first_hash(uid: str) -> bytes:
    """Return the hash that stands before a chain's first row."""
    return hashlib.sha256(b"thoughtgate/audit-chain:" + uid.encode()).digest()


def next_hash(before: bytes, body: bytes) -> bytes:
    """Return the hash of the row `body` that follows the hash `before`."""
    return hashlib.sha256(before + body).digest()


def body_of(row: AuditRow | Gap) -> bytes:
    """Return the canonical JSON of a row, without its empty fields."""
    if isinstance(row, Gap):
        return _encoded({"action": GAP, "at_ns": row.at_ns, "lost": row.lost})
    try:
        body = _encoder.encode(_Body(*_values(row)))
    except UnicodeEncodeError:
        body = _encoded(_shown(row))
    if len(body) > BODY_LIMIT:
        body = _encoded({name: _cut(value) for name, value in _shown(row).items()})
    return body


def heads_body(action: str, at_ns: int, heads: Iterable[ChainHead]) -> bytes:
    """Return a row that notes where other chains stand."""
    noted = [[head.chain, head.seq, head.hash] for head in heads]
    return _encoded({"action": action, "at_ns": at_ns, "heads": noted})


def heads_in(row: JsonObject) -> list[ChainHead]:
    """Return the heads that a decoded row notes.

    Raises:
        ValueError: They are not in the form that `heads_body` writes.
    """
    noted = msgspec.convert(row.get("heads", []), list[tuple[str, int, str]])
    return [ChainHead(chain=chain, seq=seq, hash=value) for chain, seq, value in noted]


def _shown(row: AuditRow) -> dict[str, object]:
    return {name: value for name, value in zip(_NAMES, _values(row), strict=True) if value}


def _encoded(shown: Mapping[str, object]) -> bytes:
    r"""Encode with sorted keys (they come sorted); same bytes as `core.json.canonical`.

    A lone surrogate, as in a file name that is not UTF-8, is written as the text `\udcff`.
    """
    try:
        return _encoder.encode(shown)
    except UnicodeEncodeError:
        return _encoder.encode({name: _readable(value) for name, value in shown.items()})


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, tuple | list):
        return [_readable(item) for item in value]
    return value


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _TEXT_LIMIT else value[:_TEXT_LIMIT] + "…"
    if isinstance(value, tuple):
        return [_cut(item) for item in value[:20]]
    return value
