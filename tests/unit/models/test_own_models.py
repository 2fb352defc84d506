"""Models without a server: replay, sampling, several replies, prices."""

from dataclasses import replace

import pytest

from tests.support.models import SAMPLES, Client, ask
from tests.support.posting import posting
from tests.support.waiting import within
from thoughtgate.core.errors import Malformed, ModelError, NotAsked
from thoughtgate.core.json import JsonObject
from thoughtgate.core.models import ModelResponse, ToolSpec, ToolUse, Usage
from thoughtgate.models.openai_chat import ChatSettings, OpenAIChat
from thoughtgate.models.patience import Door
from thoughtgate.models.priced import Priced
from thoughtgate.models.prices import Prices
from thoughtgate.models.records import Recorded, as_json, request_of, response_of
from thoughtgate.models.replay import Recording, Replay
from thoughtgate.models.sampling import Lender, Sampling
from thoughtgate.models.scripted import Scripted
from thoughtgate.testing.openai_server import OpenAIServer, Trouble
from thoughtgate.wire.strict import dumps, parse

TOLD = ModelResponse(text="a", usage=Usage(input_tokens=3, output_tokens=1, cached_tokens=0))


async def test_a_replay_answers_in_any_order_each_record_once() -> None:
    recording = Recording(Scripted(["one", "two", "one again"]))
    for text in ("a", "b", "a"):
        await recording.complete(ask(text))
    client = Replay(recording.records)
    texts = [(await client.complete(ask(text))).text for text in ("b", "a", "a")]
    assert texts == ["two", "one", "one again"]
    with pytest.raises(ModelError, match="no more"):
        await client.complete(ask("a"))


async def test_a_question_that_differs_is_not_answered_and_says_where() -> None:
    client = Replay([Recorded(request=ask("a"), response=TOLD)])
    other = replace(ask("secret"), temperature=0.7, stop=("x",))
    with pytest.raises(ModelError) as caught:
        await client.complete(other)
    assert caught.value.data["differs"] == ["/messages/0/text", "/stop", "/temperature"]
    assert "secret" not in caught.value.message
    assert (await client.complete(ask("a"))) is TOLD, "the record is still there"


def test_records_come_back_from_json_as_they_were() -> None:
    tool = ToolSpec(name="f", description="d", parameters={"n": 12345678901234567890})
    request = replace(ask("你好"), tools=(tool,), response_schema={"a": [1.5, None]}, seed=3)
    use = ToolUse(id="c", name="f", arguments='{"a": ')
    response = replace(TOLD, uses=(use,), others=(TOLD,), cost_micros=4)
    assert request_of(parse(dumps(as_json(request)))) == request
    assert response_of(parse(dumps(as_json(response)))) == response
    with pytest.raises(Malformed):
        response_of({"text": 3})


LENT: JsonObject = {"role": "assistant", "content": {"type": "text", "text": "a"}, "model": "m"}


async def test_a_client_is_asked_as_it_declared_and_its_usage_is_unknown() -> None:
    caller = Client(lambda _: LENT)
    client = Sampling(Lender(listener=caller, capabilities=SAMPLES, asker="thoughtgate"))
    reply = await within(client.complete(ask("q")))
    assert (reply.text, reply.model, reply.usage) == ("a", "m", Usage())
    (question,) = caller.asked
    assert (question.method, question.server) == ("sampling/createMessage", "thoughtgate")


@pytest.mark.parametrize(
    ("capabilities", "tools"), [({}, False), ({"roots": {}}, False), ({"sampling": {}}, True)]
)
async def test_a_client_is_never_asked_for_what_it_did_not_declare(
    capabilities: JsonObject, tools: bool
) -> None:
    caller = Client(lambda _: LENT)
    client = Sampling(Lender(listener=caller, capabilities=capabilities))
    tool = ToolSpec(name="f", description="", parameters={"type": "object"})
    request = replace(ask("q"), tools=(tool,) if tools else ())
    with pytest.raises(ModelError):
        await within(client.complete(request))
    assert caller.asked == []


@pytest.mark.parametrize(
    "answer", [{}, {"content": 3}, {"content": [3]}, {"content": [{"type": "tool_use"}]}]
)
async def test_what_is_no_reply_of_a_client_is_a_model_error(answer: JsonObject) -> None:
    client = Sampling(Lender(listener=Client(lambda _: answer), capabilities=SAMPLES))
    with pytest.raises(ModelError):
        await within(client.complete(ask("q")))


async def test_a_client_that_does_not_answer_is_a_model_error() -> None:
    caller = Client(lambda _: NotAsked(message="gone"))
    client = Sampling(Lender(listener=caller, capabilities=SAMPLES))
    with pytest.raises(ModelError, match="did not answer"):
        await within(client.complete(ask("q")))


async def test_the_usage_of_several_replies_is_their_sum_or_unknown() -> None:
    all_told = await Scripted([TOLD, TOLD, TOLD]).complete(ask("q", n=3))
    assert all_told.usage == Usage(input_tokens=9, output_tokens=3, cached_tokens=0)
    one_silent = await Scripted([TOLD, "b"]).complete(ask("q", n=2))
    assert one_silent.usage == Usage()


async def test_a_server_that_refuses_many_replies_is_asked_one_by_one_from_then_on() -> None:
    server = OpenAIServer(lambda _: "a", usage={"prompt_tokens": 3, "completion_tokens": 1})
    server.troubles = [Trouble(status=400)]
    async with server, posting() as post:
        settings = ChatSettings(base_url=server.url, model="m")
        client = OpenAIChat(settings, Door(post=post, sleep=_no_sleep))
        request = replace(ask("q", n=2), seed=5)
        first = await within(client.complete(request))
        await within(client.complete(request))
    assert (first.text, len(first.others), first.usage.input_tokens) == ("a", 1, 6)
    asked = [(seen.body.get("n"), seen.body["seed"]) for seen in server.seen]
    assert asked == [(2, 5), (None, 5), (None, 6), (None, 5), (None, 6)]


async def test_many_replies_at_once_have_one_usage() -> None:
    server = OpenAIServer(lambda _: "a", usage={"prompt_tokens": 3, "completion_tokens": 4})
    async with server, posting() as post:
        client = OpenAIChat(
            ChatSettings(base_url=server.url, model="m"), Door(post=post, sleep=_no_sleep)
        )
        reply = await within(client.complete(ask("q", n=4)))
    assert len(server.seen) == 1
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 4)


async def test_a_priced_model_tells_what_all_replies_cost() -> None:
    client = Priced(Scripted([TOLD, TOLD]), Prices(input=2, output=10))
    assert (await client.complete(ask("q", n=2))).cost_micros == 32
    unknown = Priced(Scripted(["a"]), Prices(input=2, output=10))
    assert (await unknown.complete(ask("q"))).cost_micros is None


async def _no_sleep(_: float) -> None:
    """Wait for nothing."""
