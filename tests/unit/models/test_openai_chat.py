"""The OpenAI-compatible client in trouble: patient, bounded, and silent about its key."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from tests.support.posting import posting
from tests.support.waiting import within
from thoughtgate.core.errors import ModelError, UpstreamLost, UpstreamUnreachable
from thoughtgate.core.json import JsonValue
from thoughtgate.core.models import FinishReason, Message, ModelRequest, Role
from thoughtgate.models.openai_chat import ChatSettings, OpenAIChat
from thoughtgate.models.openai_shapes import response
from thoughtgate.models.patience import Door, Patience
from thoughtgate.models.posting import Posted
from thoughtgate.testing.openai_server import OpenAIServer, Trouble

REQUEST = ModelRequest(messages=(Message(role=Role.USER, text="q"),))
NOON = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


class Bench:
    """A server that can be in trouble, a client, and the waits that the client asked for."""

    def __init__(self, server: OpenAIServer) -> None:
        self.server = server
        self.waits: list[float] = []
        self.client: OpenAIChat

    async def sleep(self, seconds: float) -> None:
        """Keep the wait and return at once."""
        self.waits.append(seconds)

    async def failure(self) -> ModelError:
        """Ask and return the error."""
        with pytest.raises(ModelError) as caught:
            await within(self.client.complete(REQUEST))
        return caught.value


@asynccontextmanager
async def bench(*troubles: Trouble, timeout_seconds: float = 5.0) -> AsyncIterator[Bench]:
    async with OpenAIServer(lambda _: "fine") as server, posting() as post:
        server.troubles = list(troubles)
        made = Bench(server)
        settings = ChatSettings(
            base_url=server.url,
            model="m",
            key="sk-very-secret",
            patience=Patience(timeout=timeout_seconds),
        )
        door = Door(post=post, sleep=made.sleep, now=lambda: NOON)
        made.client = OpenAIChat(settings, door)
        yield made


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble(status=429),
        Trouble(status=500),
        Trouble(status=503),
        Trouble(body=b'{"choices": ['),
        Trouble(body=b'{"choices": []}'),
        Trouble(body=b'{"choices": [{"message": null}]}'),
        Trouble(body=b'{"error": {"message": "busy"}}'),
        Trouble(body=b"[]"),
        Trouble(body=b'{"choices": [{"message": {"content": "a", "content": "b"}}]}'),
        Trouble(body=b'{"choices": [{"message": {"tool_calls": [{"id": "x"}]}}]}'),
    ],
)
async def test_a_passing_trouble_is_waited_out(trouble: Trouble) -> None:
    async with bench(trouble, trouble) as made:
        reply = await within(made.client.complete(REQUEST))
    assert reply.text == "fine"
    assert made.waits == [0.5, 1.0]


async def test_a_lasting_trouble_ends_after_the_tries() -> None:
    async with bench(*[Trouble(status=500)] * 9) as made:
        error = await made.failure()
    assert error.retriable
    assert len(made.server.seen) == 4
    assert made.waits == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("7", 7.0),
        ("Mon, 30 Nov 2026 12:00:09 GMT", 9.0),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0.5),
        ("999999", 30.0),
        ("soon", 0.5),
        ("-1", 0.5),
    ],
)
async def test_retry_after_is_obeyed_within_reason(value: str, wait: float) -> None:
    async with bench(Trouble(status=429, headers={"Retry-After": value})) as made:
        await within(made.client.complete(REQUEST))
    assert made.waits == [wait]


async def test_a_stalled_reply_ends_with_its_timeout() -> None:
    async with bench(*[Trouble(stall=True)] * 4, timeout_seconds=0.01) as made:
        error = await made.failure()
    assert "no reply within" in error.message


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_is_not_tried_again(status: int) -> None:
    async with bench(Trouble(status=status)) as made:
        error = await made.failure()
    assert not error.retriable
    assert str(status) in error.message
    assert len(made.server.seen) == 1


async def test_a_request_that_is_too_long_is_told_apart() -> None:
    body = json.dumps({"error": {"code": "context_length_exceeded", "message": "long"}}).encode()
    async with bench(Trouble(status=400, body=body)) as made:
        error = await made.failure()
    assert error.data["kind"] == "context_overflow"


async def test_neither_key_nor_the_servers_prose_stands_in_an_error() -> None:
    said = {"error": {"code": "Bad: sk-very-secret", "type": "auth", "message": "sk-very-secret"}}
    async with bench(Trouble(status=401, body=json.dumps(said).encode())) as made:
        error = await made.failure()
    assert "sk-very-secret" not in f"{error!r} {error.message} {error.data}"
    assert "(auth)" in error.message
    settings = ChatSettings(base_url="http://x", model="m", key="sk-very-secret")
    assert "sk-very-secret" not in repr(settings)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (UpstreamUnreachable(message="sk-very-secret"), "cannot be reached; is it running?"),
        (UpstreamLost(message="sk-very-secret"), "gave no reply: upstream_lost"),
        (ConnectionResetError(), "cannot be reached; is it running? (ConnectionResetError)"),
        (TimeoutError(), "gave no reply within 120 seconds"),
    ],
)
async def test_a_server_that_cannot_be_reached_is_named_without_its_secrets(
    failure: Exception, said: str
) -> None:
    async def post(url: str, *, headers: Mapping[str, str], body: bytes) -> Posted:
        raise failure

    async def sleep(_: float) -> None:
        """Wait for nothing."""

    settings = ChatSettings(
        base_url="http://me:sk-very-secret@host:9/v1?key=sk-very-secret",
        model="m",
        patience=Patience(tries=2),
    )
    with pytest.raises(ModelError) as caught:
        await within(OpenAIChat(settings, Door(post=post, sleep=sleep)).complete(REQUEST))
    assert caught.value.retriable
    assert caught.value.message == f"model m at http://host:9/v1 {said}"


@pytest.mark.parametrize(
    ("message", "text", "arguments"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", []),
        ({"content": 3}, "", []),
        ({"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}, "", ['{"a":1}']),
        ({"tool_calls": [{"function": {"name": "f"}}]}, "", ["null"]),
        ({"tool_calls": [{"function": {"name": "f", "arguments": ""}}]}, "", [""]),
    ],
)
def test_the_dialects_of_other_servers_are_read(
    message: JsonValue, text: str, arguments: list[str]
) -> None:
    reply = response({"choices": [{"message": message, "finish_reason": "odd"}]})
    assert reply.text == text
    assert [use.arguments for use in reply.uses] == arguments
    assert reply.finish is FinishReason.UNKNOWN
    assert all(use.id for use in reply.uses)
