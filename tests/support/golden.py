"""Snapshots under tests/golden: compared by default, written again with GOLDEN=write."""

import os
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


def matches_golden(name: str, text: str) -> bool:
    """Compare `text` with the snapshot `name`; with GOLDEN=write, make it the snapshot."""
    path = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    assert text == expected, f"{name} changed; if that is meant, run again with GOLDEN=write"
    return True
