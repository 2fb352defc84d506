"""Serving: the composed gateway behind HTTP or on standard input and output, until told to stop.

Never listens beyond loopback; the configuration has been held to that.
"""

import asyncio
import gc
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, contextmanager
from functools import partial
from hashlib import sha256

import uvicorn

from thoughtgate.app.admin import Desk
from thoughtgate.app.admin_routes import ROUTES
from thoughtgate.app.admin_token import TOKEN_FILE, ensured_token
from thoughtgate.app.colleagues import NOBODY, Colleagues
from thoughtgate.app.compose import VERSION, App, opened
from thoughtgate.app.grpc_face import Ending, faces
from thoughtgate.app.grpc_port import grpc_address, grpc_reserved
from thoughtgate.app.listening import address, bound, listen, room
from thoughtgate.app.presence import presence_of, present, say_where
from thoughtgate.app.readiness import Prober
from thoughtgate.app.reloading import Reloader
from thoughtgate.app.requests import view_of
from thoughtgate.app.trimming import giving_back, keep_for_large, trimmer
from thoughtgate.config.files import Loaded
from thoughtgate.sessions import SessionLimits, Sessions
from thoughtgate.surface.admin import AdminFace, AdminSettings, Front
from thoughtgate.surface.admin import App as Asgi
from thoughtgate.surface.http_guard import LOOPBACK, HostRules
from thoughtgate.surface.http_protocol import TimedHttpProtocol
from thoughtgate.surface.mcp_http import McpFront
from thoughtgate.surface.mcp_stdio import serve_stdio
from thoughtgate.surface.settings import FaceSettings
from thoughtgate.surface.stdio_pipes import claimed_stdio

Say = Callable[[str], None]

PARTING = 1.0
"""Seconds beyond the grace in which cancelled calls are answered and servers end."""

ANSWERING = 0.2
"""The part of it that cancelled calls still have when everything must end at once."""

PIPE_GRACE = 10.0
"""Seconds that calls may still take when a client on a pipe has closed its end."""

SUBSCRIPTIONS = 2_048
"""Streams of subscriptions, beside the one that each session may hold."""

SEAL_FILE = "clients.token"
"""Its name in the state folder."""

ENDED_FILE = "clients.ended"
"""The file in the state folder that names sessions which their clients have ended."""

_LONGEST_PAUSE = 30.0
"""Seconds between two looks for sessions that rested too long."""

