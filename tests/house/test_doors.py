"""What is caught, what is suppressed, and how tests wait."""

import ast
import re
from collections import Counter

from tests.support.source import (
    FOLDERS,
    PACKAGES,
    comments,
    files,
    holding,
    name_of,
    text_of,
    tree_of,
)

DOORS = {
    "gateway/thoughtgate/surface": "a bug in one request becomes a reply, not the server's end",
    "gateway/thoughtgate/runs": "a bug in one run ends that run, with its reason",
    "gateway/thoughtgate/app": "a plug-in that cannot be loaded is a configuration error",
}
"""The three rooms with a door: at most one handler each catches everything."""

CEILINGS = {"noqa": 5, "type: ignore": 10}
"""How many suppressions there are. Put in the new number when it falls; it may not rise."""

_SUPPRESSION = re.compile(r"#\s*(noqa|type:\s*ignore|pragma|pyright|mypy|ruff)\b")
_WITH_REASON = re.compile(
    r"# (noqa: [A-Z]+[0-9]+(, ?[A-Z]+[0-9]+)*|type: ignore\[[a-z-]+(, ?[a-z-]+)*\]) +(- |# )\S+ \S+"
)

SLEEPERS = {
    "tests/support/waiting.py": "the one bounded poll that all tests share",
    "tests/chaos/pace.py": "a run that `make chaos` makes, and no test",
}


def test_everything_is_caught_only_at_the_three_doors() -> None:
    caught = [
        name_of(path)
        for path in holding("except", *PACKAGES)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler) and _catches_all(node) and not _raises_again(node)
    ]
    rooms = Counter(
        next((door for door in DOORS if name.startswith((f"{door}/", f"{door}."))), name)
        for name in caught
    )
    assert {room: times for room, times in rooms.items() if room not in DOORS or times > 1} == {}


def _catches_all(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(kind) in {"Exception", "BaseException"} for kind in kinds)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def test_every_suppression_names_a_rule_and_a_reason() -> None:
    bare = [
        f"{name_of(path)}:{line} {comment}"
        for path in files(*FOLDERS)
        if _SUPPRESSION.search(text_of(path))
        for line, comment in comments(path)
        if _SUPPRESSION.search(comment) and not _WITH_REASON.search(comment)
    ]
    assert bare == []


def test_the_number_of_suppressions_only_falls() -> None:
    counted = dict.fromkeys(CEILINGS, 0)
    for kind in CEILINGS:
        for path in holding(f"# {kind}", *FOLDERS):
            counted[kind] += sum(f"# {kind}" in comment for _, comment in comments(path))
    assert counted == CEILINGS


def test_tests_wait_for_events_not_for_time() -> None:
    sleeps = [
        f"{name_of(path)}:{node.lineno}"
        for path in holding("sleep", "tests")
        if name_of(path) not in SLEEPERS
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"time.sleep", "asyncio.sleep", "sleep", "anyio.sleep"}
        and not (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)
    ]
    assert sleeps == []


def test_tests_patch_nothing() -> None:
    patches = [
        name_of(path)
        for path in holding("mock", "tests")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and "mock" in f"{getattr(node, 'module', '')} {[alias.name for alias in node.names]}"
    ]
    assert patches == []
