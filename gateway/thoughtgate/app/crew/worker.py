"""One worker of several: the gateway as ever, but its clients come from the parent.

Never listens where anybody but this user's other workers can reach it.
"""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, closing, contextmanager, suppress
from typing import Any

import uvicorn

from thoughtgate.app.admin import Desk
from thoughtgate.app.colleagues import Colleagues
from thoughtgate.app.compose import opened
from thoughtgate.app.crew.folder import held
from thoughtgate.app.crew.inside import Inside
from thoughtgate.app.crew.line import Line
from thoughtgate.app.crew.orders import Order, Told
from thoughtgate.app.grpc_face import faces
from thoughtgate.app.reloading import Reloader
from thoughtgate.app.serving import (
    Say,
    Server,
    admin_face,
    expiring,
    face_settings,
    first_listings,
    keep_for_good,
    sessions_of,
    uvicorn_config,
)
from thoughtgate.app.trimming import giving_back, trimmer
from thoughtgate.config.files import Loaded
from thoughtgate.core.workers import Crew
from thoughtgate.surface.admin import Front
from thoughtgate.surface.mcp_http import McpFront

_BACKLOG = 1024


async def serve_worker(
    loaded: Loaded, environ: Mapping[str, str], crew: Crew, end: socket.socket, say: Say
) -> None:
    """Serve what the parent hands over at the other end of a line, until it says to stop.

    Raises:
        GateError: The gateway cannot be composed.
    """
    with closing(Line(end)) as line:
        await line.until(Order.BEGIN)
        if not line.stopping:
            await _serve(loaded, environ, crew, line, say)


async def _serve(
    loaded: Loaded, environ: Mapping[str, str], crew: Crew, line: Line, say: Say
) -> None:
    async with AsyncExitStack() as ending:
        private = ending.enter_context(_private(crew))
        app = await ending.enter_async_context(opened(loaded, environ, crew))
        sessions = sessions_of(app)
        face = await asyncio.to_thread(face_settings, app)
        front = McpFront(app.gateway, sessions, face)
        both = await ending.enter_async_context(faces(app, front, face))
        colleagues = Colleagues(crew)
        admin = await asyncio.to_thread(admin_face, app, sessions, environ, colleagues)
        reloader = await ending.enter_async_context(aclosing(Reloader(app.keeper, environ, say)))
        desk = Desk(app=app, sessions=sessions, environ=environ)
        inside = Inside(front.forwarded, desk)
        server = _WorkerServer(
            uvicorn_config(app, Front(front, admin)), both, app, _quiet, reloader.begin
        )

        async def first() -> None:
            await first_listings(app, say)
            await both.open()

        server.attach(line, private, uvicorn_config(app, inside), first)
        ending.enter_context(expiring(app, sessions))
        ending.enter_context(giving_back(sessions, trimmer()))
        await server.serve(sockets=[])


class _WorkerServer(Server):
    """The server of connections that the parent hands over, and of the other workers."""

    def attach(
        self,
        line: Line,
        private: socket.socket,
        inside: uvicorn.Config,
        first: Callable[[], Any],
    ) -> None:
        """Say where connections come from; `first` is waited for before any is taken."""
        self._line = line
        self._private = private
        self._inside = inside
        self._first = first
        self._arriving: set[asyncio.Task[None]] = set()
        self._ordered = False
        self._full = False

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal too, but at once only by the parent's order.

        Who ends a service sends it to every process of it, and the parent orders the same.
        """
        loop = asyncio.get_running_loop()
        with super().capture_signals():
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._stop_once)
            yield

    def _stop_once(self) -> None:
        if not self.told:
            self.stop()

    def _stop_by_order(self) -> None:
        again, self._ordered = self._ordered, True
        if again or not self.told:
            self.stop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Be there for the other workers, and when all are, for clients."""
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        self._inside.load()
        listening = await loop.create_unix_server(
            lambda: self._protocol(self._inside), sock=self._private, backlog=_BACKLOG
        )
        self.servers.append(listening)
        self._line.tell(Told.OPEN)
        await self._line.until(Order.LIST)
        if not self._line.stopping:
            await self._listed()
        keep_for_good()
        self._line.follow(take=self._take, reload=self._reload, stop=self._stop_by_order)
        self._line.tell(Told.READY)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take nobody new, and stop as ever."""
        self._full = True
        if self._arriving:
            await asyncio.wait(self._arriving)
        await super().shutdown(sockets)

    async def _listed(self) -> None:
        """Ask servers for their first lists, unless told to stop meanwhile."""
        listing = asyncio.ensure_future(self._first())
        stopped = asyncio.ensure_future(self._line.until(Order.STOP))
        await asyncio.wait([listing, stopped], return_when=asyncio.FIRST_COMPLETED)
        for task in (listing, stopped):
            task.cancel()
        await asyncio.wait([listing, stopped])
        if not listing.cancelled():
            listing.result()

    def _take(self, client: socket.socket) -> None:
        if self._full:
            client.close()
            return
        task = asyncio.get_running_loop().create_task(self._taken(client))
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    async def _taken(self, client: socket.socket) -> None:
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        with suppress(OSError):  # who connected has left already
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.connect_accepted_socket(lambda: self._protocol(self.config), client)
            return
        client.close()

    def _protocol(self, config: uvicorn.Config) -> asyncio.Protocol:
        """Return what serves one connection; all are counted alike when the server stops."""
        made: Any = config.http_protocol_class
        protocol: asyncio.Protocol = made(
            config=config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol


@contextmanager
def _private(crew: Crew) -> Iterator[socket.socket]:
    """Listen for the other workers; a place that an earlier one of this number left is taken."""
    path = crew.socket(crew.index)
    path.unlink(missing_ok=True)
    with held(path.parent), closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as private:
        private.bind(str(path))
        path.chmod(0o600)  # nobody can connect before it listens
        private.setblocking(False)
        try:
            yield private
        finally:
            for left in (path, crew.door(crew.index)):
                left.unlink(missing_ok=True)
            with suppress(OSError):  # the parent removes the folder, unless it was lost
                path.parent.rmdir()


def _quiet() -> None:
    """Say nothing: the parent does when all serve."""
