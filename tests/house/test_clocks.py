"""The time of day is information: where something waits or expires, steady time is read."""

import ast

from tests.support.source import files, name_of, tree_of

ROOMS = tuple(
    f"gateway/thoughtgate/{room}" for room in ("calls", "runs", "surface", "upstream", "engines")
)
"""Rooms in which calls, runs, streams and servers have their time."""

WALL = {"time.time", "time.time_ns", "time_ns", "datetime.now", "datetime.utcnow"}

READERS = {
    "calls/audited.py": "when a row was written",
    "calls/intended.py": "when a row was written",
    "calls/sent.py": "when a span began and ended",
    "calls/traced.py": "when a span began and ended",
    "runs/spans.py": "when a span ended",
    "surface/admin.py": "when a row was written",
    "surface/comebacks.py": "how old a session's id is, which outlives the process",
    "surface/rounds.py": "how old a sealed state is, which outlives the process",
    "upstream/auth_flow.py": "until when a login is good",
    "upstream/auth_logins.py": "until when a login is good",
}
"""Who reads the time of day there, and for what."""


def test_no_deadline_and_no_pause_reads_the_time_of_day() -> None:
    found = {
        name_of(path).removeprefix("gateway/thoughtgate/")
        for path in files(*ROOMS)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node) in WALL
    }
    assert sorted(found) == sorted(READERS)
