"""Editing JSON with comments: what is not ours stays, however the file is written."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thoughtgate.config.clients.jsonc import drop, masked, put
from thoughtgate.config.clients.text import with_value, without
from thoughtgate.config.documents import read
from thoughtgate.config.texts import Unreadable

ENTRY = {"command": "/bin/thoughtgate", "args": ["serve", "--stdio"]}
PATH = ("servers", "thoughtgate")

GAPS = st.sampled_from([
    "", "", " ", "\t", "\n", "\r\n", "\n  ", " // c\n", "/* c */", '// ]}",\n', "/* ,\n\n */ ",
])  # fmt: skip
KEYS = st.sampled_from(["a", "b", "name", "//", "/*", 'q"', "ü", ""])
SCALARS = st.one_of(
    st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "x", "// no comment", "/* nor this */", "}", ",]", "\u2028", "a\nb"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)


@st.composite
def texts(draw: st.DrawFn, value: Any) -> str:
    """Write a value as somebody might: with blanks, comments and trailing commas anywhere."""
    if not isinstance(value, dict | list) or not value:
        gap = draw(GAPS) if isinstance(value, dict | list) else ""
        return json.dumps(value)[:1] + gap + json.dumps(value)[1:] if gap else json.dumps(value)
    pairs = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    pieces = []
    for key, item in pairs:
        name = "" if key is None else f"{json.dumps(key)}{draw(GAPS)}:{draw(GAPS)}"
        pieces.append(f"{draw(GAPS)}{name}{draw(texts(item))}{draw(GAPS)}")
    comma = f",{draw(GAPS)}" if draw(st.booleans()) else ""
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return opened + ",".join(pieces) + comma + closed


@st.composite
def files(draw: st.DrawFn) -> str:
    """A client's file: perhaps with servers, in any place among other keys."""
    keys = draw(st.lists(KEYS, unique=True, max_size=3))
    root = {key: draw(VALUES) for key in keys}
    if draw(st.booleans()):
        at = draw(st.integers(0, len(keys)))
        servers = ("servers", draw(st.dictionaries(KEYS, VALUES, max_size=3)))
        items = list(root.items())
        root = dict([*items[:at], servers, *items[at:]])
    text = f"{draw(GAPS)}{draw(texts(root))}{draw(GAPS)}"
    return ("\ufeff" if draw(st.booleans()) else "") + text


def bare(text: str) -> str:
    return "".join(text.split())


def is_within(part: str, whole: str) -> bool:
    """Say whether all of `part` stands in `whole`, in order."""
    rest = iter(whole)
    return all(char in rest for char in part)


@given(files())
@example('{"a": 1, // c\n "servers": {"b": 2 // d\n }, // e\n }')
@example('{ "servers": { /* none */ } }')
def test_putting_an_entry_changes_its_value_only(text: str) -> None:
    after = put(text, PATH, ENTRY)
    assert read(after) == with_value(read(text), PATH, ENTRY)
    assert is_within(bare(text), bare(after))


@given(files())
def test_dropping_it_again_leaves_every_other_value_and_character(text: str) -> None:
    was = read(text)
    again = drop(put(text, PATH, ENTRY), PATH)
    if was.get("servers"):
        assert again == text
    else:
        assert {"servers": {}, **read(again)} == {"servers": {}, **was}
        assert is_within(bare(text), bare(again))


@given(files(), st.data())
def test_dropping_any_server_leaves_every_other_value_and_comment(
    text: str, data: st.DataObject
) -> None:
    was = read(text)
    names = list(was.get("servers", {}))
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    after = drop(text, ("servers", name))
    assert read(after) == without(was, ("servers", name))


@given(files())
def test_a_value_that_is_replaced_keeps_what_is_around_it(text: str) -> None:
    placed = put(text, PATH, ENTRY)
    after = put(placed, (*PATH, "args"), ["other"])
    assert read(after) == with_value(read(placed), (*PATH, "args"), ["other"])
    assert put(after, (*PATH, "args"), ENTRY["args"]) == placed


@given(files())
def test_what_is_shown_holds_no_value_and_no_comment_of_others(text: str) -> None:
    after = put(text, PATH, {**ENTRY, "env": {"KEY": "hidden"}})
    shown = masked(after, frozenset({"/bin/thoughtgate", "serve"}))
    told = read(shown)
    assert told["servers"]["thoughtgate"] == {
        "command": "/bin/thoughtgate", "args": ["serve", "***"], "env": {"KEY": "***"},
    }  # fmt: skip
    others = {**told, "servers": without(told["servers"], ("thoughtgate",))}
    assert {leaf for leaf in leaves(others) if leaf is not None} <= {"***", True, False}
    assert "// c" not in shown
    assert "/* c" not in shown


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": }', 1, 7),
        ('{\n  "a": 1\n  "b": 2\n}', 3, 3),
        ('{\r\n  "a": 1,,\r\n}', 2, 10),
        ('{"a": 1', 1, 8),
        ('{,}', 1, 2),
        ('{"a": [,]}', 1, 8),
        ('{"a": "x\n"}', 1, 9),
        ('{"a": 1} {}', 1, 10),
        ("{'a': 1}", 1, 2),
        ('{"a": NaN}', 1, 7),
        ('{\n/* never closed\n "a": 1}', 2, 1),
        ('{"servers": []}', 1, 13),
        ('{"servers": null}', 1, 13),
        ('[]', 1, 1),
        ('{"servers": {},\n "servers": {}}', 2, 2),
        ('{"servers": {"thoughtgate": 1,\n"thoughtgate": 2}}', 2, 1),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_for_certain_is_refused_with_its_place(
    text: str, line: int, column: int
) -> None:
    with pytest.raises(Unreadable) as caught:
        put(text, PATH, ENTRY)
    assert str(caught.value).startswith(f"line {line}, column {column}: ")


def test_what_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(Unreadable):
        put('{"a":' + "[" * 200_000 + "]" * 200_000 + "}", PATH, ENTRY)


def test_numbers_keep_every_digit() -> None:
    text = '{"big": 123456789012345678901234567890, "small": 1.50, "huge": ' + "9" * 5000 + "}"
    assert is_within(text[:-1], put(text, PATH, ENTRY))


def test_dropping_what_is_not_there_changes_nothing() -> None:
    assert drop('{"servers": {}}', PATH) == '{"servers": {}}'
    assert drop("{}", PATH) == "{}"


def test_a_comment_never_swallows_what_follows_an_entry_that_goes() -> None:
    text = '{"servers": {"a": 1, // one\n"thoughtgate": 2 } }'
    assert read(drop(text, PATH)) == {"servers": {"a": read("1")}}
