"""The folder of the workers' sockets: made for one gateway, and gone with it.

Never takes away what another process still holds, or what no gateway has made.
"""

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from thoughtgate.core.errors import ConfigError

PREFIX = "thoughtgate-"
"""How the names of such folders begin."""

_LONGEST_PATH = 66
"""Bytes of the path of its place: a socket's path has 104 on some systems."""

_SOCKET = re.compile(r"(worker|servers)-[0-9]{1,2}\.sock")

_AS_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def private_folder(environ: Mapping[str, str]) -> Iterator[Path]:
    """Make a folder that only this user can look into, with a path short enough for sockets.

    Those that gateways left behind which were killed are removed.

    Raises:
        ConfigError: There is no place for one.
    """
    places = [environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"]
    for place in places:
        if not place or len(os.fsencode(place)) > _LONGEST_PATH:
            continue
        with suppress(OSError):
            _sweep(Path(place))
            folder, held = _made(place)
            break
    else:
        raise ConfigError(
            message="no folder for the workers' sockets: none can be made in XDG_RUNTIME_DIR or "
            "the folder for temporary files, or their paths are too long"
        )
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep a folder from being taken for one that was left behind.

    Raises:
        OSError: It is not there.
    """
    descriptor = os.open(folder, _AS_FOLDER)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def _made(place: str) -> tuple[Path, int]:
    """Return a new folder and the descriptor that holds it, and that nobody swept in between."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, _AS_FOLDER)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if folder.exists():
                return folder, descriptor
            os.close(descriptor)


def _sweep(place: Path) -> None:
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):  # it is not ours, or held, or gone by now
            _remove_left(folder)


def _remove_left(folder: Path) -> None:
    """Remove a folder of ours that nobody holds, if there is nothing but sockets in it.

    Raises:
        OSError: It stays.
    """
    descriptor = os.open(folder, _AS_FOLDER)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) != stat.S_IRWXU:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        left = [entry.name for entry in os.scandir(descriptor)]
        if all(map(_SOCKET.fullmatch, left)):
            for name in left:
                os.unlink(name, dir_fd=descriptor)
            folder.rmdir()
    finally:
        os.close(descriptor)
