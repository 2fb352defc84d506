"""What the schema check said about a schema, remembered by its digest.

Never decides: a verdict counts only for the same `checker`, the rules that gave it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select
from sqlalchemy.dialects.sqlite import insert

from thoughtgate.registry import tables

_AT_ONCE = 500
"""Digests per query: SQLite before 3.32 takes 999 parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Admitted, or refused by `rule` for `reason`."""

    rule: str = ""
    reason: str = ""

    @property
    def ok(self) -> bool:
        """Say whether the schema was admitted."""
        return not self.rule


def load(connection: Connection, digests: Iterable[str], checker: str) -> Mapping[str, Verdict]:
    """Return the known verdicts of `checker` among `digests`."""
    table = tables.schema_verdicts
    wanted = sorted(set(digests))
    found: dict[str, Verdict] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        rows = connection.execute(
            select(table).where(table.c.checker == checker, table.c.digest.in_(part))
        )
        found.update({row.digest: Verdict(rule=row.rule, reason=row.reason) for row in rows})
    return found


def put(connection: Connection, verdicts: Mapping[str, Verdict], checker: str) -> None:
    """Remember verdicts of `checker`, by digest."""
    rows = [
        {"digest": digest, "checker": checker, "rule": verdict.rule, "reason": verdict.reason}
        for digest, verdict in verdicts.items()
    ]
    if rows:
        statement = insert(tables.schema_verdicts)
        newer = {name: statement.excluded[name] for name in ("rule", "reason")}
        connection.execute(
            statement.on_conflict_do_update(index_elements=["digest", "checker"], set_=newer), rows
        )
