"""Exit codes: what a script can tell from how a command ended.

Never prints; `root` turns an error into its message and one of these.
"""

from enum import IntEnum

from thoughtgate.core.errors import (
    CallerError,
    ConfigError,
    GateError,
    Refused,
    StoreError,
    UpstreamError,
)


class Exit(IntEnum):
    """How a command ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UPSTREAM = 3
    STORE = 4
    REFUSED = 5
    INTERRUPTED = 130


_BY_ERROR: tuple[tuple[type[GateError], Exit], ...] = (
    (Refused, Exit.REFUSED),
    (CallerError, Exit.USAGE),
    (ConfigError, Exit.USAGE),
    (UpstreamError, Exit.UPSTREAM),
    (StoreError, Exit.STORE),
)


def code_of(error: GateError) -> Exit:
    """Return the exit code that stands for `error`."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.FAILED)
