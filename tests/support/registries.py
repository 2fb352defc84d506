"""Registries in a folder, rows for their audit log, and other processes that use them."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from thoughtgate.core.audit import AuditRow
from thoughtgate.registry.keys import KeyFile
from thoughtgate.registry.store import Registry
from thoughtgate.registry.vault import Vault

FILE = "registry.db"
Spawn = Callable[..., subprocess.Popen[str]]
CANARY = "canary-7f3a91"


def open_in(folder: Path, *, patience: float = 5.0) -> Registry:
    """Open the registry in `folder`, with its key file beside it."""
    vault = Vault(KeyFile(folder / "key"))
    return Registry.open(folder / FILE, vault=vault, patience=patience)


def make_row(number: int = 1, **fields: str) -> AuditRow:
    """Return a row of a call that went well."""
    row = AuditRow(
        at_ns=1_790_000_000_000_000_000 + number,
        action="tool.call",
        principal="local",
        domain="default",
        server="files",
        tool="read",
        outcome="ok",
        call_id=f"call-{number}",
    )
    return AuditRow(**{**row._asdict(), **fields})


@contextmanager
def raw(folder: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection of another program, without any of our locks."""
    with closing(sqlite3.connect(folder / FILE, isolation_level=None, timeout=0)) as connection:
        yield connection


@contextmanager
def python(program: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run a program in another process; it is killed at the end if it still runs."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "error"}
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        with process:
            try:
                yield process
            finally:
                process.kill()
    finally:
        process.wait(timeout=5)


def outcome_of(program: str, *arguments: object) -> object:
    """Run a program to its end and return the JSON that it printed."""
    with python(program, *arguments) as process:
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    return json.loads(out)


def bytes_in(folder: Path) -> bytes:
    """Return everything that stands in any file of a folder, except the key."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "key"]
    return b"".join(path.read_bytes() for path in files)
