"""`thoughtgate explain`: the path of a call, as it stands for one tool.

Never calls the tool.
"""

from pathlib import Path

import click

from thoughtgate.cli import desks
from thoughtgate.cli.completing import domain_names, tool_names
from thoughtgate.cli.output import clean, json_flag, note, show, table
from thoughtgate.core.domains import DEFAULT_DOMAIN


@click.command()
@click.argument("name", metavar="TOOL", shell_complete=tool_names)
@click.option("--domain", default=DEFAULT_DOMAIN, show_default=True, shell_complete=domain_names)
@json_flag
@click.pass_obj
def explain(chosen: Path | None, name: str, domain: str, as_json: bool) -> None:
    """Print the stages that a call of TOOL passes, in order, with what each will do."""
    found = desks.tools(chosen).explained(domain, name, note)
    value = [(one.stage, one.does) for one in found.stages]
    head = ("STAGE", "WHAT IT DOES")
    show(value, table(head, [(clean(s), clean(d)) for s, d in value]), as_json=as_json)
