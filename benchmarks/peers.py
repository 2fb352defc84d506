"""The gateways of others that we measure ourselves beside: where they are, how to start them.

Never in our own environment: each pins another version of the SDK. Run `python -m benchmarks.peers
install` to fetch what the committed lock files say (`make bench` does).
"""

import os
import subprocess
import sys
from pathlib import Path

LOCKS = Path(__file__).resolve().parent / "peers"
HOME = LOCKS / ".venv"
STAMP = HOME / ".ready"

_WITHOUT = "every benchmark but calls runs without peers: .venv/bin/python -m benchmarks memory"

_UV = Path(sys.executable).with_name("uv")


class PeerMissing(RuntimeError):
    """A peer that is not installed."""


def python(peer: str) -> str:
    """Return the Python that has a peer.

    Raises:
        PeerMissing: It is not installed.
    """
    found = HOME / peer / "bin" / "python"
    if not found.exists():
        message = f"{peer} is not installed; run: make bench ({_WITHOUT})"
        raise PeerMissing(message)
    return str(found)


def fastmcp(mode: str, port: int, *target: str) -> list[str]:
    """Return the command of a fastmcp proxy: `default` or `connected`, over a URL or a command."""
    script = str(LOCKS.parent / "fastmcp_proxy.py")
    return [python("fastmcp"), script, mode, str(port), *target]


def mcp_proxy(port: int, *target: str) -> list[str]:
    """Return the command of mcp-proxy over a tool server's command."""
    script = str(Path(python("mcp-proxy")).with_name("mcp-proxy"))
    return [script, "--log-level", "ERROR", "--port", str(port), "--", *target]


def install() -> int:
    """Install exactly what the lock files say; return the exit code of what failed, else 0."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for lock in sorted(LOCKS.glob("*.txt")):
        place = HOME / lock.stem
        into = ["--python", str(place)]
        for command in (
            ["venv", "--quiet", "--clear", "--python", sys.executable, str(place)],
            ["pip", "install", "--quiet", *into, "--requirements", str(lock)],
        ):
            code = subprocess.run(
                [str(_UV), "--no-config", *command], env=environ, check=False
            ).returncode
            if code:
                print(_WITHOUT, file=sys.stderr)
                return code
    STAMP.touch()
    return 0


if __name__ == "__main__" and sys.argv[1:] == ["install"]:
    sys.exit(install())
