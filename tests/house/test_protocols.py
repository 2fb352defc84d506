"""The protocols: their stubs are up to date, and no change breaks whoever speaks an older one."""

import shutil
from pathlib import Path

import pytest

from tests.support import stubs


def test_the_stubs_are_what_the_protocols_make_today(tmp_path: Path) -> None:
    stubs.generate(tmp_path)
    old = [
        str(path)
        for path in stubs.stubs()
        if (stubs.PROTO / path).read_bytes() != (tmp_path / path).read_bytes()
    ]
    assert old == [], "run: make proto"


def test_no_stub_is_left_of_a_protocol_that_is_gone() -> None:
    there = {path.relative_to(stubs.PROTO) for path in stubs.PROTO.rglob("*_pb2*.py*")}
    there = {path for path in there if "__pycache__" not in path.parts}
    assert there == set(stubs.stubs())


@pytest.mark.peers
def test_the_protocols_are_named_and_commented_as_the_linter_wants() -> None:
    done = stubs.buf("lint")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.peers
def test_the_protocols_break_nothing_that_was_released() -> None:
    done = stubs.buf("breaking", "--against", str(stubs.BASELINE))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.peers
def test_a_field_that_gets_another_number_is_noticed(tmp_path: Path) -> None:
    changed = tmp_path / "proto"
    shutil.copytree(stubs.PROTO, changed, ignore=shutil.ignore_patterns("*.py*"))
    protocol = changed / "thoughtgate_proto" / "tools" / "v1" / "tool_server.proto"
    text = protocol.read_text(encoding="utf-8")
    protocol.write_text(text.replace("bool is_error = 3;", "bool is_error = 9;"), encoding="utf-8")
    done = stubs.buf("breaking", str(changed), "--against", str(stubs.BASELINE))
    assert done.returncode != 0
    assert "is_error" in done.stdout
