"""What stands in a request, and what is read of replies that no fake sends."""

import pytest

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.models import (
    FinishReason,
    Message,
    ModelRequest,
    Role,
    ToolSpec,
    ToolUse,
    Usage,
)
from thoughtgate.models import anthropic_shapes, openai_shapes, sampling_shapes
from thoughtgate.models.counts import streamed_usage
from thoughtgate.models.openai_stream import OpenAIStream
from thoughtgate.models.prices import Prices, cost_micros
from thoughtgate.models.thinking import apart
from thoughtgate.wire.strict import dumps, parse

TOOL = ToolSpec(name="f", description="d", parameters={"type": "object"})
REQUEST = ModelRequest(
    messages=(
        Message(role=Role.SYSTEM, text="s"),
        Message(role=Role.USER, text="q"),
        Message(
            role=Role.ASSISTANT,
            text="t",
            uses=(
                ToolUse(id="c1", name="f", arguments='{"n":12345678901234567890}'),
                ToolUse(id="c2", name="f", arguments='{"a": '),
            ),
        ),
        Message(role=Role.TOOL, text="r1", use_id="c1"),
        Message(role=Role.TOOL, text="r2", use_id="c2"),
    ),
    tools=(TOOL,),
    stop=("\nObservation:", "\n"),
    seed=7,
    max_tokens=9,
    response_schema={"type": "object"},
    n=2,
)


def test_a_chat_completion_asks_for_all_that_was_asked() -> None:
    body = parse(openai_shapes.request_body(REQUEST, "m", stream=True))
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "q"},
            {
                "role": "assistant",
                "content": "t",
                "tool_calls": [
                    {
                        "id": use.id,
                        "type": "function",
                        "function": {"name": "f", "arguments": use.arguments},
                    }
                    for use in REQUEST.messages[2].uses
                ],
            },
            {"role": "tool", "content": "r1", "tool_call_id": "c1"},
            {"role": "tool", "content": "r2", "tool_call_id": "c2"},
        ],
        "max_tokens": 9,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "n": 2,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "description": "d",
                    "parameters": {"type": "object"},
                },
            }
        ],
        "stop": ["\nObservation:", "\n"],
        "seed": 7,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": {"type": "object"}},
        },
    }


def test_fields_that_an_endpoint_refuses_are_left_out() -> None:
    omit = {"temperature", "max_tokens", "seed"}
    body = parse(openai_shapes.request_body(REQUEST, "m", omit=omit))
    assert not omit & body.keys()
    assert body["max_completion_tokens"] == 9


def test_a_message_of_anthropics_holds_results_in_one_turn_and_broken_calls_as_text() -> None:
    body = parse(anthropic_shapes.request_body(REQUEST, "m"))
    assert body["system"] == "s"
    assert body["stop_sequences"] == ["\nObservation:"]
    assert body["output_config"]["format"]["schema"] == {"type": "object"}
    assert "seed" not in body
    assert "n" not in body
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "q"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": 't\nf({"a": )'},
                {
                    "type": "tool_use",
                    "id": "c1",
                    "name": "f",
                    "input": {"n": 12345678901234567890},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "r1"},
                {"type": "text", "text": "Result of a call: r2"},
            ],
        },
    ]


def test_sampling_keeps_results_apart_from_other_text_and_asks_for_json_in_words() -> None:
    params = sampling_shapes.request_params(REQUEST)
    assert params["maxTokens"] == 9
    assert params["stopSequences"] == ["\nObservation:", "\n"]
    assert '{"type":"object"}' in params["systemPrompt"]
    assert params["tools"][0]["inputSchema"] == {"type": "object"}
    *_, results, text = params["messages"]
    assert results["content"] == [
        {"type": "tool_result", "toolUseId": "c1", "content": [{"type": "text", "text": "r1"}]}
    ]
    assert text["content"] == {"type": "text", "text": "Result of a call: r2"}


def test_sampling_without_tools_tells_of_calls_in_words() -> None:
    bare = ModelRequest(messages=REQUEST.messages)
    turns = sampling_shapes.request_params(bare)["messages"]
    assert {turn["content"]["type"] for turn in turns} == {"text"}


@pytest.mark.parametrize(
    ("text", "thought", "rest"),
    [
        ("<think>a\nb</think>\n\nc", "a\nb", "c"),
        ("  <Thinking>a</thinking>c", "a", "c"),
        ("<think>cut off", "cut off", ""),
        ("<think></think>c", "", "c"),
        ("say <think>a</think>", "", "say <think>a</think>"),
        ("a</think>b", "", "a</think>b"),
        ("", "", ""),
    ],
)
def test_what_a_model_thought_stands_apart_from_what_it_says(
    text: str, thought: str, rest: str
) -> None:
    assert apart(text) == (thought, rest)


