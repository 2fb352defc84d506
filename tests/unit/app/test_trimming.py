"""Memory that many ended sessions leave: when it is given back."""

import asyncio
import subprocess
import sys
import threading

import pytest

from tests.support.waiting import until
from thoughtgate.app.trimming import MANY, giving_back, trimmer
from thoughtgate.core.calls import LOCAL
from thoughtgate.sessions import Connected, Sessions


@pytest.fixture
def sessions() -> Sessions:
    return Sessions(clock=lambda: 0.0)


def come_and_go(sessions: Sessions, count: int) -> None:
    for number in range(count):
        sessions.open(connected(str(number)))
        sessions.close(str(number), LOCAL)


def connected(name: str) -> Connected:
    return Connected(
        id=name, principal=LOCAL, domain="default", version="", client={}, capabilities={}
    )


async def turns() -> None:
    """Let everything happen that is due."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_memory_is_given_back_in_a_thread_once_for_many_ended_sessions(
    sessions: Sessions,
) -> None:
    threads: list[int] = []
    with giving_back(sessions, lambda: threads.append(threading.get_ident()), pause=0.0):
        come_and_go(sessions, MANY - 1)
        await turns()
        assert not threads
        come_and_go(sessions, MANY)
        await until(lambda: threads)
        come_and_go(sessions, MANY)
        await until(lambda: len(threads) == 2)
    assert threading.get_ident() not in threads


async def test_nothing_is_done_for_sessions_that_end_with_the_gateway(sessions: Sessions) -> None:
    done: list[str] = []
    with giving_back(sessions, lambda: done.append("trimmed"), pause=0.0):
        come_and_go(sessions, MANY)
    come_and_go(sessions, MANY)
    await turns()
    assert not done


@pytest.mark.skipif(sys.platform != "linux", reason="asks the C library of Linux")
def test_the_c_library_can_be_asked(sessions: Sessions) -> None:
    trim = trimmer()
    if trim is not None:  # not all of them have it
        assert trim() in {0, 1}
    with giving_back(sessions, None):
        come_and_go(sessions, MANY)


FAULTS = """
import resource
from thoughtgate.app.trimming import keep_for_large
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        [bytes(2**20) for _ in range(3)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
first = faults()
keep_for_large()
faults()
print(first, faults())
"""


@pytest.mark.skipif(not trimmer(), reason="another C library has other options")
def test_large_buffers_come_from_memory_that_is_there() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True
    )
    before, after = map(int, done.stdout.split())
    assert after < 100 < before
