"""The versions of what the gateway runs on.

Never judges what it cannot name: an unknown newer version is taken as good.
"""

import platform
import sqlite3
import sys
from collections.abc import Iterator

from thoughtgate.app.doctor.findings import Checked, Finding

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 35)
"""The first with RETURNING, which the registry uses."""


def check_versions() -> Checked:
    """Look at Python and SQLite."""
    python, sqlite = sys.version_info[:3], sqlite3.sqlite_version_info
    said = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    return Checked(name="versions", said=said, findings=tuple(judged_versions(python, sqlite)))


def judged_versions(python: tuple[int, ...], sqlite: tuple[int, ...]) -> Iterator[Finding]:
    """Yield what is too old."""
    for name, found, oldest in (
        ("Python", python, OLDEST_PYTHON),
        ("SQLite", sqlite, OLDEST_SQLITE),
    ):
        if found[: len(oldest)] < oldest:
            wanted = ".".join(map(str, oldest))
            yield Finding(
                code="versions_old",
                where=name,
                what=f"it is {'.'.join(map(str, found))}, {wanted} is the oldest that will do",
                mend=f"install {name} {wanted} or newer, then install thoughtgate into it",
            )
