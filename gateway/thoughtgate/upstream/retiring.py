"""The end of what was replaced or removed: first its calls, then itself.

Never waits for calls without end.
"""

import asyncio
from typing import Protocol

GRACE = 30.0
"""Seconds that calls in flight may take to end when their connection is replaced."""


class Retiring(Protocol):
    """Something that calls may be in flight on."""

    async def quiet(self) -> None:
        """Return when no call is in flight."""
        ...

    async def aclose(self) -> None:
        """End it."""
        ...


async def retire(what: Retiring) -> None:
    """Let calls in flight end, then close."""
    try:
        async with asyncio.timeout(GRACE):
            await what.quiet()
    except TimeoutError:
        pass
    finally:
        await what.aclose()
