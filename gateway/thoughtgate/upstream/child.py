"""A child process that speaks in lines: started without a shell, always ended, always reaped.

Never reads what a line means. The child's own children belong to its process group and end with it.
"""

import asyncio
import contextlib
import os
import re
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from thoughtgate.core.errors import Malformed, UpstreamUnreachable
from thoughtgate.core.servers import StdioTransport
from thoughtgate.upstream.hurry import Hurry
from thoughtgate.wire.lines import LineSplitter
from thoughtgate.wire.strict import parse

_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")
_LAUNCHER = str(Path(__file__).with_name("launch.py"))
_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
"""Open files that are usual here: whoever serves many clients raises its own limit later."""

_OWN_COMMANDS = (str(Path(sys.executable).parent),) if sys.executable else ()
_SECRET = 4
"""Characters of the shortest variable that is hidden; a shorter one is a switch, not a secret."""

_UNREAD = 8 * 1024 * 1024
"""Bytes beyond which a child that does not read gets only requests, which wait for room."""

_TO_TERM = 0.5
"""Seconds that are left for SIGTERM to work when everything must be over soon."""

_STDERR_KEPT = 16 * 1024
_STDERR_LINES = 20
_STDERR_WIDTH = 300
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds between the steps of stopping: closed stdin, SIGTERM, SIGKILL."""

    eof: float = 2.0
    term: float = 2.0
    kill: float = 2.0


def child_environment(own: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the small environment of a child: a few of ours, and the server's own.

    The folder of our own commands ends our PATH: `thoughtgate-files` is found there also when the
    gateway was started by its full path.
    """
    ours = {name: environ[name] for name in _INHERITED if name in environ}
    ours["PATH"] = os.pathsep.join((environ.get("PATH") or os.defpath, *_OWN_COMMANDS))
    return ours | dict(own)


