"""The pages about faults: what they name is there, and nothing is missing."""

import ast
import re
from dataclasses import fields

from tests.support.source import ROOT, text_of, tree_of
from thoughtgate.core.errors import OUTCOMES
from thoughtgate.testing.faults import Fault, Kind

HAPPENS = text_of(ROOT / "docs" / "explanation" / "faults.md")
TRY = text_of(ROOT / "docs" / "how-to" / "test-against-faults.md")


def first_column(page: str, head: str) -> list[str]:
    """Return what stands in backquotes in the first column of the table with this head."""
    table = page.partition(f"\n{head}\n")[2].partition("\n\n")[0]
    rows = table.splitlines()[1:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_every_test_that_holds_a_row_exists() -> None:
    named = re.findall(r"`…([\w/]+\.py)::(\w+)`", HAPPENS)
    assert len(named) > 30
    missing = [
        f"{file}::{name}"
        for file, name in named
        if name
        not in {
            node.name
            for node in ast.walk(tree_of(ROOT / "tests" / file))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
    ]
    assert missing == []


def test_every_row_is_held_by_a_test() -> None:
    rows = [row for row in HAPPENS.splitlines() if row.startswith("| ") and "held by" not in row]
    held = [row for row in rows if row.count("|") == 4]
    assert [row for row in held if "::test_" not in row] == []


def test_what_is_known_of_an_outcome_is_explained() -> None:
    assert first_column(HAPPENS, "| `outcome` | words | what it means | calling again |") == [
        *OUTCOMES
    ]
    assert [words for words in OUTCOMES.values() if f"| {words} |" not in HAPPENS] == []


def test_every_fault_and_every_field_of_a_plan_is_explained() -> None:
    assert first_column(TRY, "| fault | what the server does |") == [kind.value for kind in Kind]
    names = {field.name for field in fields(Fault)}
    assert {*first_column(TRY, "| field | meaning |")} == names
