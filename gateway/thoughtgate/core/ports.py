"""The Protocols that rooms meet through: at most four methods each, two implementations or none.

Never an implementation. What each promises is held by a contract suite under tests/contract. (Only
`Listener` stands elsewhere: beside `Call`, which holds one.)
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from thoughtgate.core.audit import AuditRow
from thoughtgate.core.calls import Call, Listener, Result
from thoughtgate.core.json import JsonObject
from thoughtgate.core.models import ModelRequest, ModelResponse
from thoughtgate.core.traces import SpanRecord

Next = Callable[[Call], Awaitable[Result]]
"""The rest of the path below a stage."""

Stage = Callable[[Call, Next], Awaitable[Result]]
"""One stage of the path: may look, change the call, refuse, or change the result."""


class Sender(Protocol):
    """Carries a resolved, checked call to its tool server. The innermost end of the path."""

    def send(self, call: Call) -> Awaitable[Result]:
        """Send once and return the server's result.

        Cancellation of the awaiting task reaches the server at once.

        Raises:
            UpstreamError: What went wrong, and whether the outcome is known.
        """
        ...


class Ties(Protocol):
    """What binds clients to tool servers beyond one call. Whoever sends calls keeps these too."""

    def leave(self, listener: Listener) -> None:
        """Forget a listener's subscriptions: it is gone. Returns at once."""
        ...

    def leave_session(self, session_id: str) -> None:
        """End the connections that this session had of its own. Returns at once."""
        ...

    def tell(self, session_id: str, method: str, params: JsonObject) -> None:
        """Pass a client's notification on over its own connections. Returns at once."""
        ...


class Recorder(Protocol):
    """Takes finished spans. Never waits and never raises: a full queue drops and counts."""

    def record(self, span: SpanRecord) -> None:
        """Take one finished span."""
        ...


class AuditLog(Protocol):
    """Takes one row per decision."""

    def append(self, row: AuditRow) -> None:
        """Queue one row; it is durable soon.

        Raises:
            StoreError: The log cannot take rows (only when audit is required).
        """
        ...

    async def flush(self) -> None:
        """Wait until every row appended so far is durable.

        Raises:
            StoreError: The rows could not be written.
        """
        ...


class ModelClient(Protocol):
    """Asks a language model."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Return one complete reply.

        Raises:
            ModelError: The model could not be asked, or its reply could not be read.
        """
        ...
