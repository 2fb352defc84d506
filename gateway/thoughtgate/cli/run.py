"""`thoughtgate run`: hand a task to a reasoning engine."""

import click


@click.group()
def run() -> None:
    """Hand tasks to a reasoning engine."""
