"""Ctrl-C while a call runs: the call is cancelled, and the tool server told, before we end.

Never leaves the handler behind.
"""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

import click

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
