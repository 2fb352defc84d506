"""A reader's terminal: one bash in a home of its own, fed command by command.

Ends everything that was started in it, by the process group that it made.
"""

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.waiting import within

PATIENCE = 30.0
"""Seconds that one command may take: each starts a Python, and some start servers."""

_BROWSER = "import sys, urllib.request as web; web.urlopen(sys.argv[1], timeout=30).read()"
"""A program in place of a browser: it follows an address to its last page."""

_MARK = "-- the command ended: "


class Terminal:
    """Runs commands of pages; `ports` are numbers that stand for free ones."""

    def __init__(self, folder: Path, *, ports: Mapping[str, str]) -> None:
        self._folder = folder
        self._ports = ports
        self._bash: asyncio.subprocess.Process | None = None
        self._lines: list[str] = []

    async def __aenter__(self) -> Self:
        home = self._folder / "home"
        home.mkdir()
        config = home / "port.toml"
        config.write_text(self.here("[gateway]\nport = 8765\n"), encoding="utf-8")
        self._bash = await asyncio.create_subprocess_exec(
            "bash",
            "--noprofile",
            "--norc",
            cwd=self._folder,
            env={
                "HOME": str(home),
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "THOUGHTGATE_CONFIG": str(config),
                "LANG": "C.UTF-8",
                "BROWSER": f"{sys.executable} -c {shlex.quote(_BROWSER)} %s",
            },
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=2**24,
            start_new_session=True,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        bash = self._running
        try:
            # bash leads a group of its own, in which everything that it started stands
            os.killpg(bash.pid, signal.SIGTERM)
            await within(self._drained(), 15.0)
        except ProcessLookupError:
            return
        except TimeoutError:
            os.killpg(bash.pid, signal.SIGKILL)
        finally:
            await within(bash.wait())

    def save(self, name: str, text: str) -> None:
        """Save a file below the folder that the commands run in."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.here(text), encoding="utf-8")

    async def run(self, command: str, says: Sequence[str]) -> None:
        """Run a command and hold what it says against the lines that the page shows."""
        self._lines = []
        stdin = self._running.stdin
        assert stdin is not None
        # braces keep `cd` and `&` in this shell; /dev/null keeps commands from reading ours
        stdin.write(
            f"{{ {self.here(command)}\n}} </dev/null; echo {shlex.quote(_MARK)}$?\n".encode()
        )
        wanted = [_pattern(self.here(line)) for line in says]
        later = wanted if command.endswith("&") else ()
        try:
            code = await within(self._heard(later), PATIENCE)
        except TimeoutError:
            code = None
        missing = _missing(wanted, self._lines)
        shown = "\n".join(self._lines)
        assert code is not None, f"$ {command}\nlasted too long, or said only:\n{shown}"
        assert missing is None, f"$ {command}\nnever said {missing!r}, but:\n{shown}"
        failed = code and not any(line.startswith("error: ") for line in says)
        assert not failed, f"$ {command}\nended with {code}:\n{shown}"

    def here(self, text: str) -> str:
        """Return a text of a page with the free ports in it."""
        for port, free in self._ports.items():
            text = text.replace(port, free)
        return text

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._bash is not None
        return self._bash

    async def _heard(self, later: Sequence[re.Pattern[str]]) -> int:
        """Read until the command has ended, and has said what it says while it runs beside us."""
        code: int | None = None
        stdout = self._running.stdout
        assert stdout is not None
        while code is None or _missing(later, self._lines) is not None:
            line = (await stdout.readline()).decode()
            assert line, "\n".join(("bash has ended", *self._lines))
            before, mark, after = line.rstrip("\n").partition(_MARK)
            if before or not mark:
                self._lines.append(before)
            if mark:
                code = int(after)
        return code

    async def _drained(self) -> None:
        stdout = self._running.stdout
        assert stdout is not None
        while await stdout.read(2**16):
            pass


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, line.strip().split("…"))))


def _missing(wanted: Sequence[re.Pattern[str]], lines: Sequence[str]) -> str | None:
    """Return the first wanted line that is not found in order, None when all are."""
    rest = iter(lines)
    for pattern in wanted:
        if not any(pattern.fullmatch(line.strip()) for line in rest):
            return pattern.pattern
    return None
