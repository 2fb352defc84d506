"""Editing TOML as text: values, comments and lines that are not ours stay."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.config.clients.tables import drop, masked, put
from thoughtgate.config.clients.text import with_value, without
from thoughtgate.config.texts import Unreadable
from thoughtgate.config.toml import read

ENTRY = {"command": "/bin/thoughtgate", "args": ["serve", "--stdio"], "env": {"A B": 'x"\\\x7f'}}
PATH = ("mcp_servers", "thoughtgate")

PIECES = st.sampled_from([
    "# a comment with [brackets] and \"quotes\"",
    "",
    "   ",
    "[[profiles]]\nname = 'x' # [mcp_servers.thoughtgate]",
    "[mcp_servers.NAME]\ncommand = \"npx\" # run it\nargs = [ # many\n  \"a\", # ]\n  'b',\n]",
    "[mcp_servers.NAME]\nenv = { KEY = \"s#cret\", \"o.k\" = '#' }",
    "[mcp_servers.NAME]\n[ mcp_servers . NAME.env ]\nA = 'x'\n# B\nB = '''\n[mcp_servers.x]\n'''",
    "[mcp_servers.\"NAME.dotted\"]\nurl = \"https://x.example/mcp\"",
    "[table.NAME]\nwhen = 1979-05-27 07:32:00Z\ntext = \"\"\"\nodd \\\" \"\"\"\"\"\nn = 1_000",
])  # fmt: skip
TOP = st.sampled_from([
    "",
    'model = "o5" # top',
    'mcp_servers.dot.command = "x"',
    "a.b.c = [[1, 2], {}]",
])


@st.composite
def files(draw: st.DrawFn) -> str:
    pieces = [draw(TOP), *draw(st.lists(PIECES, max_size=5))]
    numbered = (piece.replace("NAME", f"n{at}") for at, piece in enumerate(pieces))
    text = "\n".join(numbered) + draw(st.sampled_from(["", "\n", "\n\n"]))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return ("\ufeff" if draw(st.booleans()) else "") + text


@given(files())
def test_putting_an_entry_only_adds_lines_at_the_end(text: str) -> None:
    after = put(text, PATH, ENTRY)
    assert read(after) == with_value(read(text), PATH, ENTRY)
    assert after.startswith(text)


@given(files())
def test_dropping_it_again_leaves_the_text_but_for_blank_lines_at_the_end(text: str) -> None:
    again = drop(put(text, PATH, ENTRY), PATH)
    assert again.rstrip("\r\n") == text.rstrip("\r\n")


@given(files(), st.data())
def test_dropping_any_server_leaves_all_others(text: str, data: st.DataObject) -> None:
    was = read(text)
    names = list(was.get("mcp_servers", {}))
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    left = read(drop(text, ("mcp_servers", name)))
    assert {"mcp_servers": {}, **left} == without(was, ("mcp_servers", name))


@given(files(), st.sampled_from(["command", "env", "new"]), st.data())
def test_a_value_of_an_entry_is_set_however_the_entry_is_written(
    text: str, key: str, data: st.DataObject
) -> None:
    was = read(text)
    names = list(was.get("mcp_servers", {}))
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    path: tuple[str, ...] = ("mcp_servers", name, key)
    value: object = {"A": "y"} if key == "env" else "other"
    if key == "env" and isinstance(was["mcp_servers"][name].get("env"), dict):
        path, value = (*path, "A"), "y"
    assert read(put(text, path, value)) == with_value(was, path, value)


@given(files())
def test_what_is_shown_holds_no_value_and_no_comment_of_others(text: str) -> None:
    after = put(text, PATH, ENTRY)
    shown = masked(after, frozenset({"/bin/thoughtgate", "serve"}))
    told = read(shown)
    assert told["mcp_servers"]["thoughtgate"] == {
        "command": "/bin/thoughtgate", "args": ["serve", "***"], "env": {"A B": "***"},
    }  # fmt: skip
    for secret in ("s#cret", "npx", "x.example", "1979", "odd", "run it", "many", "brackets", "o5"):
        assert secret not in shown


def test_what_people_wrote_into_the_entry_s_table_stays() -> None:
    head = '[mcp_servers.thoughtgate]\ncommand = "old" # here\n'
    text = f"{head}\n# slow machine\nstartup_timeout_sec = 60\n"
    assert put(text, (*PATH, "command"), "new") == text.replace('"old"', '"new"')
    assert put(text, (*PATH, "args"), ["x"]) == text + 'args = ["x"]\n'


def test_a_server_written_as_an_inline_table_is_changed_and_removed() -> None:
    text = (
        '[mcp_servers]\na = { command = "x" }\nthoughtgate = { command = "y", env = {} } # ours\n'
    )
    after = put(text, (*PATH, "command"), "z")
    assert tomllib.loads(after)["mcp_servers"]["thoughtgate"] == {"command": "z", "env": {}}
    assert drop(text, PATH) == '[mcp_servers]\na = { command = "x" }\n'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("model = \n", "line 1, column 9: "),
        ('a = 1\n[x\n', "line 2, column 3: "),
        ('a = 1\na = 2\n', "line 2, column 6: "),
        ('a = "x', "line 1, column 7: "),
        ('mcp_servers = { a = { command = "x" } }\n', "line 1, column 1: "),
        ("x = 1\r\nmcp_servers = {}\r\n", "line 2, column 1: "),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_edited_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(Unreadable) as caught:
        put(text, PATH, ENTRY)
    assert str(caught.value).startswith(place)
