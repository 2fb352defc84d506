"""`python -m tests.conformance`: run the legs, print the table, fail when a figure is not reached.

Never takes a failure as expected: there is no list of exceptions. A leg that fails is run once
more, and both are told: the suite waits by the clock, and a busy machine is late now and then.
"""

import json
import shutil
import sys

import click

from tests.conformance import report, suite
from tests.conformance.legs import COLUMNS, Column, Report, clients, piped, straight, through
from tests.conformance.page import page

OUT = suite.HERE / "out"
PAGE = suite.HERE.parents[1] / "docs" / "reference" / "conformance.md"
LEGS = ("direct", "gateway", "handshake", "stdio", "client")


@click.command()
@click.option("--leg", "chosen", type=click.Choice(LEGS), multiple=True, help="Only these legs.")
@click.option("--column", "keys", type=click.Choice([c.key for c in COLUMNS]), multiple=True)
@click.option("--write", is_flag=True, help="Write the page of the docs.")
def main(chosen: tuple[str, ...], keys: tuple[str, ...], *, write: bool) -> None:
    """Run the official suite at the fixture, straight and through the gateway."""
    node = suite.require()
    versions = " and ".join(release.version for release in suite.Release)
    click.echo(f"the official suite {versions} on Node {node}", err=True)
    shutil.rmtree(OUT, ignore_errors=True)
    columns = [column for column in COLUMNS if not keys or column.key in keys]
    reports: list[Report] = []
    for leg in chosen or LEGS:
        reports += _run_told(leg, columns)
    (OUT / "report.json").write_text(json.dumps(report.as_json(reports), indent=1), "utf-8")
    for line in (*report.table(reports), "", *report.findings(reports)):
        click.echo(line)
    if write:
        PAGE.write_text(page(reports), encoding="utf-8")
    good = all(each.good for each in reports if each.required)
    click.echo(f"conformance: {'every figure that was asked for is reached' if good else 'FAILED'}")
    sys.exit(0 if good else 1)


def _run_told(leg: str, columns: list[Column]) -> list[Report]:
    """Run a leg, once more if it fails, and tell each figure."""
    for last in (False, True):
        done = _run(leg, columns)
        for each in done:
            click.echo(f"{each.figure:>6}  {each.key}, {each.front}", err=True)
        if last or all(each.good for each in done if each.required):
            return done
        for line in report.findings(done):
            click.echo(line, err=True)
        click.echo(f"the leg {leg} once more", err=True)
    raise AssertionError


def _run(leg: str, columns: list[Column]) -> list[Report]:
    if leg == "direct":
        return [straight(column, OUT) for column in columns]
    if leg == "gateway":
        return [through(column, OUT) for column in columns]
    if leg == "handshake":
        return [through(column, OUT, era="handshake") for column in columns]
    if leg == "stdio":
        return [piped(column, OUT) for column in columns]
    return list(clients(OUT))


if __name__ == "__main__":
    main()
