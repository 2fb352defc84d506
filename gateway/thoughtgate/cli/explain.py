"""`thoughtgate explain`: the path of a call, as it stands for one tool.

Never calls the tool.
"""

import asyncio
import os
from pathlib import Path

import click

from thoughtgate.app.compose import opened
from thoughtgate.cli.output import clean, json_flag, note, show, table
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.core.domains import DEFAULT_DOMAIN


@click.command()
@click.argument("name", metavar="TOOL")
@click.option("--domain", default=DEFAULT_DOMAIN, show_default=True)
@json_flag
@click.pass_obj
def explain(chosen: Path | None, name: str, domain: str, as_json: bool) -> None:
    """Print the stages that a call of TOOL passes, in order, with what each will do."""
    value = asyncio.run(_explained(chosen, domain, name))
    head = ("STAGE", "WHAT IT DOES")
    show(value, table(head, [(clean(s), clean(d)) for s, d in value]), as_json=as_json)


async def _explained(chosen: Path | None, domain: str, name: str) -> list[tuple[str, str]]:
    async with opened(loaded_or_fail(chosen), os.environ) as app:
        app.gateway.view(domain)
        await app.ensure_listed(on_progress=note)
        return list(app.gateway.explain(domain, name))