@pytest.mark.parametrize(
    ("outputs", "total"),
    [([7], 7), ([1, 4, 9], 9), ([5, 3, 4], 12), ([3, 3], 3), ([], None), ([None, 4], 4)],
)
def test_running_totals_are_not_added_up_and_pieces_are(
    outputs: list[int | None], total: int | None
) -> None:
    told = [Usage(input_tokens=10, output_tokens=one) for one in outputs]
    assert streamed_usage(told).output_tokens == total


@pytest.mark.parametrize("usage", [{"prompt_tokens": 0, "completion_tokens": 0}, {}, None, 3])
def test_zeros_beside_words_are_not_believed(usage: JsonValue) -> None:
    choice = {"message": {"content": "words"}, "finish_reason": "stop"}
    reply = openai_shapes.response({"choices": [choice], "usage": usage})
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (None, None)


def test_an_empty_reply_may_well_have_cost_no_tokens() -> None:
    value = {"content": [], "usage": {"input_tokens": 5, "output_tokens": 0}}
    assert anthropic_shapes.response(value).usage == Usage(input_tokens=5, output_tokens=0)


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", FinishReason.STOP),
        ("stop_sequence", FinishReason.STOP),
        ("tool_use", FinishReason.TOOL_CALLS),
        ("max_tokens", FinishReason.LENGTH),
        ("model_context_window_exceeded", FinishReason.LENGTH),
        ("refusal", FinishReason.FILTER),
        ("pause_turn", FinishReason.UNKNOWN),
        (None, FinishReason.UNKNOWN),
    ],
)
def test_each_reason_to_stop_is_known_or_unknown(stop: str | None, finish: FinishReason) -> None:
    blocks = [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "a"}]
    assert anthropic_shapes.response({"content": blocks, "stop_reason": stop}).finish is finish


def stream(*deltas: JsonObject) -> OpenAIStream:
    made = OpenAIStream()
    for delta in deltas:
        made.take(dumps({"choices": [{"index": 0, "delta": delta}]}))
    made.take(b"[DONE]")
    return made


def piece(arguments: str, **more: object) -> JsonObject:
    name = {"name": more.pop("name")} if "name" in more else {}
    return {"tool_calls": [{**more, "function": {"arguments": arguments, **name}}]}


X, Y = {"id": "x", "name": "f"}, {"id": "y", "name": "g"}
DIALECTS = {
    "by index": (
        piece('{"a"', index=0, **X),
        piece(":1}", index=0),
        piece("{}", index=1, **Y),
    ),
    "without index": (piece('{"a"', **X), piece(":1}"), piece("{}", **Y)),
    "everything repeated": (piece('{"a"', **X), piece(":1}", **X), piece("{}", **Y)),
    "out of order": (
        piece("", index=1, **Y),
        piece('{"a":1}', index=0, **X),
        piece("{}", index=1),
    ),
}


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_pieces_of_calls_find_their_call_in_every_dialect(dialect: str) -> None:
    reply = stream(*DIALECTS[dialect]).reply()
    assert reply is not None
    assert reply.uses == (
        ToolUse(id="x", name="f", arguments='{"a":1}'),
        ToolUse(id="y", name="g", arguments="{}"),
    )


def test_text_comes_as_strings_or_as_parts() -> None:
    reply = stream(
        {"content": "a"}, {"content": [{"type": "text", "text": "b"}]}, {"content": None}
    )
    whole = reply.reply()
    assert whole is not None
    assert whole.text == "ab"


def test_a_stream_with_a_reason_to_finish_needs_no_other_end() -> None:
    made = OpenAIStream()
    made.take(b'{"choices": [{"index": 0, "delta": {"content": "a"}}]}')
    assert made.reply() is None
    made.take(b'{"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}')
    reply = made.reply()
    assert reply is not None
    assert (reply.text, reply.finish) == ("a", FinishReason.LENGTH)


@pytest.mark.parametrize(
    ("usage", "prices", "micros"),
    [
        (Usage(input_tokens=1000, output_tokens=10), Prices(input=3, output=15), 3150),
        (Usage(input_tokens=1, output_tokens=0), Prices(input=0.075, output=1), 1),
        (
            Usage(input_tokens=10, output_tokens=0, cached_tokens=6),
            Prices(input=1, output=1, cached=0.5),
            7,
        ),
        (Usage(input_tokens=10, output_tokens=0, cached_tokens=6), Prices(input=1, output=1), 10),
        (Usage(input_tokens=2, output_tokens=0, cached_tokens=9), Prices(input=1, output=1), 2),
        (Usage(input_tokens=10, output_tokens=3), Prices(input=0, output=0), 0),
        (Usage(input_tokens=10), Prices(input=1, output=1), None),
        (Usage(), Prices(input=0, output=0), None),
        (Usage(input_tokens=1, output_tokens=1), None, None),
    ],
)
def test_a_cost_is_exact_rounded_up_or_unknown(
    usage: Usage, prices: Prices | None, micros: int | None
) -> None:
    assert cost_micros(usage, prices) == micros
