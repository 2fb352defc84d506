"""What a gateway holds: processes, files, memory, and what it says of its own work.

Never asks the gateway to do anything for it but to tell its state.
"""

import asyncio
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.chaos.fleet import descendants
from tests.chaos.pace import rest
from tests.support.admin import AdminClient
from tests.support.children import open_files, state

FILES = 24
"""Files and sockets more than before that are no leak: connections that are kept for a while."""

MEMORY = 64 * 2**20
"""Bytes more than before that are no leak, for each process of the gateway."""

TASKS = 24
"""Tasks more than before that are no leak: those of connections that are kept for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What all processes of a gateway hold together; `children` are its servers."""

    processes: int
    children: int
    zombies: int
    files: int
    threads: int
    memory: int
    sessions: int
    running: int
    tasks: int

    def as_json(self) -> dict[str, int]:
        """Return it for a report."""
        return asdict(self)


async def held(pid: int, admin: AdminClient) -> Held:
    """Look at a gateway, its workers and its servers."""
    told = await asyncio.to_thread(admin.get, "/status")
    workers = told["workers"]
    own = sorted({pid, *(worker["pid"] for worker in workers if worker["pid"])})
    below = descendants(pid)
    return Held(
        processes=len(own),
        children=len([child for child in below if child not in own]),
        zombies=len([child for child in below if state(child) == "Z"]),
        files=sum(map(open_files, own)),
        threads=sum(_status(one, "Threads") for one in own),
        memory=sum(_status(one, "VmRSS") for one in own) * 1024,
        sessions=told["sessions"],
        running=sum(worker["running"] for worker in workers),
        tasks=sum(worker.get("tasks", 0) for worker in workers),
    )


def leaks(before: Held, after: Held, waiting: int = 0) -> list[str]:
    """Return what is held after a run that was not held before.

    `waiting` is how many calls may wait for a client that has left them.
    """
    limits = {
        "processes": before.processes,
        "children": before.children,
        "zombies": 0,
        "files": before.files + FILES * before.processes,
        "threads": before.threads + 4 * before.processes,
        "memory": before.memory + MEMORY * before.processes,
        "sessions": 0,
        "running": waiting,
        "tasks": before.tasks + waiting + TASKS * before.processes,
    }
    found = after.as_json()
    return [
        f"{found[name]} {name}, where {limit} are allowed ({before.as_json()[name]} before)"
        for name, limit in limits.items()
        if found[name] > limit
    ]


async def quiet(
    pid: int, admin: AdminClient, seconds: float, waiting: int, before: Held | None = None
) -> Held:
    """Return what is held as soon as nothing is held too much, or after some seconds."""
    for _ in range(max(1, int(seconds))):
        now = await held(pid, admin)
        if not leaks(before or now, now, waiting):
            return now
        await rest(1.0)
    return await held(pid, admin)


def _status(pid: int, name: str) -> int:
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    [line] = [line for line in text.splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1])
