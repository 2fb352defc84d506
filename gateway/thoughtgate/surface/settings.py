"""What the faces of MCP are told once, when they are built. Never read from the environment."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from thoughtgate.core.calls import LOCAL, Principal
from thoughtgate.core.json import JsonObject
from thoughtgate.core.workers import ALONE, Crew
from thoughtgate.surface.health import Probe, Silent
from thoughtgate.surface.http_guard import HostRules
from thoughtgate.surface.http_io import Headers
from thoughtgate.wire.strict import MAX_REQUEST


def everybody_is_local(headers: Headers) -> Principal:
    """Return the one principal of a gateway without authentication."""
    del headers
    return LOCAL


@dataclass(frozen=True, slots=True, kw_only=True)
class FaceSettings:
    """Limits and identity of a face; times are seconds, sizes bytes.

    `seal_key` seals what clients keep for us, such as session ids: with a key that lasts, they
    survive a restart, unless the file `ended` says that their client has ended them. `info` is our
    `serverInfo`. `page_size` is items per page. `call_timeout` bounds a call beyond the tool's own.
    `body_timeout` is how long a body may take to arrive, `keepalive` how long a stream may be
    silent. `max_streams` counts the streams that belong to no request, subscriptions too.
    `identify` tells who sent a request, `probe` whether the gateway is ready for any. `crew` are
    the workers of the gateway, this one among them; `silent` tells which others do not answer.
    """

    info: JsonObject
    page_size: int = 100
    call_timeout: float = 120.0
    max_body: int = MAX_REQUEST
    body_timeout: float = 15.0
    keepalive: float = 15.0
    max_streams: int = 1024
    max_running: int = 1024
    hosts: HostRules = field(default_factory=HostRules)
    seal_key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    ended: Path | None = None
    identify: Callable[[Headers], Principal] = everybody_is_local
    probe: Probe | None = None
    crew: Crew = ALONE
    silent: Silent | None = None
