"""Strict JSON: what it takes, it takes as it is; what could be read in two ways, it refuses."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate_servers import strict

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | st.integers() | TEXT | FLOATS
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner))


@settings(max_examples=100, deadline=None)
@given(value=VALUES, ascii_only=st.booleans())
def test_what_is_written_is_read(value: object, ascii_only: bool) -> None:
    assert strict.loads(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"a": 1, "a": 1}', "twice"),
        (b'{"a": {"b": 1, "b": 2}}', "twice"),
        (b"NaN", "NaN"),
        (b"-Infinity", "NaN"),
        (b"1e400", "double"),
        (b'"\\udc00"', "surrogate"),
        (b'{"\\ud800": 1}', "surrogate"),
        (b"\xc0\x80", "UTF-8"),
        (b"\xef\xbb\xbf{}", "character 0"),
        (b"[" * 65 + b"]" * 65, "deeper"),
        (b"[" * 100_000 + b"]" * 100_000, "deeper"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "deeper"),
        (b"9" * 5000, "digits"),
        (b"", "character 0"),
        (b"1 2", "character 2"),
    ],
)
def test_what_is_not_strict_is_refused_with_a_reason(text: bytes, why: str) -> None:
    with pytest.raises(strict.NotStrict, match=why):
        strict.loads(text)


def test_depth_counts_what_is_inside_one_another_only() -> None:
    assert len(strict.loads(b"[" + b",".join([b"[[]]"] * 100) + b"]")) == 100
    assert strict.loads(b"[" * 64 + b"]" * 64)
