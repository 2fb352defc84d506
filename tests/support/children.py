"""The processes that a test has started, as the kernel sees them."""

import os
from pathlib import Path


def children(pid: int | None = None) -> list[int]:
    """Return the living children of a process, this one by default, zombies included."""
    path = Path(f"/proc/{pid or os.getpid()}/task")
    text = " ".join((task / "children").read_text() for task in path.iterdir())
    return [int(pid) for pid in text.split()]


def alive(pid: int) -> bool:
    return state(pid) not in {"", "Z"}


def state(pid: int) -> str:
    """Return the letter of a process's state, empty when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return stat.rpartition(")")[2].split()[0]


def zombies(pid: int) -> list[int]:
    """Return the children of a process that have ended and were not waited for."""
    return [child for child in children(pid) if state(child) == "Z"]


def open_files(pid: int) -> int:
    """Return how many files and sockets a process holds."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def memory(pid: int) -> int:
    """Return how many bytes of memory a process holds, from which on its peak counts anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    return peak_memory(pid)


def peak_memory(pid: int) -> int:
    """Return the most bytes of memory that a process held since `memory`."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    [line] = [line for line in text.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024
