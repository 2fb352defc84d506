"""How big things may get. There is no list of exceptions: what is too big is divided."""

import ast

from tests.support.source import FOLDERS, PACKAGES, code_lines, files, name_of, text_of, tree_of

FILE_LIMIT = 400
TEST_FILE_LIMIT = 600
FUNCTION_LIMIT = 60
CORE_LIMIT = 700
PROTOCOL_LIMIT = 4


def test_no_file_is_longer_than_its_limit() -> None:
    too_long = {
        name_of(path): lines
        for path in files(*FOLDERS)
        if (lines := len(text_of(path).splitlines()))
        > (TEST_FILE_LIMIT if name_of(path).startswith("tests/") else FILE_LIMIT)
    }
    assert too_long == {}


def test_no_function_is_longer_than_a_screen() -> None:
    too_long = {
        f"{name_of(path)}::{node.name}": lines
        for path in files(*FOLDERS)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LIMIT
    }
    assert too_long == {}


def test_the_core_stays_small() -> None:
    counted = {name_of(path): code_lines(path) for path in files("gateway/thoughtgate/core")}
    assert len(counted) > 5
    assert sum(counted.values()) <= CORE_LIMIT, counted


def test_a_protocol_has_at_most_four_methods() -> None:
    protocols = {
        f"{name_of(path)}::{node.name}": sum(
            isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_property(item)
            for item in node.body
        )
        for path in files(*PACKAGES)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and _is_protocol(node)
    }
    assert "gateway/thoughtgate/core/ports.py::Sender" in protocols
    assert {name: count for name, count in protocols.items() if count > PROTOCOL_LIMIT} == {}


def _is_protocol(node: ast.ClassDef) -> bool:
    """Tell a typing Protocol from asyncio's class of the same name."""
    bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
    return "Protocol" in bases or "typing.Protocol" in bases


def _is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator) == "property" for decorator in function.decorator_list)
