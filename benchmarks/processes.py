"""The processes of a benchmark: started, waited for, weighed and ended.

Never ends a process that it did not start.
"""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
START = 60.0
"""Seconds in which a process must listen."""

_CHILD_MARK = "_server.py"
"""What stands in the command of a tool server that a gateway starts by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What a process holds, in kB: resident, and its share of what is mapped by several."""

    rss: int
    pss: int


@contextmanager
def process(
    command: Sequence[str],
    port: int,
    environ: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> Iterator[int]:
    """Run a process until the block ends; yield its pid once it listens on `port`."""
    with (
        (log or Path(os.devnull)).open("ab") as said,
        subprocess.Popen(
            command,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            cwd=ROOT,
        ) as running,
    ):
        stopped = False
        try:
            wait_for_port(port, running, log)
            yield running.pid
        except (KeyboardInterrupt, SystemExit):  # who stops us may have stopped it as well
            stopped = True
            raise
        finally:
            if running.poll() is not None and not stopped:
                print(f"{running.args!r} {_ending(running, log)}", file=sys.stderr)
            running.terminate()
            try:
                running.wait(15)
            except subprocess.TimeoutExpired:
                running.kill()


def own(script: str, *arguments: object) -> list[str]:
    """Return the command that runs a script of this folder."""
    return [sys.executable, str(HERE / script), *map(str, arguments)]


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def wait_for_port(port: int, running: subprocess.Popen[bytes], log: Path | None = None) -> None:
    """Return once somebody listens.

    Raises:
        RuntimeError: The process ended first, or took too long.
    """
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and running.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.01)
        else:
            return
    message = f"{running.args!r} does not listen on {port}; {_ending(running, log)}"
    raise RuntimeError(message)


def _ending(running: subprocess.Popen[bytes], log: Path | None) -> str:
    said = log.read_text(encoding="utf-8")[-2000:] if log else ""
    code = running.poll()
    ended = "still runs" if code is None else f"ended by itself with code {code}"
    return f"{ended}\n{said}"


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of one process, all its threads, to the nanosecond; 0 once it is gone."""
    try:
        return time.clock_gettime(((~pid) << 3) | 2)  # the process's clock, see clock_getcpuclockid
    except OSError:
        return 0.0


def tree(pid: int) -> list[int]:
    """Return a process and all its descendants, the process first."""
    found = [pid]
    for one in found:
        try:
            tasks = list(Path(f"/proc/{one}/task").iterdir())
            for task in tasks:
                text = (task / "children").read_text(encoding="ascii")
                found += [child for child in map(int, text.split()) if child not in found]
        except OSError:  # ended meanwhile
            continue
    return found


def parts(pid: int) -> tuple[list[int], list[int]]:
    """Divide a gateway's tree: what is the gateway itself, and the tool servers it started."""
    everything = tree(pid)
    servers = [one for one in everything[1:] if _CHILD_MARK in _command(one)]
    return [one for one in everything if one not in servers], servers


def memory(pid: int) -> Memory:
    """Return what a whole tree holds."""
    rss = pss = 0
    for one in tree(pid):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text(encoding="ascii").splitlines()
        except OSError:  # ended meanwhile
            continue
        found = {line.split(":")[0]: line.split() for line in lines[1:]}
        rss += int(found["Rss"][1])
        pss += int(found["Pss"][1])
    return Memory(rss=rss, pss=pss)


def end_on_signal() -> None:
    """Let SIGTERM end this process as an error does: with the processes that it started."""

    def leave(number: int, frame: FrameType | None) -> None:
        del frame
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def raise_file_limit() -> None:
    """Let this process and its children hold as many sockets as the machine allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
