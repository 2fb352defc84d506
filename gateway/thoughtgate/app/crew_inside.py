"""What a worker serves to the other workers: an ASGI application for its private socket alone.

Never reached over TCP: whoever can open the socket is the user that the gateway runs as.
"""

from collections.abc import Mapping

from thoughtgate.surface.admin import App as Asgi
from thoughtgate.surface.http_io import Receive, Scope, Send


class Inside:
    """Gives the paths under a mount's prefix to it, everything else to `rest`."""

    def __init__(self, rest: Asgi, mounts: Mapping[str, Asgi]) -> None:
        self._rest = rest
        self._mounts = dict(mounts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        first = scope["path"].lstrip("/").partition("/")[0]
        app = self._mounts.get(f"/{first}/", self._rest)
        await app(scope, receive, send)
