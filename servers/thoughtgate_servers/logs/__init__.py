"""The logs server: find log files, read them, classify and count their errors.

Never writes anything, and reads only under the directories that it was given.
"""

import click

from thoughtgate_servers.logs.reading import DEFAULT_MAX_BYTES
from thoughtgate_servers.logs.tools import LogTools
from thoughtgate_servers.serving import Carrier, sandbox, serve, transport_options

INSTRUCTIONS = (
    "Start with find_logs, hand its paths to classify_errors, and its groups to count_errors. "
    "read_log shows the lines themselves."
)


@click.command(
    epilog=f"""\b
Examples:
  thoughtgate-logs --root /var/log
  thoughtgate-logs --root /var/log --root ~/app/logs --http 127.0.0.1:8101
  thoughtgate server add logs -- thoughtgate-logs --root /var/log

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
    "--max-bytes",
    type=click.IntRange(min=1),
    default=DEFAULT_MAX_BYTES,
    help="How much of one file is read at most, after decompression.",
    show_default=True,
)
@transport_options
def main(roots: tuple[str, ...], max_bytes: int, carrier: Carrier) -> None:
    """Serve log files to MCP clients: find, read, classify errors, count them.

    Reads syslog, nginx access and error logs, Python logging with tracebacks and JSON lines,
    plain or gzipped, under the --root directories only.
    """
    tools = LogTools(sandbox=sandbox(roots), max_bytes=max_bytes).table()
    serve(tools, name="logs", instructions=INSTRUCTIONS, carrier=carrier)
