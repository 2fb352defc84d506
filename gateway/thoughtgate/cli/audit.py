"""`thoughtgate audit`: is the log whole?

Never changes the log.
"""

import click

from thoughtgate.cli.exits import Exit
from thoughtgate.cli.output import clean, json_flag, show
from thoughtgate.cli.settings import loaded_or_fail, opened_registry
from thoughtgate.registry.audit import verify as verified


@click.group()
def audit() -> None:
    """The tamper-evident log of every call."""


@audit.command()
@json_flag
@click.pass_context
def verify(context: click.Context, as_json: bool) -> None:
    """Check every chain; exit 0 only if no row was changed, removed, added or moved."""
    with opened_registry(loaded_or_fail(context.obj)) as store:
        report = verified(store)
    chains = [
        {"writer": c.writer, "rows": c.rows, "ok": c.ok, "broken_at": c.broken_at, "why": c.why}
        for c in report.chains
    ]
    value = {"ok": report.ok, "rows": sum(c.rows for c in report.chains), "chains": chains}
    lines = [f"{len(chains)} chains, {value['rows']} rows: {'whole' if report.ok else 'BROKEN'}"]
    lines += [
        f"  {c['writer']}: broken at row {c['broken_at']}: {c['why']}"
        for c in chains
        if not c["ok"]
    ]
    show(value, map(clean, lines), as_json=as_json)
    context.exit(Exit.OK if report.ok else Exit.FAILED)
