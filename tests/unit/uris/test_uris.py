"""URIs: templates that a hostile server made, and the spellings of one resource."""

import pytest

from thoughtgate.uris import becomes, spellings


@pytest.mark.parametrize(
    ("template", "uri", "fits"),
    [
        ("db://{table}/{id}", "db://users/1", True),
        ("db://{table}/{id}", "db://users", False),
        ("db://{table}", "db://", True),
        ("plain://x", "plain://x", True),
        ("plain://x", "plain://xy", False),
        ("a{x}a", "a", False),
        ("a{x}a", "aa", True),
        ("{a}x{b}x{c}", "xx", True),
        ("{a}x{b}x{c}", "x", False),
        ("a{x}b{y}bc", "abbc", True),
        ("a{x}b{y}bc", "abc", False),
        ("{a", "{a", True),
        ("f://{+path}{?q}.txt", "f://a/b?q=1\n.txt", True),
    ],
)
def test_a_template_becomes_what_its_texts_allow(template: str, uri: str, fits: bool) -> None:
    assert becomes(template, uri) is fits


@pytest.mark.parametrize("text", ["x", "", "xxxxxxxx", "{"])
def test_no_template_costs_more_than_its_length(text: str) -> None:
    """As a regular expression, eight expressions and sixty letters took twenty seconds."""
    assert not becomes(("{a}" + text) * 1_000 + "{b}end", "x" * 8_000)


def test_no_uri_is_dear_to_spell() -> None:
    assert spellings("%" + "25" * 4_000) is None
    assert spellings("thoughtgate+a:" * 500 + "x") is None
    assert spellings("a:" + "/." * 4_000) is not None
    assert spellings("%" * 8_000) is not None
