"""The data server: ask SQLite, CSV and Parquet files in SQL, count, draw, export.

Never writes to what it reads, and never reads outside the given directories.
"""

from pathlib import Path

import click

from thoughtgate_servers.data.limits import Limits, bound_memory
from thoughtgate_servers.data.tools import DataTools
from thoughtgate_servers.report.tools import output_directory
from thoughtgate_servers.serving import Carrier, sandbox, serve, transport_options
from thoughtgate_servers.table import ToolFailed

INSTRUCTIONS = (
    "A source is a SQLite file, a CSV or Parquet file, or a directory of these, under the allowed "
    "directories. Describe it before you query it: the names of tables and columns are there."
)


@click.command(
    epilog=f"""\b
Examples:
  thoughtgate-data --root ~/measurements
  thoughtgate-data --root ~/measurements --out ~/findings --grpc 127.0.0.1:8105
  thoughtgate server add data -- thoughtgate-data --root ~/measurements

CSV and Parquet need DuckDB: pip install 'thoughtgate[data]'

{INSTRUCTIONS}"""
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    default=["."],
    metavar="DIR",
    help="A directory that may be read; repeatable. Default: the current directory.",
)
@click.option(
    "--out",
    metavar="DIR",
    help="Where charts and exports may be written; made when missing. Without it, none are.",
)
@click.option(
    "--seconds",
    type=click.IntRange(1, 3600),
    default=30,
    show_default=True,
    help="How long one call may take.",
)
@click.option(
    "--memory-mb",
    type=click.IntRange(64, 65536),
    default=512,
    show_default=True,
    help="How much memory the engine may use for one call; the process, four times that and 1 GB.",
)
@transport_options
def main(
    roots: tuple[str, ...], out: str | None, seconds: int, memory_mb: int, carrier: Carrier
) -> None:
    """Serve data to models, under the --root directories only, read-only."""
    try:
        writable = None if out is None else output_directory(Path(out).expanduser())
    except ToolFailed as failure:
        raise click.UsageError(message=failure.message) from None
    limits = Limits(seconds=seconds, memory_mb=memory_mb)
    tools = DataTools(sandbox=sandbox(roots), out=writable, limits=limits).table()
    bound_memory(limits)
    serve(tools, name="data", instructions=INSTRUCTIONS, carrier=carrier)
