"""Session ids that an earlier process of this gateway gave, understood by the next one.

Never lets an ended session of this process return, nor one of another principal or domain.
"""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from thoughtgate.core.calls import Principal
from thoughtgate.core.workers import ALONE, Crew
from thoughtgate.surface.ended import EndedSessions
from thoughtgate.surface.holders import marked, unmarked
from thoughtgate.surface.seals import Seal
from thoughtgate.wire.handshake import VERSIONS, Hello
from thoughtgate.wire.strict import dumps

LIFETIME: Final = 86_400.0
"""Seconds for which a session may be taken up again after it was opened."""

LARGEST: Final = 4_096
"""Bytes of what a client said of itself that still go into its session's id."""

_REMEMBERED: Final = 10_000
_RANDOM: Final = 24


class Comebacks:
    """Makes session ids and opens those of earlier processes; `clock` is the time of day.

    `ended` is the file of the sessions that clients have ended.
    """

    def __init__(
        self,
        key: bytes,
        *,
        crew: Crew = ALONE,
        clock: Callable[[], float] = time.time,
        ended: Path | None = None,
    ) -> None:
        self._seal = Seal(key, "session")
        self._crew = crew
        self._clock = clock
        self._epoch = secrets.token_hex(8)
        self._returned: set[str] = set()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._buried = EndedSessions(ended, lifetime=LIFETIME, clock=clock)

    def new_id(self, hello: Hello, principal: Principal, domain: str) -> str:
        """Return an id that holds the session, or a random one when it would be too long."""
        value: dict[str, Any] = {
            "epoch": self._epoch,
            "worker": None if self._crew.count == 1 else self._crew.index,
            "at": self._clock(),
            "principal": principal.id,
            "domain": domain,
            "version": hello.version,
            "client": hello.client,
            "capabilities": hello.capabilities,
        }
        if len(dumps(value)) > LARGEST:
            return marked(secrets.token_urlsafe(_RANDOM), self._crew)
        return marked(self._seal.seal(value), self._crew)

    def open(self, session_id: str, principal: Principal, domain: str) -> Hello | None:
        """Return what the client of a session said, None when it may not be taken up here.

        Its log level and its subscriptions are lost.
        """
        worker, sealed = unmarked(session_id)
        value = self._seal.open(sealed)
        if value is None or session_id in self._ended or value["epoch"] == self._epoch:
            return None
        # under another mark, or none, it would live twice
        if value.get("worker") != worker:
            return None
        if (value["principal"], value["domain"]) != (principal.id, domain):
            return None
        if not 0 <= self._clock() - value["at"] < LIFETIME or value["version"] not in VERSIONS:
            return None
        if session_id in self._buried:
            return None
        self._returned.add(session_id)
        return Hello(
            version=value["version"], client=value["client"], capabilities=value["capabilities"]
        )

    def bury(self, session_id: str) -> None:
        """Remember that a client has ended its session: no later process takes it up either."""
        self._buried.add(session_id)

    def end(self, session_id: str) -> None:
        """Remember that a session has ended here: it does not come back.

        One that was opened here cannot anyhow: its id says so.
        """
        if session_id not in self._returned:
            return
        self._returned.discard(session_id)
        self._ended[session_id] = None
        if len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
