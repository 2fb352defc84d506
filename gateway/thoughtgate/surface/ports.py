"""What a surface asks of the gateway. Never an implementation: `calls.gateway` has it."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from thoughtgate.core.calls import Call, Listener, Result
from thoughtgate.core.json import JsonObject
from thoughtgate.views import View

Unwatch = Callable[[], None]

Changed = frozenset[tuple[str, str]]
"""Pairs of a domain and which of its lists changed: `tools`, `prompts` or `resources`."""


class Calls(Protocol):
    """The composed path of a call, and the views it serves."""

    def call(self, call: Call) -> Awaitable[Result]:
        """Carry one call through every stage.

        Raises:
            GateError: Why there is no result.
        """
        ...

    def view(self, domain: str) -> View:
        """Return what a domain shows now.

        Raises:
            UnknownTarget: No such domain.
        """
        ...


class Gateway(Calls, Protocol):
    """A gateway as the faces of MCP need it: calls, changes, and word of its clients."""

    def watch(self, callback: Callable[[Changed], None], /) -> Unwatch:
        """Call back with the lists that changed, on the loop; return how to stop."""
        ...

    def leave(self, listener: Listener) -> None:
        """Drop every subscription of a listener that is gone."""
        ...

    def leave_session(self, session_id: str) -> None:
        """End the connections to servers that a session had for itself."""
        ...

    def tell(self, session_id: str, method: str, params: JsonObject) -> None:
        """Pass a session's own notification on to the servers that it has a connection to."""
        ...
