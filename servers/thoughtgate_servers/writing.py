"""Writes a file into a sandboxed directory, whole or not at all.

Never replaces what is there unless told to, and never writes through a link.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum

from thoughtgate_servers.sandbox import Place, Sandbox
from thoughtgate_servers.table import ToolFailed


class Outcome(Enum):
    """What became of a write."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


def write_whole(sandbox: Sandbox, place: Place, content: bytes, *, overwrite: bool) -> Outcome:
    """Write `content` at `place`; the same content already there is a success that changes nothing.

    Raises:
        ToolFailed: Something else is there and `overwrite` is false, or the place cannot hold it.
    """
    if not place.names:
        raise ToolFailed(message="this is a directory, not a file")
    parent = Place(root=place.root, names=place.names[:-1])
    name = place.names[-1]
    with sandbox.directory(parent) as directory, _temporary(directory, content) as temporary:
        try:
            # a link to the finished file appears at once, and only when the name is free
            os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            outcome = Outcome.CREATED
        except FileExistsError:
            outcome = compare(sandbox, place, content, overwrite=overwrite)
            if outcome is Outcome.REPLACED:
                os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)
    return outcome


def make_directories(sandbox: Sandbox, place: Place) -> None:
    """Make the directory at `place` and those above it, below the root."""
    for depth in range(len(place.names)):
        parent = Place(root=place.root, names=place.names[:depth])
        with sandbox.directory(parent) as directory:
            try:
                os.mkdir(place.names[depth], dir_fd=directory)
            except FileExistsError:
                continue


def compare(sandbox: Sandbox, place: Place, content: bytes, *, overwrite: bool) -> Outcome:
    """Return what writing `content` onto the file that is there would be; writes nothing.

    Raises:
        ToolFailed: It holds something else and `overwrite` is false, or it is no regular file.
    """
    with os.fdopen(sandbox.open_file(place), "rb") as present:
        if present.read(len(content) + 1) == content:
            return Outcome.UNCHANGED
    if not overwrite:
        raise ToolFailed(
            message=f"{place.names[-1]} exists with other content: choose another name, or set "
            "overwrite where there is such an argument"
        )
    return Outcome.REPLACED


@contextmanager
def _temporary(directory: int, content: bytes) -> Iterator[str]:
    name = f".{secrets.token_hex(8)}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o644, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        yield name
    finally:
        # not there any more when it was moved to its place
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)
