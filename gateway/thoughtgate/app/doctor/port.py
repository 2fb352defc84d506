"""The ports that a gateway will listen on: are they free, and if not, whose are they?

Never listens: a port is bound and given back at once.
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

_OURS = re.compile(r"\bthoughtgate\b.*\b(serve|worker)\b")
_LISTENING = "0A"
_SHOWN = 80


def check_port(host: str, port: int, grpc_port: int | None = None) -> Checked:
    """Look at the port of the configuration, and at the one for gRPC where there is one."""
    said, findings = _looked_at(host, port, "port")
    if grpc_port is not None:
        more, others = _looked_at(host, grpc_port, "grpc_port")
        said, findings = f"{said}; for gRPC, {more}", findings + others
    return Checked(name="port", said=said, findings=findings)


def _looked_at(host: str, port: int, setting: str) -> tuple[str, tuple[Finding, ...]]:
    """Return what there is to say of a port, and that it is in use where somebody else has it."""
    where = f"{host}:{port}"
    if port == 0 or not _taken(host, port):
        return f"{where} is free", ()
    process, line = _holder(port)
    if _OURS.search(line):
        return f"a gateway listens on {where}", ()
    by = f"process {process} ({line[:_SHOWN]})" if process else "a process that cannot be seen"
    found = Finding(
        code="port_in_use",
        where=where,
        what=f"it is in use by {by}",
        mend=f"end that process (lsof -i :{port}), or: thoughtgate serve "
        f"--{setting.replace('_', '-')} 0, or another {setting} under [gateway]",
    )
    return f"{where} is in use", (found,)


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
