"""The directories that a server may touch, and the only way it opens anything in them.

Never follows a link at the moment of opening: a path is resolved, held against the roots, then
walked from the root's descriptor one name at a time without following links, so that a name that
is swapped for a link in between is refused rather than followed.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from thoughtgate_servers.table import ToolFailed

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_PATH = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A path inside a root: the root, and the names that lead from it; no link among them."""

    root: Path
    names: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Return the absolute path."""
        return self.root.joinpath(*self.names)


class Sandbox:
    """A set of root directories.

    Relative paths are tried under each root in order; absolute ones must lie under one. Links may
    point to another place under the roots, never out of them; `..` is refused as text.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(Path(os.path.realpath(root)) for root in roots)
        for root in self.roots:
            if not root.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(root))

    def place(self, given: str) -> Place:
        """Return where `given` lies.

        Raises:
            ToolFailed: It is not a usable path, or lies outside the roots.
        """
        _refuse_odd(given)
        if Path(given).is_absolute():
            return self._inside(Path(given), given)
        places = [self._inside(root / given, given) for root in self.roots]
        for place in places:
            if place.path.exists():
                return place
        return places[0]

    def _inside(self, path: Path, given: str) -> Place:
        real = Path(os.path.realpath(path))
        for root in self.roots:
            if real.is_relative_to(root):
                return Place(root=root, names=real.relative_to(root).parts)
        raise ToolFailed(message=f"outside the allowed directories: {_shown(given)}")

    @contextmanager
    def directory(self, place: Place) -> Iterator[int]:
        """Open the directory at `place` and yield its descriptor."""
        descriptor = os.open(place.root, _DIRECTORY)
        try:
            for name in place.names:
                inner = _step(name, descriptor, place)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def open_file(self, place: Place) -> int:
        """Return a descriptor of the regular file at `place`, for reading; the caller closes it.

        Raises:
            ToolFailed: There is no such file, or it is no regular file.
        """
        if not place.names:
            raise ToolFailed(message="this is a directory, not a file")
        parent = Place(root=place.root, names=place.names[:-1])
        with self.directory(parent) as descriptor:
            try:
                # O_NONBLOCK: opening a FIFO must not wait for its writer
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                opened = os.open(place.names[-1], flags, dir_fd=descriptor)
            except OSError as failure:
                raise _said(failure, place) from None
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise ToolFailed(message=f"not a regular file: {_shown(str(place.path))}")
        return opened


def speakable(name: str) -> bool:
    """Say whether a file name can be put into JSON and asked for again."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _step(name: str, descriptor: int, place: Place) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=descriptor)
    except OSError as failure:
        raise _said(failure, place) from None


def _said(failure: OSError, place: Place) -> ToolFailed:
    reason = (failure.strerror or "cannot be opened").lower()
    return ToolFailed(message=f"{reason}: {_shown(str(place.path))}")


def _refuse_odd(given: str) -> None:
    if not given or len(given) > MAX_PATH:
        raise ToolFailed(message=f"a path has 1 to {MAX_PATH} characters")
    if "\0" in given or not speakable(given):
        raise ToolFailed(message="a path holds no NUL and no broken characters")
    if ".." in Path(given).parts:
        raise ToolFailed(message="'..' is not allowed in a path: name the place itself")


def _shown(path: str) -> str:
    return path if len(path) <= 200 else path[:200] + "…"