_COLLECT_AT = 20_000
"""Objects that stay before the collector looks for cycles among them: some megabytes."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

INFO = {"name": "thoughtgate", "title": "thoughtgate", "version": VERSION}


async def serve_http(loaded: Loaded, environ: Mapping[str, str], say: Say) -> None:
    """Serve HTTP until SIGTERM or SIGINT; a second signal stops at once.

    Until it listens, the signals are the caller's to handle: cancelling ends it cleanly.

    Raises:
        GateError: The gateway cannot be composed, or the port is taken.
    """
    with bound(loaded) as listening, grpc_reserved(loaded) as settled:
        async with opened(settled, environ) as app:
            sessions = sessions_of(app)
            admin = await asyncio.to_thread(admin_face, app, sessions, environ)
            await first_listings(app, say)
            face = await asyncio.to_thread(face_settings, app)
            front = McpFront(app.gateway, sessions, face)
            here = presence_of(address(listening), VERSION, grpc=grpc_address(settled))
            async with (
                aclosing(Reloader(app.keeper, environ, say)) as reloader,
                faces(app, front, face) as both,
            ):
                await both.open()
                keep_for_good()
                served = uvicorn_config(app, Front(front, admin))
                ready = partial(say_where, here, say)
                server = Server(served, both, app, ready, reloader.begin)
                with (
                    present(loaded.home, here),
                    expiring(app, sessions),
                    giving_back(sessions, trimmer()),
                ):
                    listen(listening)
                    await server.serve(sockets=[listening])


async def serve_pipe(loaded: Loaded, environ: Mapping[str, str], domain: str, say: Say) -> None:
    """Serve one client on standard input and output until it closes its end.

    Raises:
        GateError: The gateway cannot be composed, or there is no such domain.
    """
    async with AsyncExitStack() as ending:
        pipe = await ending.enter_async_context(claimed_stdio())
        app = await ending.enter_async_context(opened(loaded, environ))
        ending.enter_context(present(loaded.home, presence_of("", VERSION)))
        view_of(app.gateway, domain)
        await first_listings(app, say)
        keep_for_good()
        face = await asyncio.to_thread(face_settings, app)
        serving = asyncio.ensure_future(
            serve_stdio(app.gateway, sessions_of(app), domain, pipe, face, PIPE_GRACE)
        )
        loop = asyncio.get_running_loop()

        def stop() -> None:
            if not serving.cancel() or serving.cancelling() > 1:
                app.hurry.within(0)

        for number in _SIGNALS:
            loop.add_signal_handler(number, stop)
        await asyncio.wait([serving])
        if not serving.cancelled():
            serving.result()


class Server(uvicorn.Server):
    """uvicorn's server; its streams end when it is told to stop, or it would wait for them."""

    def __init__(
        self,
        config: uvicorn.Config,
        front: Ending,
        app: App,
        ready: Callable[[], None],
        reload: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._front = front
        self._gateway = app.loaded.settings.gateway
        self._hurry = app.hurry
        self.told = False
        self._ready = ready
        self._reload = reload

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM or SIGINT, at once at the second; uvicorn's own would end the process.

        They are still heard when it has stopped: servers and traces have to end after it. SIGHUP
        reads the configuration again.
        """
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        try:
            yield
        finally:
            loop.add_signal_handler(signal.SIGHUP, _ignore)

    def stop(self) -> None:
        """Stop after the time for draining; the second time at once."""
        if self.told:
            self._hurry.within(0)
            self.force_exit = self.should_exit = True
            return
        self.told = True
        self._front.drain()
        delay = self._gateway.drain_delay
        self._hurry.within(delay + self._gateway.grace + PARTING)
        asyncio.get_running_loop().call_later(delay, setattr, self, "should_exit", True)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept, then say so: whoever hears it may connect, or tell us to stop."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, end the streams, let calls in flight finish, cancel those that do not.

        Those are waited for: what they tell of their end must find the audit log and the exporter.
        """
        self._front.close()
        await super().shutdown(sockets)
        rest = list(self.server_state.tasks)
        for task in rest:
            if not task.cancelling():
                task.cancel()
        if rest:
            parting = asyncio.ensure_future(asyncio.wait(rest))
            await self._hurry.wait(parting, PARTING, spare=-ANSWERING)
            parting.cancel()


def _ignore() -> None:
    """Do nothing: it is too late to read the configuration again."""


async def first_listings(app: App, say: Say) -> None:
    """Start every server; wait a little for those never seen, so that a first list is whole.

    What becomes of those that are still asked when everything ends is not said.
    """

    def tell(text: str) -> None:
        if not app.hurry.begun:
            say(text)

    every = [server.name for server in app.keeper.servers if server.enabled]
    new = set(app.keeper.unlisted())
    known = [name for name in every if name not in new]
    app.keeper.begin_discovery(known, tell)
    waiting = app.keeper.begin_discovery(sorted(new), tell)
    await asyncio.wait([waiting], timeout=app.loaded.settings.gateway.list_wait)


def keep_for_good() -> None:
    """Tell the collector that what was made so far stays, and to look for cycles less often.

    Each took a tenth of a call's time. Spans and rows wait by the thousand to be written, which
    looks like a leak to it, and are gone a moment later.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AT, *gc.get_threshold()[1:])
    keep_for_large()


def sessions_of(app: App) -> Sessions:
    """Return the place of sessions, which is empty."""
    limits = app.loaded.settings.limits
    return Sessions(
        clock=asyncio.get_running_loop().time,
        limits=SessionLimits(cap=limits.sessions, idle_timeout=limits.session_idle),
    )


@contextmanager
def expiring(app: App, sessions: Sessions) -> Iterator[None]:
    """End sessions that rested too long, also when nobody new comes: they hold connections."""
    pause = min(app.loaded.settings.limits.session_idle / 4, _LONGEST_PAUSE)

    async def expire() -> None:
        while True:
            await asyncio.sleep(pause)
            sessions.expire()

    task = asyncio.get_running_loop().create_task(expire())
    try:
        yield
    finally:
        task.cancel()


def admin_face(
    app: App, sessions: Sessions, environ: Mapping[str, str], others: Colleagues = NOBODY
) -> AdminFace[Desk] | None:
    """Return the face of the admin API, None when it is switched off."""
    if app.loaded.settings.gateway.admin == "off":
        return None
    desk = Desk(app=app, sessions=sessions, environ=environ, others=others)
    settings = AdminSettings(
        token=ensured_token(app.loaded.home / TOKEN_FILE),
        version=VERSION,
        hosts=_hosts(app),
        max_body=app.loaded.settings.limits.request_bytes,
        intents=app.loaded.settings.gateway.audit == "required",
    )
    return AdminFace(ROUTES, desk, desk.revision, app.audit, settings)


def _hosts(app: App) -> HostRules:
    gateway = app.loaded.settings.gateway
    return HostRules(
        hosts=LOOPBACK | {host.lower() for host in gateway.allowed_hosts},
        origins=frozenset(origin.lower() for origin in gateway.allowed_origins),
    )


def _seal_key(app: App) -> bytes:
    """Return the key for what clients keep for us; it lasts, so sessions outlive a restart."""
    token = ensured_token(app.loaded.home / SEAL_FILE)
    return sha256(token.encode()).digest()


def face_settings(app: App) -> FaceSettings:
    """Return the settings of a face; reading the key may take its time."""
    limits = app.loaded.settings.limits
    return FaceSettings(
        info=INFO,
        seal_key=_seal_key(app),
        ended=app.loaded.home / ENDED_FILE,
        page_size=limits.page_size,
        max_streams=limits.sessions + SUBSCRIPTIONS,
        max_body=limits.request_bytes,
        call_timeout=86_400.0,
        hosts=_hosts(app),
        crew=app.crew,
        silent=Colleagues(app.crew).silent if app.crew.count > 1 else None,
        probe=Prober(
            app.keeper,
            app.registry,
            app.upstreams,
            budget=app.loaded.settings.gateway.ready_within,
        ),
    )


def uvicorn_config(app: App, front: Asgi) -> uvicorn.Config:
    """Return how uvicorn serves an ASGI application of ours."""
    seats = room()
    return uvicorn.Config(
        front,
        interface="asgi3",
        loop="none",
        http=TimedHttpProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        limit_concurrency=seats.clients,
        backlog=seats.backlog,
        timeout_graceful_shutdown=app.loaded.settings.gateway.grace,
    )
