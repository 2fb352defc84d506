"""`thoughtgate doctor`: what is wrong here, why it matters, and what mends it.

Never changes anything; servers are started as for a list of their tools, and ended again.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence

import click

from thoughtgate.app.doctor.examining import CHECKS, LATER, examined, worst
from thoughtgate.app.doctor.findings import Checked, Finding, Severity
from thoughtgate.cli.completing import server_names
from thoughtgate.cli.exits import Exit
from thoughtgate.cli.output import clean, json_flag, one_line, show
from thoughtgate.cli.signals import interruptible
from thoughtgate.cli.target import refuse_remote
from thoughtgate.config.files import survey

_WIDTH = len(Severity.PROBLEM)


def _looked_at(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    checks = [name for name in (*CHECKS, *LATER) if name.startswith(begun)]
    return [*checks, *server_names(context, param, begun)]


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]…", shell_complete=_looked_at)
@click.option("--fix-hints", is_flag=True, help="Print only what mends each finding.")
@json_flag
@click.pass_context
def doctor(
    context: click.Context, /, names: tuple[str, ...], fix_hints: bool, as_json: bool
) -> None:
    """Look for what is wrong, and say what mends it; exit 0 only without problems.

    NAME is a server, or a check such as `registry`; without one, everything is looked at.
    """
    refuse_remote()
    surveyed = survey(context.obj, os.environ)
    checks = asyncio.run(interruptible(examined(surveyed, os.environ, names)))
    well = worst(checks) is not Severity.PROBLEM
    value = {"ok": well, "checks": [check.as_json() for check in checks]}
    lines = _hints(checks) if fix_hints else _lines(checks)
    show(value, map(clean, lines), as_json=as_json)
    context.exit(Exit.OK if well else Exit.FAILED)


def _lines(checks: Sequence[Checked]) -> Iterator[str]:
    for check in checks:
        yield f"{check.severity.value:<{_WIDTH}}  {check.name}: {one_line(check.said)}"
        for finding in check.findings:
            yield from _told(finding)


def _told(finding: Finding) -> Iterator[str]:
    first, *rest = finding.what.split("\n")
    yield f"  {finding.severity.value}: {finding.where}: {first} [{finding.code}]"
    yield from (f"      {line}" for line in rest)
    yield f"    why: {finding.why}"
    yield f"    mend: {finding.mend}"


def _hints(checks: Sequence[Checked]) -> Iterator[str]:
    found = [finding for check in checks for finding in check.findings]
    if not found:
        yield "nothing to mend"
    for finding in found:
        yield f"{finding.where}: {finding.mend}"
