"""The report server: Markdown reports with bar charts from counts.

Never writes outside the directory that it was given.
"""

from pathlib import Path

import click

from thoughtgate_servers.report.tools import ReportTools, output_directory
from thoughtgate_servers.serving import Carrier, serve, transport_options
from thoughtgate_servers.table import ToolFailed

INSTRUCTIONS = (
    "write_report takes rows of counts and writes a Markdown report with a table and a chart; "
    "render_chart only draws."
)


@click.command(
    epilog=f"""\b
Examples:
  thoughtgate-report --out ~/reports
  thoughtgate-report --out ~/reports --http 127.0.0.1:8102
  thoughtgate server add report -- thoughtgate-report --out ~/reports

{INSTRUCTIONS}"""
)
@click.option(
    "--out",
    default="reports",
    show_default=True,
    metavar="DIR",
    help="The only directory that is written to; made when missing.",
)
@transport_options
def main(out: str, carrier: Carrier) -> None:
    """Serve report writing to MCP clients: Markdown tables and SVG bar charts from counts."""
    try:
        tools = ReportTools(sandbox=output_directory(Path(out).expanduser())).table()
    except ToolFailed as failure:
        raise click.UsageError(failure.message) from None
    serve(tools, name="report", instructions=INSTRUCTIONS, carrier=carrier)
