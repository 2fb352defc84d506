"""The official JSON Schema suite as values: every case of every draft we speak, and its remotes.

Never fetches: `remotes` are the files that the suite expects to be served from localhost:1234.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from thoughtgate.core.json import JsonValue
from thoughtgate.schema.dialects import DIALECTS, Dialect

ROOT = Path(__file__).parent.parent / "data" / "jsts"
_BASE = "http://localhost:1234/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One schema of the suite with its instances: (description, value, whether it is valid)."""

    file: str
    name: str
    schema: JsonValue
    tests: tuple[tuple[str, JsonValue, bool], ...]


def dialect(name: str) -> Dialect:
    return next(found for found in DIALECTS if found.name == name)


@cache
def required(name: str) -> tuple[Group, ...]:
    """Return the required cases of one draft: the files at the top of its folder."""
    return tuple(group for path in sorted(_folder(name).glob("*.json")) for group in _read(path))


@cache
def optional(name: str) -> tuple[Group, ...]:
    """Return the optional cases of one draft, without formats."""
    folder = _folder(name) / "optional"
    return tuple(group for path in sorted(folder.glob("*.json")) for group in _read(path))


@cache
def remotes(name: str) -> dict[str, JsonValue]:
    """Return what references of one draft's cases may lead to."""
    found: dict[str, JsonValue] = {}
    for path in sorted((ROOT / "remotes").rglob("*.json")):
        relative = path.relative_to(ROOT / "remotes")
        if not relative.parts[0].startswith("draft") or relative.parts[0] == name:
            found[_BASE + relative.as_posix()] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _folder(name: str) -> Path:
    folder = ROOT / "tests" / name
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    return folder


def _read(path: Path) -> Iterator[Group]:
    for group in json.loads(path.read_text(encoding="utf-8")):
        yield Group(
            file=path.stem,
            name=group["description"],
            schema=group["schema"],
            tests=tuple((t["description"], t["data"], t["valid"]) for t in group["tests"]),
        )
