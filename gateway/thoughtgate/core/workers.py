"""The workers of one gateway: how many there are, which one this is, and who holds what.

Never talks to another worker.
"""

from dataclasses import dataclass
from pathlib import Path
from zlib import crc32


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """One worker's knowledge of all: `index` counts from 0.

    `sockets` is the folder, readable by this user alone, where each worker listens for the others.
    """

    index: int = 0
    count: int = 1
    sockets: Path = Path()

    def owner(self, server: str) -> int:
        """Return the worker that runs the process of a tool server: the same one everywhere."""
        return crc32(server.encode()) % self.count

    def owns(self, server: str) -> bool:
        """Tell whether this worker runs the process of a tool server."""
        return self.owner(server) == self.index

    def socket(self, index: int) -> Path:
        """Return where a worker listens for the others."""
        return self.sockets / f"worker-{index}.sock"

    def door(self, index: int) -> Path:
        """Return where a worker takes in what the others want of the servers that it runs."""
        return self.sockets / f"servers-{index}.sock"


ALONE = Crew()
"""A gateway of one process."""
