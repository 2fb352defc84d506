"""What a tool function may know of the call that it answers.

Never tells a caller anything who has left.
"""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import wait
from typing import Any

from thoughtgate_servers.table import Request

_LOOK = 0.2
"""Seconds between two looks whether the caller still waits."""


class GivenUp(Exception):
    """The caller has left: a plain function stops by letting this through."""


class Call:
    """The call under way; a function gets it by a parameter of this type."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._over = threading.Event()

    @property
    def call_id(self) -> str:
        """Return the caller's name for the call, the same when it is sent again; may be empty."""
        return self._request.call_id

    @property
    def meta(self) -> Mapping[str, Any]:
        """Return what else the caller said."""
        return self._request.meta

    @property
    def over(self) -> bool:
        """Say whether the caller has left; plain functions that work for long look now and then."""
        return self._over.is_set()

    async def progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the caller how far the call is; in a coroutine."""
        await self._request.progress(done, total, message)

    def report(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the caller how far the call is; in a plain function, which runs on a thread.

        Raises:
            GivenUp: The caller has left.
        """
        if self._over.is_set():
            raise GivenUp
        told = asyncio.run_coroutine_threadsafe(self.progress(done, total, message), self._loop)
        while not wait([told], timeout=_LOOK).done:
            # a slow reader holds the tool up, one that has left must not
            if self._over.is_set():
                told.cancel()
                raise GivenUp
        told.result()

    def end(self) -> None:
        """Say that nobody waits any longer."""
        self._over.set()
