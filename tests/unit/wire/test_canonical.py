"""Canonical JSON: one spelling for each value, and none for what is no value."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.core.json import canonical, digest, digest_of

LETTERS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | LETTERS,
    lambda inner: st.lists(inner) | st.dictionaries(LETTERS, inner),
    max_leaves=10,
)


@settings(max_examples=60)
@given(VALUES)
def test_it_is_what_the_standard_library_writes_with_sorted_keys(value: Any) -> None:
    written = json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    assert canonical(value) == written.encode()
    assert digest(value) == digest_of(written.encode())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_what_is_no_number_in_json_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(value)


def test_a_value_that_contains_itself_is_refused_and_the_next_one_is_written_as_ever() -> None:
    loop: dict[str, Any] = {"a": 1}
    loop["itself"] = [loop]
    with pytest.raises((RecursionError, ValueError)):
        canonical(loop)
    assert canonical({"b": [1.5], "a": None}) == b'{"a":null,"b":[1.5]}'
