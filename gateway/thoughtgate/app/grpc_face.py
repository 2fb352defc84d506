"""The gRPC face in a running gateway: made where it is switched on, ended with the other face.

Never imports gRPC where it is off: that would cost every start its time.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from thoughtgate.app.compose import App
from thoughtgate.app.grpc_port import grpc_target
from thoughtgate.app.listening import room
from thoughtgate.surface.settings import FaceSettings

if TYPE_CHECKING:
    from thoughtgate.surface.grpc.serving import GrpcFace

_SERVING = "thoughtgate.surface.grpc.serving"

_SHARE = 4
"""One part in so many of the files that clients may have open is for those over gRPC."""

_MOST = 1_024


class Ending(Protocol):
    """A face as a server that stops sees it."""

    def drain(self) -> None:
        """Say that the gateway takes nothing new; go on with everything else."""
        ...

    def close(self) -> None:
        """End every stream that would last."""
        ...


class Faces:
    """The face of MCP and, where it is on, that of gRPC: they stop as one."""

    def __init__(self, front: Ending, app: App, face: "GrpcFace | None") -> None:
        self._front = front
        self._app = app
        self._face = face
        self._stopping: asyncio.Future[None] | None = None

    async def open(self) -> None:
        """Listen for clients over gRPC.

        Raises:
            ConfigError: The port cannot be had.
        """
        if self._face is not None:
            await self._face.open(grpc_target(self._app.loaded))

    def drain(self) -> None:
        """Say that the gateway takes nothing new; go on with everything else."""
        self._front.drain()
        if self._face is not None:
            self._face.drain()

    def close(self) -> None:
        """End the streams of both; calls over gRPC have the grace from now on."""
        self._front.close()
        if self._face is not None and self._stopping is None:
            grace = self._app.loaded.settings.gateway.grace
            wait = partial(self._app.hurry.wait, seconds=grace)
            self._stopping = asyncio.ensure_future(self._face.stop(wait))

    async def closed(self) -> None:
        """Return when the gRPC face has ended."""
        self.close()
        if self._stopping is not None:
            await self._stopping


@asynccontextmanager
async def faces(app: App, front: Ending, settings: FaceSettings) -> AsyncIterator[Faces]:
    """Give both faces for the length of the block; gRPC listens when it is opened."""
    made = Faces(front, app, _face(app, settings))
    try:
        yield made
    finally:
        await made.closed()


def _face(app: App, settings: FaceSettings) -> "GrpcFace | None":
    gateway = app.loaded.settings.gateway
    if gateway.grpc_port is None:
        return None
    probe = settings.probe

    async def ready() -> bool:
        return probe is None or (await probe()).unready is None

    face: GrpcFace = import_module(_SERVING).GrpcFace(
        app.gateway,
        settings,
        ready=ready if gateway.grpc_health else None,
        reflection=gateway.grpc_reflection,
        connections=max(min(room().clients // _SHARE, _MOST), 1),
    )
    return face
