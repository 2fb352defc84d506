"""Both remote APIs in trouble, whole and streamed: patient, bounded, and never half a reply."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from tests.support.models import QUICK, ask, no_sleep
from tests.support.posting import posting
from tests.support.waiting import until, within
from thoughtgate.core.errors import ModelError
from thoughtgate.core.json import JsonObject
from thoughtgate.core.ports import ModelClient
from thoughtgate.models.anthropic import Anthropic
from thoughtgate.models.openai_chat import ChatSettings, OpenAIChat
from thoughtgate.models.patience import Door, Patience
from thoughtgate.testing.anthropic_server import AnthropicServer
from thoughtgate.testing.model_host import ModelHost, Trouble
from thoughtgate.testing.openai_server import OpenAIServer
from thoughtgate.wire.strict import dumps

OPENAI_USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 4,
    "prompt_tokens_details": {"cached_tokens": 6},
}
ANTHROPIC_USAGE = {
    "input_tokens": 3,
    "cache_read_input_tokens": 6,
    "cache_creation_input_tokens": 1,
    "output_tokens": 4,
}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A server, and a client of it."""

    host: ModelHost
    client: ModelClient

    async def failure(self) -> ModelError:
        """Ask and return the error."""
        with pytest.raises(ModelError) as caught:
            await within(self.client.complete(ask("q")))
        return caught.value


@asynccontextmanager
async def bench(kind: str, *troubles: Trouble, patience: Patience = QUICK) -> AsyncIterator[Bench]:
    api, _, way = kind.partition("-")
    made: type[OpenAIChat] | type[Anthropic] = OpenAIChat if api == "openai" else Anthropic
    host: ModelHost = (
        OpenAIServer(lambda _: "a fine reply", usage=OPENAI_USAGE)
        if api == "openai"
        else AnthropicServer(lambda _: "a fine reply", usage=ANTHROPIC_USAGE)
    )
    host.troubles = list(troubles)
    async with host, posting() as post:
        settings = ChatSettings(
            base_url=host.url,
            model="m",
            key="sk-very-secret",
            stream=way == "stream",
            patience=patience,
        )
        yield Bench(host=host, client=made(settings, Door(post=post, sleep=no_sleep)))


KINDS = pytest.mark.parametrize(
    "kind", ["openai-whole", "openai-stream", "anthropic-whole", "anthropic-stream"]
)
STREAMS = pytest.mark.parametrize("kind", ["openai-stream", "anthropic-stream"])

PASSING = {
    "busy": Trouble(status=429),
    "overloaded": Trouble(status=529),
    "stalled before its head": Trouble(stall_at=0),
    "stalled within": Trouble(stall_at=40),
    "cut within": Trouble(cut_at=40),
    "cut at once": Trouble(cut_at=0),
    "ended early": Trouble(end_at=40),
    "ended at once": Trouble(end_at=0),
    "garbled": Trouble(body=b'{"choices": [{"mess'),
    "another shape": Trouble(body=b'{"content": 3, "choices": 3}'),
    "a list": Trouble(body=b"[]"),
    "no JSON at all": Trouble(body=b"<html>busy</html>"),
    "failed within": Trouble(body=b'{"type": "error", "error": {"type": "overloaded_error"}}'),
    "broken text": Trouble(body=b'data: {"x": "\xff\xfe"}\n\n'),
    "garbled event": Trouble(body=b'data: {"choices": [{"delta": \n\n'),
}


def _patience(name: str, *, tries: int) -> Patience:
    """Return little patience with silence where there will be some; a busy machine may add more."""
    stall = 0.05 if name.startswith("stalled") else 5.0
    return Patience(timeout=5.0, stall=stall, tries=tries)


@KINDS
@pytest.mark.parametrize("name", sorted(PASSING))
async def test_a_passing_trouble_is_asked_over_and_leaves_nothing_behind(
    kind: str, name: str
) -> None:
    async with bench(kind, PASSING[name], patience=_patience(name, tries=6)) as made:
        reply = await within(made.client.complete(ask("q")))
    assert reply.text == "a fine reply"
    assert len(made.host.seen) >= 2


@KINDS
@pytest.mark.parametrize("name", sorted(PASSING))
async def test_a_lasting_trouble_ends_after_the_tries_without_half_a_reply(
    kind: str, name: str
) -> None:
    patience = _patience(name, tries=2)
    async with bench(kind, *[PASSING[name]] * 9, patience=patience) as made:
        error = await made.failure()
    assert error.retriable
    assert len(made.host.seen) == 2
    assert "sk-very-secret" not in f"{error!r} {error.message} {error.data}"


@STREAMS
async def test_a_stream_is_no_reply_wherever_it_ends_early(kind: str) -> None:
    """Cut after every byte count in turn: never an answer that lacks its end."""
    async with bench(kind) as made:
        for at in range(0, 1200, 37):
            made.host.troubles = [Trouble(end_at=at), Trouble(end_at=at)]
            try:
                reply = await within(made.client.complete(ask("q")))
            except ModelError:
                continue
            assert reply.text == "a fine reply"


@KINDS
async def test_usage_is_counted_once_with_what_was_cached(kind: str) -> None:
    async with bench(kind) as made:
        usage = (await within(made.client.complete(ask("q")))).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (10, 4, 6)


@KINDS
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"code": "context_length_exceeded", "message": "x"}),
        (400, {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 5"}),
        (400, {"message": "This model's maximum context length is 10 tokens"}),
        (413, {"type": "request_too_large"}),
        (500, {"type": "exceed_context_size_error", "message": "x"}),
    ],
)
async def test_a_question_that_is_too_long_is_told_apart_and_not_asked_over(
    kind: str, status: int, error: JsonObject
) -> None:
    async with bench(kind, Trouble(status=status, body=dumps({"error": error}))) as made:
        found = await made.failure()
    assert found.data["kind"] == "context_overflow"
    assert len(made.host.seen) == 1


@KINDS
async def test_an_empty_purse_is_not_waited_out(kind: str) -> None:
    body = dumps({"error": {"code": "insufficient_quota", "message": "pay"}})
    async with bench(kind, Trouble(status=429, body=body)) as made:
        error = await made.failure()
    assert "insufficient_quota" in error.message
    assert len(made.host.seen) == 1


@KINDS
async def test_whoever_no_longer_waits_drops_the_connection(kind: str) -> None:
    async with bench(kind, Trouble(stall=True)) as made:
        asking = asyncio.ensure_future(made.client.complete(ask("q")))
        await until(lambda: made.host.seen)
        asking.cancel()
        await within(made.host.gone.wait())
        with pytest.raises(asyncio.CancelledError):
            await asking


@STREAMS
async def test_a_server_that_does_not_stream_when_it_is_asked_to_is_understood(kind: str) -> None:
    shapes = {
        "openai-stream": {"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]},
        "anthropic-stream": {"type": "message", "content": [{"type": "text", "text": "whole"}]},
    }
    async with bench(kind, Trouble(body=dumps(shapes[kind]))) as made:
        assert (await within(made.client.complete(ask("q")))).text == "whole"


@KINDS
async def test_the_key_goes_where_the_api_wants_it_and_nowhere_else(kind: str) -> None:
    async with bench(kind) as made:
        await within(made.client.complete(ask("q")))
    (seen,) = made.host.seen
    held = [name for name, value in seen.headers.items() if "sk-very-secret" in value]
    assert held == (["authorization"] if kind.startswith("openai") else ["x-api-key"])
    assert seen.headers.get("anthropic-version") == (
        None if kind.startswith("openai") else "2023-06-01"
    )
    assert seen.body["stream"] is kind.endswith("stream")
