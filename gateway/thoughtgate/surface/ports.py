"""What a surface asks of the gateway. Never an implementation: `calls.gateway` has it."""

from collections.abc import Callable
from typing import Protocol

from thoughtgate.core.calls import Call, Result
from thoughtgate.views import View

Unwatch = Callable[[], None]


class Gateway(Protocol):
    """The composed path of a call, and the views it serves."""

    async def call(self, call: Call) -> Result:
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

    def watch(self, callback: Callable[[frozenset[str]], None], /) -> Unwatch:
        """Call back with the domains whose views changed, on the loop; return how to stop."""
        ...
