"""The processes that a test has started, as the kernel sees them."""

import os
from pathlib import Path


def children() -> list[int]:
    """Return the living children of this process, zombies included."""
    path = Path(f"/proc/{os.getpid()}/task")
    text = " ".join((task / "children").read_text() for task in path.iterdir())
    return [int(pid) for pid in text.split()]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
