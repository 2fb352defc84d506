"""Generated pages equal what the code says today."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "page", ["configuration.md", "command-line.md", "servers.md", "admin-api.md"]
)
def test_a_generated_page_is_up_to_date(page: str) -> None:
    expected = generator().PAGES[page]()
    found = (DOCS / "reference" / page).read_text(encoding="utf-8")
    assert found == expected, "run `make docs`"
