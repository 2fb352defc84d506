"""Commands of servers, looked at before they are started: is there something that can run?

Never runs anything.
"""

import os
import platform
import shutil
from collections.abc import Iterator
from os.path import isdir, isfile
from pathlib import Path

from thoughtgate.app.doctor.findings import Finding

_LAUNCHERS = {
    "npx": "install Node.js, which brings npx",
    "npm": "install Node.js, which brings npm",
    "node": "install Node.js",
    "bunx": "install Bun, which brings bunx",
    "deno": "install Deno",
    "uvx": "install uv, which brings uvx",
    "uv": "install uv",
    "pipx": "install pipx",
    "docker": "install Docker, or Podman with its docker command",
    "java": "install a Java runtime",
    "dotnet": "install .NET",
}
_MACHINES = {
    3: {"i386", "i686", "x86_64"},
    40: {"armv6l", "armv7l", "armv8l", "aarch64"},
    62: {"x86_64"},
    183: {"aarch64", "arm64"},
    243: {"riscv64"},
    21: {"ppc64", "ppc64le"},
    22: {"s390x"},
}
"""Kinds of machine by the number that stands in an ELF file, as `uname -m` calls them."""

_HEAD = 256


def command_findings(
    name: str, argv: tuple[str, ...], *, path: str, cwd: str | None
) -> Iterator[Finding]:
    """Yield why the command of server `name` cannot be started; `path` is its PATH."""
    where = f"server {name}"
    if cwd is not None and not isdir(cwd):
        yield Finding(
            code="folder_missing",
            where=where,
            what=f"its folder {cwd} does not exist",
            mend=f"mkdir -p {cwd}, or give server {name} another cwd",
        )
        return
    command = argv[0]
    looked_for = str(Path(cwd or ".") / command) if "/" in command else command
    found = shutil.which(looked_for, path=path)
    if found is None:
        yield _missing(where, looked_for, path)
    else:
        yield from _unfit(where, Path(found), path)


def _missing(where: str, command: str, path: str) -> Finding:
    folders = [""] if "/" in command else path.split(os.pathsep)
    there = (Path(folder) / command for folder in folders)
    plain = next((file for file in there if isfile(file)), None)
    if plain is not None:
        return Finding(
            code="command_not_executable",
            where=where,
            what=f"{plain} may not be executed",
            mend=f"chmod +x {plain}",
        )
    if command in _LAUNCHERS:
        return Finding(
            code="launcher_missing",
            where=where,
            what=f"{command} is not on the PATH",
            mend=f"{_LAUNCHERS[command]}, or name it by its whole path (find it with: "
            f"command -v {command})",
        )
    return Finding(
        code="command_missing",
        where=where,
        what=f"there is no command {command}",
        mend=f"install {command}, or name it by its whole path (find it with: "
        f"command -v {Path(command).name})",
    )


def _unfit(where: str, file: Path, path: str) -> Iterator[Finding]:
    try:
        with file.open("rb") as opened:
            head = opened.read(_HEAD)
    except OSError:  # it may be run and not read
        return
    if head.startswith(b"#!"):
        yield from _interpreter(where, file, head, path)
    elif machine_of(head) is not None and not runs_here(head, platform.machine()):
        yield Finding(
            code="wrong_architecture",
            where=where,
            what=f"{file} was not built for this machine ({platform.machine()})",
            mend=f"install {file.name} for {platform.machine()} at {file}",
        )


def _interpreter(where: str, file: Path, head: bytes, path: str) -> Iterator[Finding]:
    words = head[2:].split(b"\n", 1)[0].decode("utf-8", "replace").split()
    if not words:
        return
    program = words[0]
    if Path(program).name == "env":
        rest = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        program = rest[0] if rest else program
    if shutil.which(program, path=path) is None:
        advice = _LAUNCHERS.get(program, f"install {program}")
        yield Finding(
            code="interpreter_missing",
            where=where,
            what=f"{file} is run by {program}, which is not there",
            mend=f"{advice}, or mend the first line of {file}",
        )


def machine_of(head: bytes) -> int | None:
    """Return the number of the machine that an ELF file is for, None when it is none."""
    if not head.startswith(b"\x7fELF") or len(head) < 20:
        return None
    return int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")


def runs_here(head: bytes, machine: str) -> bool:
    """Say whether an ELF file runs on `machine`; what is not known is given a try."""
    number = machine_of(head)
    return number not in _MACHINES or machine in _MACHINES[number]
