"""How servers stand right now: each is connected to, asked for its tools, and ended again.

Never changes the registry beyond what discovery records.
"""

import asyncio
import os
from collections.abc import Mapping

from thoughtgate.app.compose import opened
from thoughtgate.app.keeper import Progress
from thoughtgate.config.files import Loaded
from thoughtgate.core.servers import UpstreamStatus


def probed(loaded: Loaded, on_progress: Progress) -> Mapping[str, UpstreamStatus]:
    """Connect to every enabled server and return how it stands, by name."""
    return asyncio.run(_probed(loaded, on_progress))


async def _probed(loaded: Loaded, on_progress: Progress) -> Mapping[str, UpstreamStatus]:
    async with opened(loaded, os.environ) as app:
        await app.ensure_listed(on_progress=on_progress, refresh=True)
        return {status.server: status for status in app.upstreams.statuses()}
