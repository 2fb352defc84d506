"""Who may load gRPC's library, which costs every start its time."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.source import PACKAGES, holding, name_of, tree_of


def imported(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, wherever in it."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_only_modules_that_are_named_for_it_import_grpc() -> None:
    others = [
        name_of(path)
        for path in holding("grpc", *PACKAGES)
        if any(name.split(".")[0] == "grpc" for name in imported(path))
        and not any(part.startswith("grpc") for part in path.parts)
        and not path.name.endswith("_pb2_grpc.py")
    ]
    assert others == []


def test_no_other_module_imports_one_of_those_at_its_start() -> None:
    """Else it would be loaded with it: they are loaded by their names, where they are wanted."""
    rooms = ("thoughtgate.surface.grpc", "thoughtgate.upstream.grpc", "thoughtgate_client.grpc_")
    loading = [
        name_of(path)
        for path in holding("grpc", *PACKAGES)
        if not any(part.startswith("grpc") for part in path.parts)
        for node in tree_of(path).body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(rooms)
    ]
    assert loading == []
