"""The port that a gateway will listen on: is it free, and if not, whose is it?

Never listens: the port is bound and given back at once.
"""

import errno
import os
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from thoughtgate.app.doctor.findings import Checked, Finding
from thoughtgate.app.masks import shown_command

_OURS = re.compile(r"\bthoughtgate\b.*\bserve\b")
_LISTENING = "0A"
_SHOWN = 80


def check_port(host: str, port: int) -> Checked:
    """Look at the port of the configuration."""
    name, where = "port", f"{host}:{port}"
    if port == 0 or not _taken(host, port):
        return Checked(name=name, said=f"{where} is free")
    process, line = _holder(port)
    if _OURS.search(line):
        return Checked(name=name, said=f"a gateway listens on {where}")
    holder = f"process {process} ({line[:_SHOWN]})" if process else ""
    return Checked(
        name=name, said=f"{where} is in use", findings=tuple(judged_port(host, port, holder))
    )


def judged_port(host: str, port: int, holder: str) -> Iterator[Finding]:
    """Yield that a port is in use; `holder` is the process, empty when it cannot be known."""
    by = f"by {holder}" if holder else "by a process that cannot be seen"
    yield Finding(
        code="port_in_use",
        where=f"{host}:{port}",
        what=f"it is in use {by}",
        mend=f"end that process (lsof -i :{port}), or: thoughtgate serve --port 0, "
        "or another port under [gateway]",
    )


def command_of(cmdline: bytes) -> str:
    """Return the beginning of a command line, as the system keeps it, without its secrets."""
    words = cmdline.decode("utf-8", "replace").split("\0")
    return " ".join(shown_command([word for word in words if word]))[:_SHOWN]


def _taken(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _holder(port: int) -> tuple[str, str]:
    """Return the process that listens on a port and its command; Linux tells of our own user's."""
    wanted = {f"socket:[{inode}]" for inode in _inodes(port)}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(os.readlink(held) in wanted for held in (folder / "fd").iterdir()):
                words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
                return folder.name, " ".join(word for word in words if word)
    return "", ""


def _inodes(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]
