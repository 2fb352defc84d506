"""The repository's own source, read as text and as syntax trees, for the house tests."""

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "gateway/thoughtgate",
    "client/thoughtgate_client",
    "servers/thoughtgate_servers",
    "proto/thoughtgate_proto",
)
FOLDERS = ("gateway", "client", "servers", "proto", "tests", "examples", "benchmarks", "docs")

_SKIPPED = {".venv", "node_modules", "__pycache__", ".git", "dist", "build", "out"}
_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
           tokenize.ENCODING, tokenize.ENDMARKER}  # fmt: skip


def name_of(path: Path) -> str:
    """Return the path as the repository names it."""
    return path.relative_to(ROOT).as_posix()


@cache
def files(*folders: str, suffix: str = ".py") -> tuple[Path, ...]:
    """Return the written files below `folders`, sorted; generated stubs are left out."""
    return tuple(
        path
        for folder in folders
        for path in sorted((ROOT / folder).rglob(f"*{suffix}"))
        if not _SKIPPED.intersection(path.relative_to(ROOT).parts)
        and not path.stem.endswith(("_pb2", "_pb2_grpc"))
    )


@cache
def text_of(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


def holding(word: str, *folders: str) -> tuple[Path, ...]:
    """Return the files that hold a word at all: only those need to be parsed for it."""
    return tuple(path for path in files(*folders) if word in text_of(path))


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(text_of(path), filename=str(path))


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and text of every comment; strings that look like one are none."""
    for token in tokenize.generate_tokens(io.StringIO(text_of(path)).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def code_lines(path: Path) -> int:
    """Count the lines that hold code: no blank lines, comments or docstrings."""
    prose: set[int] = set()
    for node in ast.walk(tree_of(path)):
        if _is_prose(node):
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text_of(path)).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - prose)


def _is_prose(node: ast.AST) -> TypeGuard[ast.Expr]:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
