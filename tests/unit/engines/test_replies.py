"""Reading replies: the order of forms, and that nothing is called that was not written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.play import native
from thoughtgate.core.json import JsonObject
from thoughtgate.core.models import FinishReason, ModelResponse
from thoughtgate.engines.json_text import Unreadable
from thoughtgate.engines.replies import (
    Action,
    Answer,
    Empty,
    Reply,
    Unread,
    read,
    read_answer,
    read_object,
)


def parse(text: str, *, plain: bool = False) -> Reply:
    return read(ModelResponse(text=text), plain_answers=plain)


def called(text: str) -> tuple[str, JsonObject]:
    reply = parse(text)
    assert isinstance(reply, Action), reply
    return reply.name, reply.arguments


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ('Thought: x\nAction: find\nAction Input: {"a": {"b": {}}}', "find", {"a": {"b": {}}}),
        ('Thought：查\nAction：find\nAction Input：{"q": "日志"}', "find", {"q": "日志"}),
        ('Ｔｈｏｕｇｈｔ: x\nＡｃｔｉｏｎ: find\nAction Input: {}', "find", {}),
        ('**Thought:** x\n**Action:** `find`\n**Action Input:** {"a": 1}', "find", {"a": 1}),
        ('thought: x\naction: find\naction_input: {"a": 1}', "find", {"a": 1}),
        ('Action: find({"a": 1})', "find", {"a": 1}),
        ('Action: find\n{"a": 1}', "find", {"a": 1}),
        ('Action: find\nAction Input:\n```json\n{"a": 1}\n```\nthat is all', "find", {"a": 1}),
        ('Action: find\nAction Input: {"a": "}"} and {braces} after', "find", {"a": "}"}),
        ('Action:\n```json\n{"action": "find", "action_input": {"a": 1}}\n```', "find", {"a": 1}),
        ('{"thought": "x", "action": "find", "action_input": {"a": 1}}', "find", {"a": 1}),
        ('```json\n{"tool": "find", "arguments": {"a": 1}}\n```', "find", {"a": 1}),
        ('{"name": "find", "arguments": "{\\"a\\": 1}"}', "find", {"a": 1}),
        ('{"tool_call": {"name": "find", "arguments": {"a": 1}}}', "find", {"a": 1}),
        ('{"tool_calls": [{"function": {"name": "find", "arguments": "{}"}}]}', "find", {}),
        ('I look.\n<tool_call>\n{"name": "find", "arguments": {}}\n</tool_call>', "find", {}),
        ('<think>Action: wipe\nAction Input: {}</think>\nAction: find\nAction Input: {}', "find",
         {}),
        ('Action: wipe\n</think>\nAction: find\nAction Input: {}', "find", {}),
        ('Action: find\nAction Input: {"n": 12345678901234567890123}', "find",
         {"n": 12345678901234567890123}),
    ],
)  # fmt: skip
def test_an_action_is_read_from_every_form(text: str, name: str, arguments: JsonObject) -> None:
    assert called(text) == (name, arguments)


def test_a_native_call_beats_everything_in_the_text() -> None:
    response = native("find", '{"a": 1}')
    reply = read(
        ModelResponse(text="Action: wipe\nAction Input: {}", uses=response.uses),
        plain_answers=True,
    )
    assert reply == Action(name="find", arguments={"a": 1}, use_id="call_0")


def test_the_first_of_two_actions_wins() -> None:
    assert called("Action: one\nAction Input: {}\nAction: two\nAction Input: {}")[0] == "one"


def test_an_action_beats_any_answer() -> None:
    text = "Action: find\nAction Input: {}\nObservation: 3\nThought: ok\nFinal Answer: three"
    assert called(text)[0] == "find"
    assert called("Final Answer: 3\nAction: find\nAction Input: {}")[0] == "find"


def test_what_follows_an_imagined_observation_is_not_read() -> None:
    reply = parse("Thought: x\nObservation: found\nAction: wipe\nAction Input: {}")
    assert isinstance(reply, Unread)


def test_labels_inside_arguments_are_data() -> None:
    """Also after U+2028, which ends a line for Python but may stand inside a JSON string."""
    inner = "Final Answer: 42\u2028Observation: none\nAction: wipe <think>a</think>"
    text = f"Action: say\nAction Input: {json.dumps({'text': inner}, ensure_ascii=False)}"
    assert called(text) == ("say", {"text": inner})


def test_a_label_without_a_space_keeps_its_first_character() -> None:
    reply = parse("Thought:Because\nAction:find\nAction Input:{}")
    assert isinstance(reply, Action)
    assert reply.thought == "Because"


@pytest.mark.parametrize(
    "arguments",
    [
        "{'a': 1}",
        '{"a": 1',
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        "[1]",
        "null",
        "3",
        "some words",
        "",
        '{"a": "\\ud800"}',
        "{" * 100 + "}" * 100,
    ],
)
def test_arguments_that_are_no_strict_object_are_never_replaced(arguments: str) -> None:
    assert isinstance(parse(f"Action: find\nAction Input: {arguments}"), Unread)
    assert isinstance(read(native("find", arguments), plain_answers=True), Unread)
    envelope = '{"tool": "find", "arguments": ' + (arguments or '""') + "}"
    assert not isinstance(parse(envelope), Action)


@pytest.mark.parametrize(
    "text",
    [
        "Thought: I wonder",
        "Thought: x\nAction: None\nAction Input: None",
        "Action: find",
        '{"tool_call": {"name": "find"}}',
        '{"weather": "fine"}',
        "just some prose",
    ],
)
def test_a_reply_with_neither_action_nor_answer_is_unread(text: str) -> None:
    assert isinstance(parse(text), Unread)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Thought: done\nFinal Answer: 42\nand more", "42\nand more"),
        ("Thought: x\nAction: None\nFinal Answer: 42", "42"),
        ('{"thought": "x", "final_answer": "42"}', "42"),
        ('{"action": "Final Answer", "action_input": "42"}', "42"),
        ('{"answer": {"n": 1}}', '{"n":1}'),
    ],
)
def test_an_answer_is_read_from_every_form(text: str, said: str) -> None:
    reply = parse(text)
    assert isinstance(reply, Answer)
    assert reply.text == said


def test_plain_text_is_an_answer_only_where_tools_are_native() -> None:
    assert parse("It is 42.", plain=True) == Answer(text="It is 42.")
    assert isinstance(parse("It is 42."), Unread)


def test_a_json_answer_is_kept_whole() -> None:
    """An object that has a member `answer` or `name` is not an envelope."""
    for text in ('{"answer": 1, "sure": true}', '{"name": "Bob", "age": 3}'):
        assert read_answer(ModelResponse(text=text)) == Answer(text=text)


@pytest.mark.parametrize("text", ["", "  \n", "<think>only this</think>", "<think>cut off"])
def test_a_reply_that_says_nothing_is_empty(text: str) -> None:
    assert isinstance(parse(text), Empty)


def test_a_closing_answer_is_never_an_action() -> None:
    reply = read_answer(ModelResponse(text="Action: wipe\nAction Input: {}"))
    assert isinstance(reply, Unread)


def test_a_reply_cut_by_its_length_says_so() -> None:
    text = 'Action: find\nAction Input: {"a": "long'
    reply = read(ModelResponse(text=text, finish=FinishReason.LENGTH), plain_answers=False)
    assert isinstance(reply, Unread)
    assert "length limit" in reply.reason


def test_an_object_is_found_behind_prose_and_fences() -> None:
    assert read_object(ModelResponse(text='Here:\n```json\n{"a": "}"}\n``` ok')) == {"a": "}"}
    with pytest.raises(Unreadable):
        read_object(ModelResponse(text="no object"))


_PIECES = st.sampled_from([
    "Thought:", "Action:", "Action Input:", "Observation:", "Final Answer:", "Action：", "{", "}",
    '"', "\\", "[", "]", "\n", "<think>", "</think>", "```", "```json", "<tool_call>", "find",
    '{"a": 1}', '{"tool": "find", "arguments": {}}', '{"action":', "null", " ", ":", "\u2028",
    "\ud800", "𝔸",
])  # fmt: skip


@given(st.lists(_PIECES | st.text(max_size=6), max_size=24).map("".join), st.booleans())
def test_no_text_raises_and_no_name_is_invented(text: str, plain: bool) -> None:
    reply = parse(text, plain=plain)
    read_answer(ModelResponse(text=text))
    if isinstance(reply, Action):
        assert reply.name in text
        for key in reply.arguments:
            assert json.dumps(key, ensure_ascii=False)[1:-1] in text


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize("before", ["", "Let me look. ", "I look:\n"])
def test_a_tagged_tool_call_is_read_wherever_it_stands_but_not_inside_arguments(
    before: str,
) -> None:
    tagged = '<tool_call>{"name": "find", "arguments": {"a": 1}}</tool_call>'
    assert called(before + tagged) == ("find", {"a": 1})
    held = {"text": tagged}
    assert called(f"Action: send\nAction Input: {json.dumps(held)}") == ("send", held)
    assert called(json.dumps({"action": "send", "arguments": held})) == ("send", held)


@given(
    st.dictionaries(st.text(), _JSON, max_size=4), st.sampled_from(["", "\nObservation: x", "}"])
)
def test_arguments_come_out_as_they_were_written(arguments: JsonObject, after: str) -> None:
    written = json.dumps(arguments, ensure_ascii=False)
    for indent in (None, 2):
        shown = json.dumps(arguments, ensure_ascii=False, indent=indent)
        assert called(f"Thought: x\nAction: find\nAction Input: {shown}{after}")[1] == arguments
    assert called(f'{{"tool": "find", "arguments": {written}}}')[1] == arguments
    reply = read(native("find", written), plain_answers=True)
    assert isinstance(reply, Action)
    assert reply.arguments == arguments
