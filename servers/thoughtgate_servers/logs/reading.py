"""Reads one log file line by line: gzip seen through, broken bytes replaced and counted.

Never holds more than one line of at most `LINE_CAP` bytes, and never fails on what a file holds:
damage ends the reading and becomes `Lines.problem`.
"""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

LINE_CAP = 64 * 1024
"""Longer lines are cut here and counted; the rest of the line is passed over."""

DEFAULT_MAX_BYTES = 2 * 1024**3
"""How much of one file is read, after decompression."""

GZIP_MAGIC = b"\x1f\x8b"
_OTHER_MAGIC = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_REPLACEMENT = "\ufffd"


class Lines:
    """The lines of one open file, once. The counts are right when the iteration is over."""

    def __init__(self, stream: BinaryIO, max_bytes: int, problem: str = "") -> None:
        self._stream = stream
        self._room = max_bytes
        self.count = 0
        self.replaced = 0
        self.cut = 0
        self.problem = problem

    def __iter__(self) -> Iterator[str]:
        """Yield the lines without their ends."""
        while not self.problem:
            raw = self._read()
            if not raw:
                return
            self.count += 1
            yield self._decode(raw)

    def _read(self) -> bytes:
        try:
            raw = self._stream.readline(LINE_CAP)
            self._room -= len(raw)
            if len(raw) == LINE_CAP and not raw.endswith(b"\n"):
                self._pass_over()
        except (EOFError, OSError, zlib.error) as failure:
            self.problem = _damage(failure)
            return b""
        if self._room < 0:
            self.problem = "too large: stopped at the limit of bytes to read"
            return b""
        return raw

    def _pass_over(self) -> None:
        self.cut += 1
        while (rest := self._stream.readline(LINE_CAP)) and not rest.endswith(b"\n"):
            self._room -= len(rest)
            if self._room < 0:
                return

    def _decode(self, raw: bytes) -> str:
        if self.count == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        raw = raw.rstrip(b"\r\n")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            text = raw.decode(errors="replace")
            self.replaced += text.count(_REPLACEMENT) - raw.count(_REPLACEMENT.encode())
            return text


@contextmanager
def opened(descriptor: int, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Iterator[Lines]:
    """Yield the lines behind `descriptor`, which is closed afterwards."""
    with os.fdopen(descriptor, "rb") as raw:
        head = raw.peek(6)
        if head.startswith(GZIP_MAGIC):
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield Lines(cast("BinaryIO", unpacked), max_bytes)
            return
        for magic, name in _OTHER_MAGIC.items():
            if head.startswith(magic):
                yield Lines(raw, max_bytes, problem=f"compressed with {name}, which is not read")
                return
        yield Lines(raw, max_bytes)


def _damage(failure: Exception) -> str:
    if isinstance(failure, EOFError):
        return "damaged gzip: the file ends too early"
    if isinstance(failure, gzip.BadGzipFile | zlib.error):
        return "damaged gzip: what follows cannot be unpacked"
    return "could not be read to its end"
