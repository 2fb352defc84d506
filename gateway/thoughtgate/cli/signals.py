"""Signals to end: a call that runs is cancelled, and the tool server told, before we end.

Never leaves a handler behind.
"""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from thoughtgate.cli.output import note

T = TypeVar("T")


async def interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; SIGINT and SIGTERM cancel it.

    Raises:
        click.Abort: It was interrupted.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise click.Abort from None
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@contextmanager
def ended_early() -> Iterator[None]:
    """End well when a signal comes before what serves takes it over: there is nothing to cancel."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except (click.Abort, KeyboardInterrupt):
        note("told to stop before anything was served")
    finally:
        signal.signal(signal.SIGTERM, before)
