"""Finds log files under the roots by directory, pattern and age.

Never follows a link, never opens a file beyond its first bytes, and looks at no more than
`MAX_SEEN` names.
"""

import fnmatch
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from thoughtgate_servers.logs.reading import GZIP_MAGIC
from thoughtgate_servers.sandbox import Place, Sandbox, speakable

MAX_SEEN = 200_000
SLICE = 500
"""Names between two looks at cancel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which files: a glob over the name (over the path below the directory when it has a `/`)."""

    pattern: str
    since: float | None
    until: float | None
    recursive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One file."""

    path: Path
    size: int
    modified: float
    compressed: bool


@dataclass(slots=True)
class Search:
    """What a search has found so far; `complete` is false when it stopped at `MAX_SEEN`."""

    files: list[Found]
    seen: int = 0
    unspeakable: int = 0
    complete: bool = True

    def run(self, sandbox: Sandbox, place: Place, wanted: Wanted) -> Iterator[int]:
        """Look through `place`, yielding the number of names seen now and then."""
        with sandbox.directory(place) as root:
            for below, folders, names, descriptor in os.fwalk(".", dir_fd=root):
                if not wanted.recursive:
                    folders.clear()
                folders.sort()
                for name in names:
                    self.seen += 1
                    if self.seen > MAX_SEEN:
                        self.complete = False
                        return
                    if self.seen % SLICE == 0:
                        yield self.seen
                    self._look(place.path / below / name, below, descriptor, wanted)
        self.files.sort(key=lambda found: str(found.path))

    def _look(self, path: Path, below: str, descriptor: int, wanted: Wanted) -> None:
        relative = os.path.normpath(os.path.join(below, path.name))
        subject = relative if "/" in wanted.pattern else path.name
        if not fnmatch.fnmatchcase(subject, wanted.pattern):
            return
        if not speakable(relative):
            self.unspeakable += 1
            return
        try:
            status = os.stat(path.name, dir_fd=descriptor, follow_symlinks=False)
        except OSError:
            return
        if stat.S_ISREG(status.st_mode) and _recent(status.st_mtime, wanted):
            found = Found(
                path=path,
                size=status.st_size,
                modified=status.st_mtime,
                compressed=_is_gzip(path.name, descriptor),
            )
            self.files.append(found)


def _recent(modified: float, wanted: Wanted) -> bool:
    after = wanted.since is None or modified >= wanted.since
    return after and (wanted.until is None or modified < wanted.until)


def _is_gzip(name: str, directory: int) -> bool:
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        opened = os.open(name, flags, dir_fd=directory)
    except OSError:
        return False
    try:
        return os.read(opened, 2) == GZIP_MAGIC
    finally:
        os.close(opened)
