"""The processes of the demo: started, watched, and ended one by one, by the ids we started.

Never leaves a process behind: `Processes` ends all of them when it is left, however that happens.
"""

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 5.0
"""Seconds that a process gets to end by itself."""

_LISTENING = re.compile(r"listening on ((?:http|grpc)://\S+)")


class DemoFailed(Exception):
    """The demo cannot go on; the text says why and where to look."""

    def __init__(self, *, message: str) -> None:
        super().__init__(message)


class Processes:
    """Started processes by name; each writes its stderr to a file, so that no pipe can fill."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        """Nothing runs yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End everything that still runs, last started first."""
        for name in reversed(self._running):
            self.stop(name)

    def start(self, name: str, command: Sequence[str], more: Mapping[str, str]) -> None:
        """Start `command` with our source folders on its path and `more` in its environment."""
        with self.errors(name).open("wb") as errors:
            self._running[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**environment(), **more},
                # Ctrl-C reaches the demo only, which then ends its processes in order
                start_new_session=True,
            )

    def stop(self, name: str) -> None:
        """End one process: ask first, insist after `PATIENCE`."""
        process = self._running[name]
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def errors(self, name: str) -> Path:
        """Return where the process writes what it has to say."""
        return self._folder / f"{name}.err"

    def check(self, name: str) -> None:
        """Fail when the process has ended.

        Raises:
            DemoFailed: It has.
        """
        code = self._running[name].poll()
        if code is not None:
            said = self.errors(name).read_text(encoding="utf-8", errors="replace").strip()
            raise DemoFailed(message=f"{name} ended with code {code}: {said[-800:]}")

    async def address(self, name: str, seconds: float) -> str:
        """Return the address that the process says it listens on.

        Raises:
            DemoFailed: It ended, or said nothing in time.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            text = self.errors(name).read_text(encoding="utf-8", errors="replace")
            if found := _LISTENING.search(text):
                return found[1]
            self.check(name)
            await asyncio.sleep(0.05)
        raise DemoFailed(
            message=f"{name} did not start within {seconds:g} s; see {self.errors(name)}"
        )


def environment() -> dict[str, str]:
    """Return our environment with the source folders first on Python's path."""
    folders = [str(ROOT / part) for part in ("gateway", "client", "servers", "proto")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}


def module(name: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of ours."""
    return [sys.executable, "-m", name, *arguments]


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
