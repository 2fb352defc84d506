"""Standard input and output as streams, kept for the protocol alone.

Whoever prints afterwards prints to standard error: file descriptor 1 leads there.
"""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import BinaryIO

from thoughtgate.surface.mcp_stdio import Reader, Writer


class FilePipe:
    """A regular file as a pipe: event loops cannot wait for one, and need not."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    async def read(self, n: int, /) -> bytes:
        """Return at most `n` bytes, none at the end."""
        return await asyncio.to_thread(self._file.read, n)

    def write(self, data: bytes, /) -> None:
        """Write all of the bytes."""
        self._file.write(data)

    async def drain(self) -> None:
        """Return at once: a file always has room."""


class PipeWriter(asyncio.StreamWriter):
    """The writing end of a pipe; uvloop has an error of its own for one whose reader is gone."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes.

        Raises:
            BrokenPipeError: Nobody reads any more.
        """
        if self.transport.is_closing():
            raise BrokenPipeError
        super().write(data)


@asynccontextmanager
async def claimed_stdio() -> AsyncIterator[tuple[Reader, Writer]]:
    """Give the streams of this process's standard input and output; closed at the end."""
    given, wanted = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    with ExitStack() as ending:
        yield await _reader(given, ending), await _writer(wanted, ending)


async def _reader(fd: int, ending: ExitStack) -> Reader:
    file = os.fdopen(fd, "rb", buffering=0)
    if _is_file(fd):
        return FilePipe(ending.enter_context(file))
    stream = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(stream)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, file)
    ending.callback(transport.close)
    return stream


async def _writer(fd: int, ending: ExitStack) -> Writer:
    file = os.fdopen(fd, "wb", buffering=0)
    if _is_file(fd):
        return FilePipe(ending.enter_context(file))
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, file)
    ending.callback(transport.close)
    # nothing may wait in our own buffer: what is there at the end would be lost
    transport.set_write_buffer_limits(high=0)
    return PipeWriter(transport, protocol, None, loop)


def _is_file(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(fd))
