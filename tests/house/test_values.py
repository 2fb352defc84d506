"""Values are frozen, keyword-only dataclasses; errors have codes; the core stands on nothing."""

import ast
import importlib
import pkgutil
import re
import sys
from collections import Counter

import thoughtgate
from tests.support.source import PACKAGES, ROOT, files, name_of, text_of, tree_of
from thoughtgate.core.errors import GateError

MUTABLE = {
    "gateway/thoughtgate/runs/spans.py::OpenSpan": "gathers attributes until the span ends",
    "gateway/thoughtgate/schema/graph.py::Graph": "grows while a schema is walked",
    "gateway/thoughtgate/schema/graph.py::Node": "gets its edges while a schema is walked",
    "gateway/thoughtgate/schema/reference.py::Run": "what one search learns on its way",
    "gateway/thoughtgate/surface/clients.py::Live": "the live side of a session",
    "gateway/thoughtgate/testing/fake_http.py::Manners": "a test changes them while it serves",
    "gateway/thoughtgate/testing/fake_turn.py::Turn": "one request while it is served",
    "gateway/thoughtgate/upstream/ports.py::Counts": "counters that only go up",
    "servers/thoughtgate_servers/logs/classify.py::FileReport": "counts while a file is read",
    "servers/thoughtgate_servers/logs/classify.py::Tally": "counts while a file is read",
    "servers/thoughtgate_servers/logs/finding.py::Search": "what a search has found so far",
}
"""Public dataclasses that change while something goes on; all others are values."""

UNSLOTTED = {
    "gateway/thoughtgate/core/calls.py::Call": "copied whole by each stage that changes it",
}
"""Values without slots: each costs memory, and says what for."""

ERRORS_PAGE = ROOT / "docs" / "reference" / "errors.md"


def test_public_dataclasses_are_frozen_slotted_and_keyword_only() -> None:
    found = 0
    loose = []
    for path in files(*PACKAGES):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                options, name = _dataclass_options(node), f"{name_of(path)}::{node.name}"
                found += options is not None
                wanted = (
                    {"frozen", "kw_only"} if name in UNSLOTTED else {"frozen", "slots", "kw_only"}
                )
                if options is not None and not wanted <= options:
                    loose.append(name)
    assert found > 30
    assert sorted(set(loose) - set(MUTABLE)) == []
    assert sorted(set(MUTABLE) - set(loose)) == [], "no longer needed on the list"


def _dataclass_options(node: ast.ClassDef) -> set[str] | None:
    for decorator in node.decorator_list:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(call).split(".")[-1] == "dataclass":
            keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
            return {
                keyword.arg
                for keyword in keywords
                if keyword.arg and isinstance(keyword.value, ast.Constant) and keyword.value.value
            }
    return None


def test_the_core_imports_the_standard_library_and_itself_only() -> None:
    foreign = {
        (name_of(path), name)
        for path in files("gateway/thoughtgate/core")
        for name in _imports(tree_of(path))
        if name.partition(".")[0] not in sys.stdlib_module_names
        and not name.startswith("thoughtgate.core")
    }
    assert foreign == set()


def _imports(tree: ast.Module) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return names


def _errors() -> list[type[GateError]]:
    for module in pkgutil.walk_packages(thoughtgate.__path__, "thoughtgate."):
        if not re.search(r"__main__|\.migrations\.", module.name):
            importlib.import_module(module.name)
    found: list[type[GateError]] = [GateError]
    for kind in found:
        found += kind.__subclasses__()
    ours = [kind for kind in found if kind.__module__.startswith("thoughtgate.")]
    return [
        kind for kind in ours if "code" in vars(kind)
    ]  # else it is its parent, told apart inside


def test_every_error_has_a_code_of_its_own() -> None:
    codes = Counter(kind.code for kind in _errors())
    assert [code for code, times in codes.items() if times > 1] == []
    assert [code for code in codes if not re.fullmatch(r"[a-z]+(_[a-z]+)*", code)] == []


def test_every_error_code_is_documented() -> None:
    page = text_of(ERRORS_PAGE)
    assert [kind.code for kind in _errors() if f"`{kind.code}`" not in page] == []


def test_the_errors_page_names_no_code_that_is_gone() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \|", text_of(ERRORS_PAGE), re.MULTILINE)
    assert sorted(rows) == sorted(kind.code for kind in _errors())
