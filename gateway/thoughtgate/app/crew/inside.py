"""What a worker serves to the others: their requests for its sessions, and how it fares itself.

Never reached over TCP; it asks for no token, since only this user can open its socket.
"""

from collections.abc import Awaitable
from contextlib import suppress

import msgspec

from thoughtgate.app.admin import Desk
from thoughtgate.app.reloading import reload
from thoughtgate.core.errors import GateError, UpstreamError
from thoughtgate.core.servers import StdioTransport
from thoughtgate.surface.admin import App as Asgi
from thoughtgate.surface.http_io import Receive, Scope, Send, respond

_OWN = "/crew/"
"""How the paths begin that are this worker's own; no client's request that is sent on has one."""

_TEXT = ((b"content-type", b"text/plain; charset=utf-8"),)


class Inside:
    """The ASGI application of a private socket; `forwarded` takes what other workers send on."""

    def __init__(self, forwarded: Asgi, desk: Desk) -> None:
        self._forwarded = forwarded
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        path: str = scope["path"]
        if path.startswith(_OWN):
            await self._do(scope["method"], path.removeprefix(_OWN).split("/"), send)
        else:
            await self._forwarded(scope, receive, send)

    async def _do(self, method: str, what: list[str], send: Send) -> None:
        app = self._desk.app
        match method, what:
            case "GET", ["status"]:
                await respond(send, 200, msgspec.json.encode(self._desk.worker()))
            case "POST", ["reload"]:
                await _done(reload(app.keeper, self._desk.environ), send)
            case "POST", ["refresh"]:
                await _done(app.keeper.refresh(), send)
            case "POST", ["flush"]:
                await _done(app.audit.flush(), send)
            case "POST", ["restart", server] if self._has_own(server):
                await _done(self._listed(app.upstreams.restart(server)), send)
            case "POST", ["check" | "restart", server]:
                await _done(self._listed(app.upstreams.discover(server)), send)
            case _:
                await respond(send, 404, b"no such operation", _TEXT)

    def _has_own(self, server: str) -> bool:
        """Tell whether each worker has connections of its own to a server.

        A child runs in one worker for all: it was restarted when the first was told.
        """
        found = (one for one in self._desk.app.keeper.servers if one.name == server)
        return not any(isinstance(one.transport, StdioTransport) for one in found)

    async def _listed(self, listing: Awaitable[object]) -> None:
        with suppress(UpstreamError):  # its state tells, and who was asked first says why
            await listing
        await self._desk.app.keeper.settle()


async def _done(work: Awaitable[object], send: Send) -> None:
    """Answer when something is done, or say why it is not."""
    try:
        await work
    except GateError as error:
        await respond(send, 409, error.message.encode(), _TEXT)
    else:
        await respond(send, 200, b"done", _TEXT)
