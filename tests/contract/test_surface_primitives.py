"""Prompts, resources, completions and questions: the faces against the SDK's client, both eras."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import (
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    PromptReference,
    Root,
    TextContent,
)

from tests.support.fake_gateway import FakeGateway, done
from tests.support.mcp_faces import Connect, connecting
from tests.support.waiting import until, within
from thoughtgate.core.calls import Call, Notice, NoticeKind, Question, Result
from thoughtgate.core.errors import CallerReplied, NotAsked, UpstreamReplied
from thoughtgate.core.tools import Kind

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")  # sampling still works

OLD, NEW = "legacy", "2026-07-28"
FORM = {
    "message": "who?",
    "requestedSchema": {
        "type": "object",
        "properties": {"n": {"type": "number", "default": 95.5}},
    },
}
ELICIT = Question(method="elicitation/create", params=FORM, server="s")


async def read(call: Call) -> Result:
    content = {"uri": call.target.name, "text": "x"}
    return Result(raw=json.dumps({"contents": [content]}).encode())


async def get(call: Call) -> Result:
    text = {"type": "text", "text": json.dumps(dict(call.arguments))}
    return Result(raw=json.dumps({"messages": [{"role": "user", "content": text}]}).encode())


@pytest.fixture
def gateway() -> FakeGateway:
    return (
        FakeGateway()
        .offer("name", "greet", get)
        .offer("uri", "test://text", read)
        .offer("uriTemplate", "test://{id}/data")
    )


@pytest.fixture(params=[OLD, NEW])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["http", "stdio"])
async def connect(
    request: pytest.FixtureRequest, mode: str, gateway: FakeGateway
) -> AsyncIterator[Connect]:
    async with connecting(gateway, request.param, mode) as function:
        yield function


@pytest.fixture(params=["http", "stdio"])
async def old(request: pytest.FixtureRequest, gateway: FakeGateway) -> AsyncIterator[Connect]:
    async with connecting(gateway, request.param, OLD) as function:
        yield function


async def test_everything_is_declared_since_a_catalogue_may_grow(gateway: FakeGateway) -> None:
    gateway.extensions = {"io.modelcontextprotocol/tasks": {}}
    for mode in (OLD, "auto"):
        async with connecting(gateway, "http", mode) as connect, connect() as client:
            declared = client.server_capabilities
            assert declared.prompts is not None
            assert declared.prompts.list_changed
            assert declared.resources is not None
            assert declared.resources.subscribe
            assert declared.completions is not None
            assert declared.model_dump()["extensions"] == gateway.extensions


async def test_everything_is_listed_and_read(connect: Connect) -> None:
    async with connect() as client:
        (prompt,) = (await client.list_prompts()).prompts
        got = await client.get_prompt(prompt.name, {"who": "you"})
        assert isinstance(got.messages[0].content, TextContent)
        assert json.loads(got.messages[0].content.text) == {"who": "you"}
        (resource,) = (await client.list_resources()).resources
        assert (await client.read_resource(resource.uri)).contents[0].uri == "test://text"
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "test://{id}/data"


async def test_a_completion_carries_its_argument_and_context(
    connect: Connect, gateway: FakeGateway
) -> None:
    async def complete(call: Call) -> Result:
        values = [call.arguments["argument"]["value"], call.arguments["context"]["arguments"]["b"]]
        return Result(raw=json.dumps({"completion": {"values": values}}).encode())

    gateway.handlers[Kind.PROMPT_COMPLETION, "greet"] = complete
    ref = PromptReference(type="ref/prompt", name="greet")
    async with connect() as client:
        got = await client.complete(ref, {"name": "a", "value": "pa"}, {"b": "c"})
    assert got.completion.values == ["pa", "c"]


async def test_a_resource_that_nobody_has_is_named_in_the_error(
    connect: Connect, mode: str
) -> None:
    async with connect() as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource("test://nowhere")
    assert caught.value.code == (-32002 if mode == OLD else -32602)
    assert caught.value.error.data["uri"] == "test://nowhere"


async def test_a_resource_that_an_old_server_misses_is_told_in_the_code_of_the_era(
    gateway: FakeGateway, connect: Connect, mode: str
) -> None:
    async def miss(call: Call) -> Result:
        raise UpstreamReplied(rpc_code=-32002, rpc_message="gone", rpc_data={"uri": "x:theirs"})

    gateway.offer("uri", "test://gone", miss)
    async with connect() as client:
        with pytest.raises(MCPError) as caught:
            await within(client.read_resource("test://gone"))
    code, uri = (-32002, "x:theirs") if mode == OLD else (-32602, "test://gone")
    assert (caught.value.code, caught.value.data["uri"]) == (code, uri)


async def test_a_prompt_that_nobody_has_is_an_error(connect: Connect) -> None:
    async with connect() as client:
        with pytest.raises(MCPError) as caught:
            await client.get_prompt("nobody")
    assert caught.value.code == -32602


@pytest.mark.parametrize("list_", ["prompts", "resources"])
async def test_a_changed_list_is_told_to_a_session(
    old: Connect, gateway: FakeGateway, list_: str
) -> None:
    told: list[str] = []

    async def note(message: Any) -> None:
        told.append(getattr(message, "method", ""))

    async with old(message_handler=note) as client:
        await client.list_tools()
        gateway.offer("name" if list_ == "prompts" else "uri", "late:x")
        await until(partial(told.count, f"notifications/{list_}/list_changed"))
    assert "notifications/tools/list_changed" not in told


async def test_a_subscriber_is_told_of_the_lists_it_asked_for(gateway: FakeGateway) -> None:
    for transport in ("http", "stdio"):
        async with AsyncExitStack() as stack:
            connect = await stack.enter_async_context(connecting(gateway, transport, NEW))
            client = await stack.enter_async_context(connect())
            events = await stack.enter_async_context(client.listen(prompts_list_changed=True))
            gateway.add(f"late-{transport}").offer("name", f"late-{transport}")
            event = await within(anext(events))
            assert type(event).__name__ == "PromptsListChanged"


async def test_a_subscription_follows_the_resources_that_somebody_has(
    gateway: FakeGateway,
) -> None:
    async def subscribe(call: Call) -> Result:
        return Result(raw=b"{}")

    gateway.handlers[Kind.SUBSCRIBE, "test://text"] = subscribe
    for transport in ("http", "stdio"):
        async with AsyncExitStack() as stack:
            connect = await stack.enter_async_context(connecting(gateway, transport, NEW))
            client = await stack.enter_async_context(connect())
            wanted = ["test://nowhere", "test://text"]
            events = await stack.enter_async_context(client.listen(resource_subscriptions=wanted))
            assert events.honored.resource_subscriptions == ["test://text"]
            listener = gateway.calls[-1].listener
            method, params = "notifications/resources/updated", {"uri": "test://text"}
            notice = Notice(kind=NoticeKind.OTHER, method=method, params=params, server="s")
            await listener.notify(notice)
            event = await within(anext(events))
            assert getattr(event, "uri", "") == "test://text"
        await until(partial(gateway.left.__contains__, listener))


async def test_a_session_subscribes_to_a_resource_and_hears_of_it_until_it_ends(
    old: Connect, gateway: FakeGateway
) -> None:
    told: list[str] = []

    async def note(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            told.append(message.params.uri)

    async def subscribe(call: Call) -> Result:
        return Result(raw=b"{}")

    for kind in (Kind.SUBSCRIBE, Kind.UNSUBSCRIBE):
        gateway.handlers[kind, "test://text"] = subscribe
    async with old(message_handler=note) as client:
        await client.subscribe_resource("test://text")
        peer = gateway.calls[-1].listener
        assert peer is gateway.calls[-1].session.peer
        params = {"uri": "test://text"}
        method = "notifications/resources/updated"
        await peer.notify(Notice(kind=NoticeKind.OTHER, method=method, params=params, server="s"))
        await until(lambda: told == ["test://text"])
        await client.unsubscribe_resource("test://text")
        assert gateway.calls[-1].listener is peer
    await until(lambda: gateway.left == [peer])
    assert gateway.left_sessions == [gateway.calls[-1].session.id]


async def test_a_session_follows_only_so_many_resources(
    old: Connect, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def subscribe(call: Call) -> Result:
        return Result(raw=b"{}")

    monkeypatch.setattr("thoughtgate.surface.handshake.MOST_SUBSCRIBED", 1)
    for kind in (Kind.SUBSCRIBE, Kind.UNSUBSCRIBE):
        for uri in ("test://a", "test://b"):
            gateway.handlers[kind, uri] = subscribe
    async with old() as client:
        for _ in range(2):
            await client.subscribe_resource("test://a")
        with pytest.raises(MCPError):
            await client.subscribe_resource("test://b")
        await client.unsubscribe_resource("test://a")
        await client.subscribe_resource("test://b")


async def test_what_a_session_is_about_to_follow_counts_until_it_is_refused(
    old: Connect, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, refused = asyncio.Event(), asyncio.Event()

    async def never(call: Call) -> Result:
        asked.set()
        await refused.wait()
        raise UpstreamReplied(rpc_code=-32000, rpc_message="no")

    async def subscribe(call: Call) -> Result:
        return Result(raw=b"{}")

    monkeypatch.setattr("thoughtgate.surface.handshake.MOST_SUBSCRIBED", 1)
    gateway.handlers[Kind.SUBSCRIBE, "test://a"] = never
    gateway.handlers[Kind.SUBSCRIBE, "test://b"] = subscribe
    async with old() as client:
        first = asyncio.create_task(client.subscribe_resource("test://a"))
        await within(asked.wait())
        with pytest.raises(MCPError):
            await client.subscribe_resource("test://b")
        refused.set()
        with pytest.raises(MCPError):
            await within(first)
        await client.subscribe_resource("test://b")


async def test_a_session_is_asked_within_its_call_and_its_answer_is_exact(
    old: Connect, gateway: FakeGateway
) -> None:
    seen: list[Any] = []

    async def ask(call: Call) -> Result:
        answers = [
            await call.listener.ask(ELICIT),
            await call.listener.ask(Question(method="sampling/createMessage", params=SAMPLE)),
            await call.listener.ask(Question(method="roots/list", params={})),
        ]
        return done(structured={"answers": [json.loads(answer) for answer in answers]})

    async def elicit(context: Any, params: Any) -> ElicitResult:
        seen.append(params.requested_schema)
        return ElicitResult(action="accept", content={"n": 2.5})

    async def sample(context: Any, params: Any) -> CreateMessageResult:
        content = TextContent(type="text", text="hi")
        return CreateMessageResult(role="assistant", content=content, model="m")

    async def roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root.model_validate({"uri": "file:///x"})])

    gateway.add("ask", ask)
    callbacks = {
        "elicitation_callback": elicit,
        "sampling_callback": sample,
        "list_roots_callback": roots,
    }
    async with old(**callbacks) as client:
        result = await within(client.call_tool("ask", {}))
    assert result.structured_content is not None
    elicited, sampled, listed = result.structured_content["answers"]
    assert elicited == {"action": "accept", "content": {"n": 2.5}}
    assert sampled["content"]["text"] == "hi"
    assert listed["roots"][0]["uri"] == "file:///x"
    assert seen == [FORM["requestedSchema"]]
    assert {"elicitation", "sampling", "roots"} <= set(gateway.calls[0].session.capabilities)


SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "say hi"}}],
    "maxTokens": 10,
}


async def test_what_was_not_declared_is_not_asked(connect: Connect, gateway: FakeGateway) -> None:
    refused: list[str] = []

    async def ask(call: Call) -> Result:
        try:
            await call.listener.ask(ELICIT)
        except NotAsked as error:
            refused.append(error.message)
        return done()

    gateway.add("ask", ask)
    async with connect() as client:
        await within(client.call_tool("ask", {}))
    assert len(refused) == 1


async def test_an_error_of_the_client_is_told_to_who_asked(
    old: Connect, gateway: FakeGateway
) -> None:
    heard: list[CallerReplied] = []

    async def ask(call: Call) -> Result:
        try:
            await call.listener.ask(ELICIT)
        except CallerReplied as error:
            heard.append(error)
        return done()

    async def elicit(context: Any, params: Any) -> Any:
        raise MCPError(code=-31000, message="not now")

    gateway.add("ask", ask)
    async with old(elicitation_callback=elicit) as client:
        await within(client.call_tool("ask", {}))
    assert [(error.rpc_code, error.rpc_message) for error in heard] == [(-31000, "not now")]


async def test_a_call_that_is_cancelled_takes_its_question_back(
    old: Connect, gateway: FakeGateway
) -> None:
    asked, taken_back = asyncio.Event(), asyncio.Event()

    async def ask(call: Call) -> Result:
        await call.listener.ask(ELICIT)
        return done()

    async def elicit(context: Any, params: Any) -> ElicitResult:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            taken_back.set()
        return ElicitResult(action="cancel")

    gateway.add("ask", ask).add("echo")
    async with old(elicitation_callback=elicit) as client:
        call = asyncio.create_task(client.call_tool("ask", {}))
        await within(asked.wait())
        call.cancel()
        await within(taken_back.wait())
        await within(client.call_tool("echo", {}))


async def test_a_session_is_asked_outside_of_its_calls(old: Connect, gateway: FakeGateway) -> None:
    async def elicit(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    async with old(elicitation_callback=elicit) as client:
        gateway.add("echo")
        await client.call_tool("echo", {})
        peer = gateway.calls[0].session.peer
        assert peer is not None
        assert json.loads(await within(peer.ask(ELICIT))) == {"action": "decline"}


async def test_a_url_to_open_gets_the_id_that_this_era_wants(
    old: Connect, gateway: FakeGateway
) -> None:
    seen: list[Any] = []

    async def ask(call: Call) -> Result:
        params = {"mode": "url", "message": "sign in", "url": "https://example.org/x"}
        await call.listener.ask(Question(method="elicitation/create", params=params))
        return done()

    async def elicit(context: Any, params: Any) -> ElicitResult:
        seen.append(params)
        return ElicitResult(action="accept")

    gateway.add("ask", ask)
    async with old(elicitation_callback=elicit) as client:
        assert not (await within(client.call_tool("ask", {}))).is_error
    assert seen[0].url == "https://example.org/x"
    assert seen[0].elicitation_id


async def test_a_client_s_own_notifications_are_passed_on(
    old: Connect, gateway: FakeGateway
) -> None:
    async def roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[])

    async with old(list_roots_callback=roots) as client:
        await client.send_roots_list_changed()
        await until(lambda: gateway.told)
        await client.list_tools()
    assert [told[1] for told in gateway.told] == ["notifications/roots/list_changed"]
