"""The pace of a run: how long clients and disturbances rest, as the dice say.

Never used by a test: tests wait for events.
"""

import asyncio


async def rest(seconds: float) -> None:
    """Do nothing for some seconds."""
    await asyncio.sleep(seconds)
