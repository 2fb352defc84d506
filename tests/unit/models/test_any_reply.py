"""Whatever a model server sends, it becomes a reply or an error of the model's, nothing else."""

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.core.errors import Malformed, ModelError
from thoughtgate.core.json import JsonValue
from thoughtgate.core.models import ModelResponse
from thoughtgate.models import anthropic_shapes, openai_shapes, sampling_shapes
from thoughtgate.models.anthropic_stream import AnthropicStream
from thoughtgate.models.openai_stream import OpenAIStream
from thoughtgate.models.refusals import refusal
from thoughtgate.wire.strict import dumps

WORDS = [
    "choices",
    "message",
    "content",
    "text",
    "type",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "index",
    "delta",
    "usage",
    "prompt_tokens",
    "completion_tokens",
    "error",
    "code",
    "finish_reason",
    "stop_reason",
    "reasoning_content",
    "model",
    "thinking",
    "input",
    "tool_use",
    "content_block",
    "partial_json",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "message_delta",
    "message_stop",
    "text_delta",
    "input_json_delta",
    "input_tokens",
    "output_tokens",
    "prompt_tokens_details",
    "cached_tokens",
    "refusal",
    "stop",
    "<think>",
]
LEAVES = st.none() | st.booleans() | st.integers(-2, 2**70) | st.sampled_from(WORDS) | st.text()
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5)
    ),
    max_leaves=25,
)
OBJECTS = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=6)


def _is_sound(reply: ModelResponse) -> bool:
    counts = (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cached_tokens)
    uses = all(type(use.arguments) is str and use.name and use.id for use in reply.uses)
    return type(reply.text) is str and uses and all(n is None or n >= 0 for n in counts)


@settings(max_examples=100)
@given(VALUES | OBJECTS)
def test_any_whole_reply_is_read_or_refused(value: JsonValue) -> None:
    for read in (openai_shapes.response, anthropic_shapes.response):
        with suppress(ModelError):
            assert _is_sound(read(value))
    with suppress(ModelError):
        assert _is_sound(sampling_shapes.response(value if isinstance(value, dict) else {}))
    assert refusal(400, dumps({"error": value})).said.startswith("400")


@settings(max_examples=100)
@given(st.lists(OBJECTS | VALUES, max_size=8))
def test_any_stream_is_read_or_refused(events: list[JsonValue]) -> None:
    for fold in (OpenAIStream(), AnthropicStream()):
        with suppress(ModelError, Malformed):
            for event in events:
                fold.take(dumps(event))
            reply = fold.reply()
            assert reply is None or _is_sound(reply)


@settings(max_examples=60)
@given(st.text(max_size=40), st.text(max_size=40), st.integers(1, 7))
def test_a_calls_arguments_are_the_text_that_came_however_it_was_cut(
    arguments: str, text: str, size: int
) -> None:
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    first = {"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}
    deltas = [{"content": text}, {"tool_calls": [first]}] + [
        {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces
    ]
    fold = OpenAIStream()
    for delta in deltas:
        fold.take(dumps({"choices": [{"index": 0, "delta": delta}]}))
    fold.take(b"[DONE]")
    reply = fold.reply()
    assert reply is not None
    assert reply.uses[0].arguments == arguments
