"""`python -m tests.conformance`: run the legs, print the table, fail when a figure is not reached.

Never takes a failure as expected: there is no list of exceptions.
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
        for done in _run(leg, columns):
            click.echo(f"{done.figure:>6}  {done.key}, {done.front}", err=True)
            reports.append(done)
    (OUT / "report.json").write_text(json.dumps(report.as_json(reports), indent=1), "utf-8")
    for line in (*report.table(reports), "", *report.findings(reports)):
        click.echo(line)
    if write:
        PAGE.write_text(page(reports), encoding="utf-8")
    good = all(each.good for each in reports if each.required)
    click.echo(f"conformance: {'every figure that was asked for is reached' if good else 'FAILED'}")
    sys.exit(0 if good else 1)


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
