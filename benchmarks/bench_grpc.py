"""What a call of a gRPC server costs: straight, through the gateway, natively and by reflection.

    python -m benchmarks.bench_grpc [--rounds N] [--quick] [--json] [--strict]

The same rows stand in the table of calls; here they are measured alone, in two minutes.
"""

import sys
import tempfile
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path

from benchmarks import grpc_ways
from benchmarks.clients import STATELESS
from benchmarks.gateway import stand
from benchmarks.load import errors
from benchmarks.report import Report, arguments, finish
from benchmarks.ways import null, rounds, rows

TITLE = "A call of a gRPC server, straight and through the gateway"


def run(given: Namespace) -> Report:
    """Measure all ways and return the table with its promises."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ending:
        standing = ending.enter_context(stand())
        found = [
            null(ending, eras=[STATELESS]),
            *grpc_ways.ways(ending, Path(folder) / "gate", standing.receiver, standing.traces),
        ]
        measured = rounds(found, given)
    return Report(
        name="grpc",
        title=TITLE,
        rows=rows(found, measured),
        bars=grpc_ways.bars(measured),
        errors=errors(*measured.values()),
    )


def main() -> int:
    """Print the table and the promises."""
    parser = arguments(TITLE)
    parser.add_argument("--minutes", type=float, default=5, help="begin no round beyond them")
    given = parser.parse_args()
    if given.quick:
        given.rounds = 1
    return finish(run(given), given)


if __name__ == "__main__":
    sys.exit(main())
