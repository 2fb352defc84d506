"""What a source is: a SQLite file, or tables in CSV and Parquet files, opened by the sandbox.

Never gives an engine a path that the sandbox did not walk: engines of files get descriptors.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from thoughtgate_servers.data.limits import MAX_TABLES
from thoughtgate_servers.sandbox import Place, Sandbox, speakable
from thoughtgate_servers.table import ToolFailed

_SQLITE = b"SQLite format 3\0"
_READERS = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet"}
_DESCRIPTORS = "/proc/self/fd" if Path("/proc/self/fd").is_dir() else "/dev/fd"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """An open CSV or Parquet file that is one table; `path` leads to its descriptor."""

    table: str
    reader: str
    compressed: bool
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is asked: one database, or some files."""

    database: Path | None
    identity: tuple[int, int] | None
    """Device and inode of the database that the sandbox opened."""
    files: tuple[File, ...]


@contextmanager
def opened(sandbox: Sandbox, given: str) -> Iterator[Source]:
    """Open a source and yield it; its files are closed afterwards.

    Raises:
        ToolFailed: There is no such thing, or nothing of it is data.
    """
    place = sandbox.place(given)
    with ExitStack() as stack:
        if place.path.is_dir():
            yield _directory(sandbox, place, stack)
            return
        descriptor = _open(sandbox, place, stack)
        if os.pread(descriptor, len(_SQLITE), 0) == _SQLITE:
            status = os.fstat(descriptor)
            identity = (status.st_dev, status.st_ino)
            yield Source(database=place.path, identity=identity, files=())
            return
        file = _file(place.names[-1], descriptor, set())
        if file is None:
            said = "not a SQLite file, and its name ends in none of .csv, .tsv, .parquet, .csv.gz"
            raise ToolFailed(message=f"{place.names[-1]}: {said}")
        yield Source(database=None, identity=None, files=(file,))


def _directory(sandbox: Sandbox, place: Place, stack: ExitStack) -> Source:
    with sandbox.directory(place) as directory:
        names = sorted(filter(speakable, os.listdir(directory)))
    taken: set[str] = set()
    files: list[File] = []
    for name in names:
        if _kind(name) is None:
            continue
        try:
            inner = sandbox.place(str(place.path / name))
            file = _file(name, _open(sandbox, inner, stack), taken)
        except ToolFailed:
            # a link out of the roots, or a directory of such a name: no table
            continue
        if file is not None:
            files.append(file)
        if len(files) == MAX_TABLES:
            break
    if not files:
        raise ToolFailed(message="no CSV or Parquet file in this directory; name a SQLite file")
    return Source(database=None, identity=None, files=tuple(files))


def _open(sandbox: Sandbox, place: Place, stack: ExitStack) -> int:
    descriptor = sandbox.open_file(place)
    stack.callback(os.close, descriptor)
    return descriptor


def _kind(name: str) -> str | None:
    return _READERS.get(Path(name.lower().removesuffix(".gz")).suffix)


def _file(name: str, descriptor: int, taken: set[str]) -> File | None:
    reader = _kind(name)
    compressed = name.lower().endswith(".gz")
    if reader is None or (compressed and reader == "parquet"):
        return None
    stem = Path(name[: -len(".gz")] if compressed else name).stem
    table, number = stem, 1
    while table.casefold() in taken:
        number += 1
        table = f"{stem}_{number}"
    taken.add(table.casefold())
    return File(
        table=table, reader=reader, compressed=compressed, path=f"{_DESCRIPTORS}/{descriptor}"
    )
