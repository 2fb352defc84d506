"""The allocator of a process that serves: the C library's, which gives memory back.

Never for a command that ends soon: what such a one holds goes with it.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

VARIABLE = "PYTHONMALLOC"
"""Which allocator Python takes when it starts; who sets it, or empties it, has chosen."""

_COMMAND = "serve"
_PIPE = "--stdio"
_LIBRARY = "CS_GNU_LIBC_VERSION"


def take_allocator(arguments: Sequence[str]) -> None:
    """Begin this program again with that allocator, once, when it is to serve many clients.

    The process, its files and its arguments stay. Python's own allocator keeps each megabyte as
    long as anything in it lives, so hardly any of what thousands of sessions took would be free
    for others when they have ended. Returns where it is no use, not wanted, or cannot be had.
    """
    if _COMMAND in arguments and _PIPE not in arguments and _possible(os.environ):
        environ = {**os.environ, VARIABLE: "malloc"}
        with suppress(OSError):  # then it is served as it is
            os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)


def _possible(environ: Mapping[str, str]) -> bool:
    free_threaded = "t" in sys.abiflags  # has no choice of allocators
    from_file = hasattr(sys.modules["__main__"], "__file__")  # else it cannot be begun again
    chosen = VARIABLE in environ or sys.flags.ignore_environment or sys.flags.dev_mode
    return bool(sys.executable) and from_file and not chosen and not free_threaded and _glibc()


def _glibc() -> bool:
    """Tell whether the C library is the one of which it is known that this helps."""
    try:
        return bool(os.confstr(_LIBRARY))
    except (OSError, ValueError):
        return False
