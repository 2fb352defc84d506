"""JSON as people keep it in settings: with comments and trailing commas, and nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.config import documents
from thoughtgate.config.texts import Unreadable

PLAIN = json.JSONDecoder(parse_constant=documents.refuse)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def read(text: str) -> Any:
    return documents.parse(text, PLAIN)[1]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('// first\n{"a": 1} // last', {"a": 1}),
        ('{/* in\nside */"a"/**/:/***/1}', {"a": 1}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('[{"a": 1,} /* , */ , // ,\n]', [{"a": 1}]),
        ('{"url": "https://h/mcp", "b": "/* no */", "c": ",]"}',
         {"url": "https://h/mcp", "b": "/* no */", "c": ",]"}),
        (r'["\"//", "\\", 1]', ['"//', "\\", 1]),
        ('"\u2028"', "\u2028"),
        ("", {}),
        ("// nothing yet\n", {}),
    ],
)  # fmt: skip
def test_comments_and_trailing_commas_are_read_over(text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1\n "b": 2}', "line 2, column 2: "),
        ('{\n/* two\nlines */ "a": }', "line 3, column 15: "),
        ("[,]", "line 1, column 2: "),
        ("[1,,]", "line 1, column 4: "),
        ('{"a":,}', "line 1, column 6: "),
        ("[1] /", "line 1, column 5: "),
        ("[1] /* never closed", "line 1, column 5: "),
        ('["one\nline"]', "line 1, column 6: "),
        ("{'a': 1}", "line 1, column 2: "),
        ("# a comment of another kind\n[]", "line 1, column 1: "),
        ("[NaN]", "line 1, column 2: not valid JSON: NaN is no value"),
        ("[-Infinity]", "-Infinity is no value"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5_000, "too many digits"),
    ],
)
def test_everything_else_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read(text)
    assert said in str(caught.value)


@given(JSON, st.sampled_from([None, 1]), st.sampled_from(["/* x, */", "// ]}\n", " "]))
def test_json_stays_what_it_is(value: Any, indent: int | None, between: str) -> None:
    text = json.dumps(value, indent=indent)
    assert read(between + text + between) == value
