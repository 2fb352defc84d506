"""What can go wrong, one class per decision that a caller can take.

Never a class of the SDK: whoever catches these needs to know nothing else.

    GateError
    ├── Unreachable      no connection could be made: check the address, start the gateway
    ├── ConnectionLost   it broke while in use: the outcome of calls under way is unknown
    ├── TimedOut         no answer in time: the outcome is unknown
    ├── Refused          the server rejected the request; the same request fails again
    ├── ToolFailed       the tool ran and failed; carries its result
    └── Garbled          the answer breaks the protocol or the tool's own output schema
"""

from typing import Any

from thoughtgate_client.values import ToolResult


class GateError(Exception):
    """Everything that this library raises on purpose. `message` says what, which, what to do."""

    def __init__(self, *, message: str) -> None:
        super().__init__(message)
        self.message = message


class Unreachable(GateError):
    """No connection could be made."""


class ConnectionLost(GateError):
    """The connection broke; what was under way may or may not have happened."""


class TimedOut(GateError):
    """No answer within the time; the server was told to stop, and may have acted before."""


class Refused(GateError):
    """The server answered with a protocol error: an unknown tool, a request it does not take."""

    def __init__(self, *, message: str, code: int, data: Any = None) -> None:
        super().__init__(message=message)
        self.code = code
        self.data = data


class ToolFailed(GateError):
    """The tool's result says that it failed; arguments that break its schema come here too."""

    def __init__(self, *, message: str, result: ToolResult) -> None:
        super().__init__(message=message)
        self.result = result


class Garbled(GateError):
    """The server's answer cannot be used."""