class Child(asyncio.SubprocessProtocol):
    """One child process; belongs to one event loop.

    `on_line` takes each line of standard output. `ended` is done, with the reason, as soon as no
    more lines can come. `hurry` shortens the patience of its end.
    """

    def __init__(
        self,
        on_line: Callable[[bytes], None],
        *,
        cap: int,
        patience: Patience | None = None,
        hurry: Hurry | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = loop.create_future()
        self._loop = loop
        self._on_line = on_line
        self._patience = patience or Patience()
        self._hurry = hurry or Hurry()
        self._splitter = LineSplitter(cap=cap)
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._exited: asyncio.Future[None] = loop.create_future()
        self._room = asyncio.Event()
        self._room.set()
        self._stdout_open = True
        self._stopping = False
        self._closed = ""
        self._stderr = b""
        self._secrets: tuple[str, ...] = ()
        self._fault = ""

    async def start(self, transport: StdioTransport, environ: Mapping[str, str]) -> None:
        """Start the command.

        Raises:
            UpstreamUnreachable: It cannot be started.
        """
        self._secrets = tuple(value for value in transport.env.values() if len(value) >= _SECRET)
        env = child_environment(transport.env, environ)
        _check_command(transport, env)
        try:
            await self._loop.subprocess_exec(
                lambda: self,
                *_command(transport.argv),
                env=env,
                cwd=transport.cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # a NUL inside an argument is a ValueError
            reason = error.strerror if isinstance(error, OSError) else "an argument holds a NUL"
            raise UpstreamUnreachable(
                message=f"cannot start {transport.argv[0]}: {reason}"
            ) from None

    async def room(self) -> None:
        """Return when the child reads what it is sent."""
        await self._room.wait()

    def send(self, message: bytes, id_: int | None = None) -> bool:
        """Send a line; False when the child's input is closed and nothing was sent.

        What is no request waits for no room: it is not sent to a child that has long read nothing.
        """
        if self._stdin is None or self._stdin.is_closing() or self.ended.done():
            return False
        if id_ is None and self._stdin.get_write_buffer_size() > _UNREAD:
            return False
        self._stdin.write(message + b"\n")
        return True

    async def stop(self) -> None:
        """End the child: close its input, then SIGTERM, then SIGKILL; return when it is reaped."""
        if self._transport is None:
            return
        self._stopping = True
        try:
            if self._stdin is not None:
                self._stdin.close()
            if not await self._hurry.wait(self._exited, self._patience.eof, spare=_TO_TERM):
                self._signal(signal.SIGTERM)
                await self._hurry.wait(self._exited, self._patience.term)
        finally:
            if not self._exited.done():
                self._signal(signal.SIGKILL)
                await asyncio.wait([self._exited], timeout=self._patience.kill)
            self._transport.close()
            self._finish()

    def last_words(self) -> str:
        """Return the last lines of standard error; may be empty.

        Without control characters, and without the values of the server's own variables: programs
        print the token that was refused.
        """
        text = _ESCAPES.sub("", self._stderr.decode("utf-8", "replace"))
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        lines = [_printable(line)[:_STDERR_WIDTH] for line in text.splitlines()]
        return "\n".join([line for line in lines if line][-_STDERR_LINES:])

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport; the event loop calls it. uvloop's are no subclasses of asyncio's."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Cut standard output into lines, keep the end of standard error."""
        if fd == 2:
            self._stderr = (self._stderr + data)[-_STDERR_KEPT:]
            return
        if self._fault:
            return
        try:
            lines = self._splitter.feed(data)
        except Malformed as error:
            self._fault = error.message
            self._signal(signal.SIGKILL)
            return
        for line in lines:
            self._on_line(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Learn that a pipe is closed; a child without its input or its output is over."""
        if fd == 0:
            self._room.set()
            if not self._stopping:
                self._part_from("closed its input")
        elif fd == 1:
            self._stdout_open = False
            self._take_rest()
            if self._exited.done():
                self._finish()
            else:
                self._part_from("closed its output")

    def _part_from(self, how: str) -> None:
        """Be over in a moment, for which the exit code of a child that ends is worth waiting."""
        self._closed = self._closed or how
        self._loop.call_later(0.5, self._finish)

    def process_exited(self) -> None:
        """Learn that the child is gone; what it left of its group goes too."""
        if not self._exited.done():
            self._exited.set_result(None)
        self._signal(signal.SIGKILL)
        self._room.set()
        if self._stdout_open:  # its last lines may still be in the pipe
            self._loop.call_later(0.2, self._finish)
        else:
            self._finish()

    def pause_writing(self) -> None:
        """Hold further requests back: the child does not read."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Let requests through again."""
        self._room.set()

    def _take_rest(self) -> None:
        """Take a last line that is whole but for its end: some exit right behind their reply."""
        rest = self._splitter.rest()
        with contextlib.suppress(Malformed):
            if rest:
                parse(rest)
                self._on_line(rest)

    def _finish(self) -> None:
        if not self.ended.done():
            self._take_rest()
            self.ended.set_result(self._obituary())

    def _obituary(self) -> str:
        code = None if self._transport is None else self._transport.get_returncode()
        if self._fault:
            how = f"was stopped: {self._fault}"
        elif code is None:
            how = self._closed or "closed its output"
        elif code < 0:
            how = f"was ended by {_signal_name(-code)}"
        else:
            how = f"exited with code {code}"
        words = self.last_words()
        return f"{how}; its last words:\n{words}" if words else how

    def _signal(self, number: signal.Signals) -> None:
        if self._transport is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), number)


def _command(argv: tuple[str, ...]) -> tuple[str, ...]:
    if sys.platform == "linux" and sys.executable:
        return (sys.executable, "-I", "-S", _LAUNCHER, str(os.getpid()), str(_FILES), *argv)
    return argv


def _check_command(transport: StdioTransport, env: Mapping[str, str]) -> None:
    """Say what is missing in words of ours, before the launcher can only exit."""
    name = transport.argv[0] if transport.argv else ""
    if transport.cwd is not None and not Path(transport.cwd).is_dir():
        raise UpstreamUnreachable(
            message=f"cannot start {name}: its folder {transport.cwd} does not exist"
        )
    looked_for = str(Path(transport.cwd or ".") / name) if "/" in name else name
    if not name or shutil.which(looked_for, path=env.get("PATH", os.defpath)) is None:
        raise UpstreamUnreachable(
            message=f"cannot start {name}: no such command; check its path and the PATH"
        )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _printable(line: str) -> str:
    return "".join(letter for letter in line if letter.isprintable() or letter == "\t").strip()
