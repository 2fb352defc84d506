"""What is shipped, what is pinned, and what may not stand in the repository."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.source import PACKAGES, ROOT, name_of

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
PEERS = ROOT / "tests" / "peers"

# put together here, so that this file does not hold what it looks for
PRIVATE = (
    r"sub" + r"agent",
    r"(?<![\w./-])/wo" + r"rk/",
    r"/ro" + r"ot/",
    r"\.\./sha" + r"red",
    r"/(?:home|Users)/(?!you\b|user\b|NAME\b)\w+",
    r"\bissue \d",
    r"registry\.npm" + r"js|files\.python" + r"hosted|//pypi\." + r"org",
)
_SKIPPED = {".git", ".venv", "node_modules", "__pycache__", "dist", "build", "out", "data",
            ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "demo-out"}  # fmt: skip


def test_every_package_is_in_the_wheel_and_typed() -> None:
    assert sorted(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == sorted(
        PACKAGES
    )
    for package in PACKAGES:
        assert (ROOT / package / "__init__.py").is_file()
        assert (ROOT / package / "py.typed").is_file()


def test_no_folder_of_a_package_lacks_its_init() -> None:
    bare = {
        name_of(path.parent)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if not (path.parent / "__init__.py").exists() and "migrations" not in path.parts
    }
    assert bare == set()


def _locked() -> dict[str, str]:
    lines = [line.partition(";")[0].strip() for line in LOCK.splitlines() if line.strip()]
    return {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in lines}


def test_the_lock_satisfies_what_the_project_asks_for() -> None:
    asked = [
        *PROJECT["project"]["dependencies"],
        *(text for extra in PROJECT["project"]["optional-dependencies"].values() for text in extra),
        *PROJECT["dependency-groups"]["dev"],
    ]
    locked = _locked()
    unmet = [
        text
        for text in asked
        if not Requirement(text).specifier.contains(
            Version(locked.get(canonicalize_name(Requirement(text).name), "0")), prereleases=True
        )
    ]
    assert unmet == [], "run `make lock`"


def test_the_lock_pins_every_package_exactly_and_names_no_address() -> None:
    for line in LOCK.splitlines():
        assert re.fullmatch(r"[a-z0-9._-]+==[^ ;=]+( ; .+)?", line), line


def test_the_environment_is_the_locked_one() -> None:
    installed = {name: version(name) for name in ("mcp", "jsonschema-rs", "msgspec", "pytest")}
    assert installed == {name: _locked()[name] for name in installed}, "run `make setup`"


def test_the_npm_peers_are_pinned_and_their_lock_names_no_address() -> None:
    package = json.loads((PEERS / "package.json").read_text(encoding="utf-8"))
    lock = json.loads((PEERS / "package-lock.json").read_text(encoding="utf-8"))
    assert lock["packages"][""]["dependencies"] == package["dependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", pin) for pin in package["dependencies"].values())
    assert not any("resolved" in entry for entry in lock["packages"].values())
    assert all("integrity" in entry for name, entry in lock["packages"].items() if name)


def test_every_script_of_the_project_can_be_loaded() -> None:
    entries = distribution("thoughtgate").entry_points.select(group="console_scripts")
    assert {entry.name for entry in entries} == set(PROJECT["project"]["scripts"])
    assert all(callable(entry.load()) for entry in entries)


def _written_files() -> Iterator[Path]:
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        files = (Path(folder, name) for name in names if name not in _SKIPPED)
        yield from (file for file in files if file.is_file() and file.stat().st_size < 2_000_000)


def test_nothing_of_anyone_s_workplace_stands_in_the_repository() -> None:
    private = re.compile("|".join(PRIVATE))
    found = []
    for path in _written_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{name_of(path)}: {match[0]}" for match in private.finditer(f"{name_of(path)}\n{text}")
        ]
    assert found == []
