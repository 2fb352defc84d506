"""The official suite: installed from its committed lock file, run, and its findings read.

Never uses a Node of the machine, and never leaves a process behind: each run has a group of its
own, ended when its time is over.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from tests.support import peers

HERE: Final = Path(__file__).resolve().parent
MODULES: Final = HERE / "node_modules"
STAMP: Final = MODULES / ".ready"
OLDEST_NODE: Final = 22

_NPM: Final = peers.NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

_STAMPED: Final = re.compile(r"(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
_LISTED: Final = re.compile(r"\s+- (\S+)")


class NotInstalled(Exception):
    """The suite is not there, or its Node is too old."""

    def __init__(self, found: str) -> None:
        super().__init__(f"no suite on Node {OLDEST_NODE} or newer, found {found}; run: make setup")


class Release(StrEnum):
    """Which of the two installed versions, by the name of its folder."""

    STABLE = "conformance-0.1"
    NEXT = "conformance-0.2"

    @property
    def version(self) -> str:
        """Return the version that is installed."""
        package = json.loads((MODULES / self / "package.json").read_text(encoding="utf-8"))
        return str(package["version"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What became of one scenario: how many checks went well, and what the others said."""

    name: str
    passed: int = 0
    failures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Tell whether nothing failed."""
        return not self.failures


def install() -> int:
    """Install exactly what the lock file says and return npm's exit code.

    No script of a package runs.
    """
    command = [str(peers.NODE), str(_NPM), "ci", "--ignore-scripts", "--loglevel=error"]
    code = subprocess.run(command, cwd=HERE, env=peers.environment(), check=False).returncode
    if code == 0:
        STAMP.touch()
    return code


def require() -> str:
    """Return the version of the Node that runs the suite.

    Raises:
        NotInstalled: The suite is not there, or its Node is too old.
    """
    if not STAMP.exists():
        raise NotInstalled("nothing")
    told = subprocess.run([peers.NODE, "--version"], capture_output=True, text=True, check=True)
    version = told.stdout.strip()
    if int(version.removeprefix("v").split(".")[0]) < OLDEST_NODE:
        raise NotInstalled(version)
    return version


def server_scenarios(release: Release, requirements: str = "") -> tuple[str, ...]:
    """Return the names of the server scenarios that are scored, as the suite lists them."""
    options = ["--requirements", requirements] if requirements else []
    told = _run(release, ["list", *options], seconds=30.0)
    section = told.split("Server scenarios", 1)[1].split("Client scenarios", 1)[0]
    return tuple(found[1] for line in section.splitlines() if (found := _LISTED.match(line)))


def run(
    release: Release,
    arguments: Sequence[str],
    *,
    folder: Path,
    seconds: float,
    extra: Mapping[str, str] | None = None,
) -> dict[str, Scenario]:
    """Run the suite and return what became of each scenario that it came to.

    What the suite printed is kept as `suite.log` in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    words = _run(release, [*arguments, "-o", str(folder)], seconds=seconds, extra=extra or {})
    (folder / "suite.log").write_text(words, encoding="utf-8")
    found = (_read(path) for path in sorted(folder.glob("*/checks.json")))
    return {scenario.name: scenario for scenario in found}


def _run(
    release: Release,
    arguments: Sequence[str],
    *,
    seconds: float,
    extra: Mapping[str, str] | None = None,
) -> str:
    process = subprocess.Popen(
        [str(peers.NODE), str(MODULES / release / "dist" / "index.js"), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**peers.environment(), **(extra or {})},
        start_new_session=True,
    )
    try:
        words, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        words, _ = process.communicate()
        words += f"\nended after {seconds} seconds\n"
    return words


def _read(path: Path) -> Scenario:
    stamped = _STAMPED.fullmatch(path.parent.name)
    name = stamped[1] if stamped else path.parent.name
    checks = json.loads(path.read_text(encoding="utf-8"))
    told: dict[str, list[str]] = {"SUCCESS": [], "FAILURE": [], "WARNING": []}
    for check in checks:
        words = f"{check['id']}: {check.get('errorMessage') or check.get('description', '')}"
        told.setdefault(check["status"], []).append(words)
    return Scenario(
        name=name,
        passed=len(told["SUCCESS"]),
        failures=tuple(told["FAILURE"]),
        warnings=tuple(told["WARNING"]),
    )


if __name__ == "__main__" and sys.argv[1:] == ["install"]:
    sys.exit(install())
