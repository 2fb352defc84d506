"""Every example runs, and asserts what it shows."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import pages
from tests.support.source import ROOT, name_of, text_of

EXAMPLES = sorted((ROOT / "examples").glob("*/main.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_an_example_runs_and_says_something(example: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, timeout=50, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.strip()


def test_every_folder_of_an_example_says_how_to_run_it() -> None:
    folders = {path.parent for path in (ROOT / "examples").glob("*/*.py")}
    told = {page.parent: text_of(page) for page in pages() if page.name == "README.md"}
    for folder in folders:
        assert "python examples/" in told[folder] or "make demo" in told[folder], folder
