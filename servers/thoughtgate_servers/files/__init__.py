"""The files server: read, list, search and write files under given directories.

Never reaches outside them, whatever a path or a link says.
"""

import click

from thoughtgate_servers.files.tools import FileTools
from thoughtgate_servers.serving import Carrier, sandbox, serve, transport_options

INSTRUCTIONS = "Paths are relative to the allowed directories, or absolute below them."


@click.command(
    epilog=f"""\b
Examples:
  thoughtgate-files --root ~/notes
  thoughtgate-files --root ~/notes --read-only --http 127.0.0.1:8104
  thoughtgate server add files -- thoughtgate-files --root ~/notes

{INSTRUCTIONS}"""
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    default=["."],
    metavar="DIR",
    help="A directory that may be used; repeatable. Default: the current directory.",
)
@click.option("--read-only", is_flag=True, help="Offer no write_file.")
@transport_options
def main(roots: tuple[str, ...], read_only: bool, carrier: Carrier) -> None:
    """Serve files to MCP clients, under the --root directories only."""
    tools = FileTools(sandbox=sandbox(roots), writable=not read_only).table()
    serve(tools, name="files", instructions=INSTRUCTIONS, carrier=carrier)
