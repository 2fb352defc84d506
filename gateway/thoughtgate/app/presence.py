"""Which gateways run on a state folder: each keeps a locked note there for as long as it lives.

Never believes a note alone: whoever was killed left one, but its lock is gone.
"""

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path

import msgspec

FOLDER = "running"
"""The folder of the notes, in the state folder."""


class Presence(msgspec.Struct, kw_only=True, frozen=True):
    """A running gateway: its process, since when (UTC), and where it serves, if over HTTP.

    With several `workers` the process is their parent. `grpc` is where clients over gRPC find it,
    empty where that is off.
    """

    pid: int
    version: str
    started: str
    url: str = ""
    workers: int = 1
    grpc: str = ""


def presence_of(url: str, version: str, *, workers: int = 1, grpc: str = "") -> Presence:
    """Return what this process says of itself, from now on."""
    return Presence(
        pid=os.getpid(),
        version=version,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        url=url,
        workers=workers,
        grpc=grpc,
    )


def say_where(here: Presence, say: Callable[[str], None]) -> None:
    """Say where the gateway listens, once it does."""
    say(f"listening on {here.url}/mcp")
    if here.grpc:
        say(f"listening on {here.grpc}")


@contextmanager
def present(home: Path, presence: Presence) -> Iterator[None]:
    """Be known to run for the length of the block, as far as the folder can be written."""
    # processes of several containers may have one number
    file = home / FOLDER / f"{presence.pid}-{secrets.token_hex(4)}.json"
    descriptor = _written(file, presence)
    try:
        yield
    finally:
        if descriptor is not None:
            file.unlink(missing_ok=True)
            os.close(descriptor)


def running(home: Path) -> tuple[Presence, ...]:
    """Return the gateways that run, by the number of their process; notes of others are removed."""
    found = [_read(file) for file in sorted((home / FOLDER).glob("*.json"))]
    return tuple(sorted((one for one in found if one is not None), key=attrgetter("pid")))


def _written(file: Path, presence: Presence) -> int | None:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, msgspec.json.encode(presence))
    except OSError:  # such as a full disk
        file.unlink(missing_ok=True)
        os.close(descriptor)
        return None
    return descriptor


def _read(file: Path) -> Presence | None:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(os.read(descriptor, 65_536), type=Presence)
        return None
    else:
        if os.fstat(descriptor).st_size:  # an empty one is being written just now
            file.unlink(missing_ok=True)
        return None
    finally:
        os.close(descriptor)
