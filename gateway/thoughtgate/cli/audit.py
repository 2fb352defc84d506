"""`thoughtgate audit`: what stands in the log, and is it whole?

Never changes the log.
"""

from datetime import UTC, datetime
from pathlib import Path

import click

from thoughtgate.cli import desks
from thoughtgate.cli.exits import Exit
from thoughtgate.cli.lazy import Group
from thoughtgate.cli.output import clean, count, json_flag, show, table
from thoughtgate.surface.admin_values import AuditEntry

_UNREADABLE = "unreadable"
_YEAR_9999 = 253_370_764_800


@click.group(cls=Group)
def audit() -> None:
    """The tamper-evident log of every call."""


@audit.command(name="list")
@click.option("--last", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option("--all", "notes", is_flag=True, help="Also the log's own rows, `audit.…`.")
@json_flag
@click.pass_obj
def list_(chosen: Path | None, last: int, notes: bool, as_json: bool) -> None:
    """List the newest rows, newest first; --json shows all that a row holds."""
    records = desks.records(chosen).rows(last, notes=notes)
    value = [
        {"chain": r.chain, "seq": r.seq, "at": _time(r.at_ns), "hash": r.hash, "row": r.row}
        for r in records
    ]
    head = ("TIME", "ACTION", "DOMAIN", "TOOL", "EFFECT", "OUTCOME")
    lines = table(head, map(_cells, records)) if records else ["no calls yet"]
    show(value, lines, as_json=as_json)


def _cells(record: AuditEntry) -> tuple[str, ...]:
    if not record.row:
        where = f"chain {record.chain}, row {record.seq}"
        return (_time(record.at_ns), _UNREADABLE, "", where, "", "")
    row = {key: str(said) for key, said in record.row.items()}
    tool = "/".join(filter(None, (row.get("server"), row.get("tool"))))
    plain = (row.get(key, "") for key in ("effect", "outcome"))
    return (_time(record.at_ns), row["action"], row.get("domain", ""), tool, *plain)


def _time(at_ns: int) -> str:
    """Return a time in UTC, to the millisecond."""
    seconds, rest = divmod(at_ns, 1_000_000_000)
    if not 0 < seconds < _YEAR_9999:
        return _UNREADABLE
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 1_000_000:03d}Z"


@audit.command()
@json_flag
@click.pass_context
def verify(context: click.Context, as_json: bool) -> None:
    """Check every chain; exit 0 only if no row was changed, removed, added or moved."""
    report = desks.records(context.obj).verified()
    chains = [
        {"writer": c.writer, "rows": c.rows, "ok": c.ok, "broken_at": c.broken_at, "why": c.why}
        for c in report.chains
    ]
    value = {"ok": report.ok, "rows": report.rows, "chains": chains}
    counted = f"{count(len(chains), 'chain')}, {count(report.rows, 'row')}"
    lines = [f"{counted}: {'whole' if report.ok else 'BROKEN'}"]
    lines += [
        f"  {c['writer']}: broken at row {c['broken_at']}: {c['why']}"
        for c in chains
        if not c["ok"]
    ]
    show(value, map(clean, lines), as_json=as_json)
    context.exit(Exit.OK if report.ok else Exit.FAILED)
