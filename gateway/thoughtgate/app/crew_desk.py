"""What a worker answers to the others: how it fares, and that it has read its settings again.

Never reached over TCP; it asks for no token, since only this user can open its socket.
"""

import msgspec

from thoughtgate.app.admin import Desk
from thoughtgate.app.reloading import reload
from thoughtgate.core.errors import GateError
from thoughtgate.surface.http_io import Receive, Scope, Send, respond


class CrewDesk:
    """The ASGI application under `/crew/`."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        del receive
        match scope["method"], scope["path"]:
            case "GET", "/crew/status":
                await respond(send, 200, msgspec.json.encode(self._desk.worker()))
            case "POST", "/crew/reload":
                await self._reload(send)
            case _:
                await respond(send, 404, b'"no such operation"')

    async def _reload(self, send: Send) -> None:
        try:
            done = await reload(self._desk.app.keeper, self._desk.environ)
        except GateError as error:
            await respond(send, 409, error.message.encode(), ((b"content-type", b"text/plain"),))
            return
        await respond(send, 200, msgspec.json.encode(done))
