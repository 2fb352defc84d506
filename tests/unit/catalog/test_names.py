"""Advertised names: stable, short, safe, and never two tools under one."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thoughtgate.catalog import MAX_ADVERTISED, advertised_name, safe_name

TOOL_NAMES = st.from_regex(r"[A-Za-z0-9_.-]{1,128}", fullmatch=True)
SERVER_NAMES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,39}", fullmatch=True)
CLOSE_NAMES = st.text("ab_.-0", min_size=1, max_size=6)
PAIRS = st.one_of(
    st.tuples(SERVER_NAMES, TOOL_NAMES),
    st.tuples(CLOSE_NAMES, CLOSE_NAMES),
    st.tuples(CLOSE_NAMES, st.builds(lambda end: "x" * 70 + end, CLOSE_NAMES)),
)


def test_a_plain_name_is_server_and_tool_joined() -> None:
    assert advertised_name("files", "read_text") == "files__read_text"


def test_a_leading_underscore_is_no_reason_to_refuse() -> None:
    assert advertised_name("files", "_read") == "files___read"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b__c"), ("a__b", "c")),
        (("a", "_b"), ("a_", "b")),
        (("a", "b.c"), ("a", "b_c")),
        (("a", "b.c"), ("a", "b-c")),
        (("a", "x" * 100), ("a", "x" * 101)),
        (("get", "catalog-entity"), ("get-catalog", "entity")),
        (("test", "x"), ("test-", "x")),
    ],
)
def test_names_that_could_be_confused_differ(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert advertised_name(*one) != advertised_name(*other)


def test_a_tool_that_imitates_a_shortened_name_gets_another() -> None:
    shortened = advertised_name("a", "b.c")
    imitation = shortened.removeprefix("a__")
    assert advertised_name("a", imitation) != shortened


@given(one=PAIRS, other=PAIRS)
@example(one=("a", "."), other=("a", "_"))
def test_different_tools_never_share_a_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (advertised_name(*one) == advertised_name(*other)) == (one == other)


@given(pair=PAIRS)
def test_every_name_fits_the_alphabet_and_length_of_all_clients(pair: tuple[str, str]) -> None:
    name = advertised_name(*pair)
    assert re.fullmatch(rf"[A-Za-z0-9_-]{{1,{MAX_ADVERTISED}}}", name)
    assert name == advertised_name(*pair)


@given(one=TOOL_NAMES, other=TOOL_NAMES)
def test_own_names_made_safe_stay_apart(one: str, other: str) -> None:
    assert (safe_name(one) == safe_name(other)) == (one == other)
