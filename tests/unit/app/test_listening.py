"""The room for clients: what the system's limit of open files leaves."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource
from thoughtgate.app.listening import room
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
clients = room().clients
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], clients)
"""


def told(soft: int, hard: int) -> tuple[int, int]:
    program = PROGRAM.format(soft=soft, hard=hard)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    limit, clients = map(int, done.stdout.split())
    return limit, clients


@pytest.mark.parametrize(("soft", "hard"), [(256, 4096), (4096, 4096), (256, 256)])
def test_the_limit_of_open_files_is_raised_as_far_as_the_system_allows(
    soft: int, hard: int
) -> None:
    limit, clients = told(soft, hard)
    assert limit == hard
    assert hard // 2 < clients < hard
