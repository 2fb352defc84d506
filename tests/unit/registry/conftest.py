"""A fresh registry in a folder of its own."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.registries import Spawn, open_in, python
from thoughtgate.registry.store import Registry


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def registry(folder: Path) -> Iterator[Registry]:
    registry = open_in(folder)
    yield registry
    registry.close()


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start programs in other processes, which end with the test."""
    with ExitStack() as stack:
        yield lambda program, *arguments: stack.enter_context(python(program, *arguments))
