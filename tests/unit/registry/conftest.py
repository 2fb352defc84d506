"""A fresh registry in a folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.registries import open_in
from thoughtgate.registry.store import Registry


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def registry(folder: Path) -> Iterator[Registry]:
    registry = open_in(folder)
    yield registry
    registry.close()
