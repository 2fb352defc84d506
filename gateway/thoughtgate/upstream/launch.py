"""Runs a command that shall not outlive the process which asked for it (Linux only).

Never imported by the gateway: it is run by its path in an empty interpreter and replaced by exec.
A `preexec_fn` would do the same inside a fork of a process with threads, where it may deadlock.
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: str, files: str, *argv: str) -> None:
    """Ask the kernel for SIGTERM when `parent` dies, then become `argv`, with `files` open ones.

    The gateway may have more for itself; a program that uses `select` means the usual number.
    Nothing but the three pipes is handed on: uvloop leaves a second end of each open, and of those
    of children that start at the same moment, so that nobody would notice when one is closed.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it died before the kernel knew
        sys.exit(1)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(files), hard))
    os.closerange(3, 1 + max(map(int, os.listdir("/proc/self/fd"))))
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"cannot run {argv[0]}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main(*sys.argv[1:])
