"""What a client of one era gets from a server of the other: questions, answers, cancellations.

Both ends are the SDK's. Four servers stand behind one gateway: two eras, over HTTP and over pipes.
"""

import asyncio
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import mcp_types as types
import pytest
import pytest_asyncio
from mcp import Client, MCPError

from tests.support.bridge_server import NOTE
from tests.support.gate import ROOT, START, STOP, Gate, Home, gate, held, home, python_server
from tests.support.waiting import until, within
from thoughtgate.core.json import digest

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROUTES = [(carrier, mode) for carrier in ("http", "stdio") for mode in ("legacy", "2026-07-28")]
SERVERS = ("old-http", "new-http", "old-pipe", "new-pipe")
OLD = ("old-http", "old-pipe")


@contextmanager
def bridge() -> Iterator[str]:
    """Serve the asking server over HTTP; yields its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.bridge_server"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        with process.stdout as lines:
            yield lines.readline().strip()
    finally:
        process.terminate()
        process.wait(STOP)


@dataclass
class Person:
    """The one in front of a client: answers every question, unless told to hold on."""

    colour: str = "blue"
    asked: list[str] = field(default_factory=list)
    answering: asyncio.Event = field(default_factory=asyncio.Event)
    declines: bool = False

    def __post_init__(self) -> None:
        self.answering.set()

    async def form(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params.message)
        await self.answering.wait()
        if self.declines:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"colour": self.colour})

    async def words(self, context: Any, params: Any) -> types.CreateMessageResult:
        text = types.TextContent(text=f"{self.colour} words")
        return types.CreateMessageResult(role="assistant", model="m", content=text)

    async def folders(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(
            roots=[types.Root.model_validate({"uri": f"file:///{self.colour}"})]
        )


@dataclass(frozen=True, kw_only=True)
class Route:
    """A connected client, and the person in front of it."""

    mode: str
    client: Client
    person: Person
    told: list[str]

    async def call(self, server: str, tool: str, /, **arguments: Any) -> Any:
        """Call a tool and return the structured content of its result."""
        result = await within(self.client.call_tool(f"{server}__{tool}", arguments), START)
        assert not result.is_error, result
        return result.structured_content


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with bridge() as url:
        settings = "".join(
            f'[servers.{era}-http]\nurl = "{url}"\nera = "{name}"\n'
            for era, name in (("old", "handshake"), ("new", "stateless"))
        )
        folder = tmp_path_factory.mktemp("home")
        for era, name in (("old", "handshake"), ("new", "stateless")):
            start = ("tests.support.bridge_server", "stdio", str(folder / f"{era}.diary"))
            settings += python_server(f"{era}-pipe", *start, era=name, sharing="session")
        yield home(folder, settings)


@pytest.fixture(scope="module")
def gateway(place: Home) -> Iterator[Gate]:
    with gate(place) as running:
        yield running


@asynccontextmanager
async def connected(
    place: Home, gateway: Gate, how: tuple[str, str], person: Person, **options: Any
) -> AsyncIterator[Route]:
    carrier, mode = how
    target = gateway.url() if carrier == "http" else place.pipe()
    callbacks = {
        "elicitation_callback": person.form,
        "sampling_callback": person.words,
        "list_roots_callback": person.folders,
    }
    told: list[str] = []

    async def hear(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            told.append(str(message.params.uri))

    made = Client(target, mode=mode, message_handler=hear, **{**callbacks, **options})
    async with held(made) as client:
        yield Route(mode=mode, client=client, person=person, told=told)


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=ROUTES, ids=["-".join(r) for r in ROUTES]
)
async def line(place: Home, gateway: Gate, request: pytest.FixtureRequest) -> AsyncIterator[Route]:
    async with connected(place, gateway, request.param, Person()) as made:
        yield made


@pytest.fixture
def route(line: Route) -> Route:
    line.person.asked.clear()
    line.person.declines = False
    line.person.answering.set()
    return line


ACCEPTED = {"action": "accept", "content": {"colour": "blue"}}


@pytest.mark.parametrize("server", SERVERS)
async def test_a_server_s_question_reaches_the_person_and_the_answer_the_server(
    route: Route, server: str
) -> None:
    assert await route.call(server, "survey") == {"colour": ACCEPTED}
    assert route.person.asked == ["which colour?"]


@pytest.mark.parametrize("server", SERVERS)
async def test_several_rounds_of_questions_end_in_one_result(route: Route, server: str) -> None:
    assert (await route.call(server, "rounds"))["second"] == ACCEPTED
    assert route.person.asked == ["first?", "second?"]


@pytest.mark.parametrize("server", SERVERS)
async def test_forms_models_and_folders_are_asked_for_in_one_call(
    route: Route, server: str
) -> None:
    got = await route.call(server, "trio")
    assert got["colour"] == ACCEPTED
    assert got["words"]["content"]["text"] == "blue words"
    assert got["folders"]["roots"] == [{"uri": "file:///blue"}]


@pytest.mark.parametrize("server", SERVERS)
async def test_a_prompt_may_ask_as_well(route: Route, server: str) -> None:
    got = await within(route.client.get_prompt(f"{server}__greet"), START)
    (message,) = got.messages
    assert isinstance(message.content, types.TextContent)
    assert message.content.text == "blue"


@pytest.mark.parametrize("server", SERVERS)
async def test_a_person_may_decline(route: Route, server: str) -> None:
    route.person.declines = True
    assert await route.call(server, "survey") == {"colour": {"action": "decline"}}


async def changes(route: Route, server: str, what: str, since: int) -> None:
    async with asyncio.timeout(START):
        while (await route.call(server, "state"))[what] == since:
            pass


@pytest.mark.parametrize("server", SERVERS)
async def test_a_cancelled_call_ends_in_the_server(route: Route, server: str) -> None:
    before = await route.call(server, "state")
    call = asyncio.ensure_future(route.client.call_tool(f"{server}__wait", {}))
    await changes(route, server, "waiting", before["waiting"])
    call.cancel()
    await changes(route, server, "cancelled", before["cancelled"])
    assert (await route.call(server, "state"))["waiting"] == before["waiting"]


@pytest.mark.parametrize("server", OLD)
async def test_a_call_cancelled_while_its_question_is_open_ends_or_waits_for_its_client(
    route: Route, server: str
) -> None:
    """Between two requests a client without sessions has nothing to cancel: its call is parked."""
    before = await route.call(server, "state")
    route.person.answering.clear()
    call = asyncio.ensure_future(route.client.call_tool(f"{server}__hold", {}))
    await until(lambda: bool(route.person.asked), START)
    call.cancel()
    if route.mode == "legacy":
        await changes(route, server, "cancelled", before["cancelled"])
    else:
        assert (await route.call(server, "state"))["waiting"] == before["waiting"] + 1
    route.person.answering.set()
    assert await route.call(server, "survey") == {"colour": ACCEPTED}


@pytest.mark.parametrize("server", SERVERS)
async def test_a_call_cancelled_after_its_answer_ends_in_the_server(
    route: Route, server: str
) -> None:
    before = await route.call(server, "state")
    call = asyncio.ensure_future(route.client.call_tool(f"{server}__hold", {}))
    await until(lambda: bool(route.person.asked), START)
    await changes(route, server, "waiting", before["waiting"])
    call.cancel()
    async with asyncio.timeout(START):
        while (await route.call(server, "state"))["waiting"] > before["waiting"]:
            pass


@pytest.mark.parametrize("how", ROUTES[:2], ids=["legacy", "2026-07-28"])
@pytest.mark.parametrize("server", SERVERS)
async def test_answers_of_two_clients_are_never_mixed(
    place: Home, gateway: Gate, how: tuple[str, str], server: str
) -> None:
    green, brown = Person(colour="green"), Person(colour="brown")
    async with (
        connected(place, gateway, how, green) as one,
        connected(place, gateway, how, brown) as other,
    ):
        for person in (green, brown):
            person.answering.clear()
        calls = [asyncio.ensure_future(r.call(server, "survey")) for r in (one, other) * 2]
        await until(lambda: len(green.asked) == len(brown.asked) == 2, START)
        brown.answering.set()
        green.answering.set()
        got = [answer["colour"]["content"]["colour"] for answer in await asyncio.gather(*calls)]
    assert got == ["green", "brown"] * 2


@pytest.mark.parametrize("how", ROUTES[:2], ids=["legacy", "2026-07-28"])
@pytest.mark.parametrize("server", SERVERS)
async def test_a_client_that_declared_nothing_is_never_asked_and_the_server_knows(
    place: Home, gateway: Gate, how: tuple[str, str], server: str
) -> None:
    nobody = {
        "elicitation_callback": None,
        "sampling_callback": None,
        "list_roots_callback": None,
    }
    async with connected(place, gateway, how, Person(), **nobody) as bare:
        with pytest.raises(MCPError) as caught:
            await within(bare.client.call_tool(f"{server}__survey", {}), START)
        if server not in OLD and how[1] != "legacy":
            assert caught.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
            assert caught.value.error.data == {"requiredCapabilities": {"elicitation": {}}}


@pytest.mark.parametrize("how", [r for r in ROUTES if r[1] == "legacy"], ids=["http", "stdio"])
@pytest.mark.parametrize("server", OLD)
async def test_an_old_server_keeps_its_state_for_each_old_client(
    place: Home, gateway: Gate, how: tuple[str, str], server: str
) -> None:
    async with (
        connected(place, gateway, how, Person()) as one,
        connected(place, gateway, how, Person()) as other,
    ):
        for each, text in ((one, "a"), (other, "b")):
            assert await each.call(server, "remember", text=text) == {"before": ""}
        assert await one.call(server, "remember", text="c") == {"before": "a"}
        assert await other.call(server, "remember", text="d") == {"before": "b"}


@pytest.mark.parametrize("server", SERVERS)
async def test_resources_prompts_and_completions_come_from_their_server(
    route: Route, server: str
) -> None:
    await route.call(server, "write", text=f"from {server}")
    listed = await within(route.client.list_resources(), START)
    uris = {one.name: str(one.uri) for one in listed.resources}
    assert len({str(one.uri) for one in listed.resources}) == len(SERVERS), uris
    uri = f"thoughtgate+{server}:{NOTE}"
    got = await within(route.client.read_resource(uri), START)
    (contents,) = got.contents
    assert isinstance(contents, types.TextResourceContents)
    if server.endswith("-http"):
        assert contents.text == f"from {server}"
    assert str(contents.uri) == uri
    ref = types.PromptReference(name=f"{server}__greet")
    done = await within(route.client.complete(ref, {"name": "x", "value": "blu"}), START)
    assert done.completion.values == ["blu!"]


@pytest.mark.parametrize("server", SERVERS)
async def test_a_changed_resource_is_told_to_who_subscribed_and_to_nobody_else(
    place: Home, gateway: Gate, route: Route, server: str
) -> None:
    uri = f"thoughtgate+{server}:{NOTE}"
    if route.mode == "legacy":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # this era's way, which the newer one has replaced
            await within(route.client.session.subscribe_resource(uri), START)
        await route.call(server, "write", text="new")
        await until(lambda: uri in route.told, START)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as above
            await within(route.client.session.unsubscribe_resource(uri), START)
    else:
        async with route.client.listen(resource_subscriptions=[uri]) as events:
            await route.call(server, "write", text="new")
            async with asyncio.timeout(START):
                event = await anext(aiter(events))
            assert str(getattr(event, "uri", "")) == uri
    await route.call(server, "state")
    told = len(route.told)
    await route.call(server, "write", text="newer")
    await route.call(server, "state")
    assert route.told[told:] == []


@pytest.mark.parametrize("server", SERVERS)
async def test_every_round_leaves_a_row(place: Home, route: Route, server: str) -> None:
    said = {"tag": uuid4().hex}
    await route.call(server, "survey", **said)

    def outcomes() -> list[str]:
        rows = place.audit_rows()
        return [row["outcome"] for row in rows if row["arguments_digest"] == digest(said)]

    await until(lambda: "ok" in outcomes(), START)
    assert sorted(outcomes()) in (["ok"], ["input_required", "ok"])
