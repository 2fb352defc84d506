"""Pages of lists: encoded once, bound to their revision."""

import json

import pytest

from tests.support.fake_gateway import FakeGateway
from thoughtgate.core.errors import UnknownTarget
from thoughtgate.core.servers import Era
from thoughtgate.surface.desk import Desk
from thoughtgate.wire import methods
from thoughtgate.wire.handshake import list_result
from thoughtgate.wire.messages import BadMessage

LIST = methods.TOOLS_LIST
OLD, NEW = Era.HANDSHAKE, Era.STATELESS


def names(page: bytes) -> list[str]:
    return [tool["name"] for tool in json.loads(page)["tools"]]


def cursor(page: bytes) -> str | None:
    found = json.loads(page).get("nextCursor")
    return found if isinstance(found, str) else None


@pytest.fixture
def gateway() -> FakeGateway:
    gateway = FakeGateway()
    for letter in "abcde":
        gateway.add(letter)
    return gateway


def test_pages_follow_one_another_to_the_end(gateway: FakeGateway) -> None:
    desk = Desk(gateway, page_size=2)
    first = desk.page("default", LIST, {}, list_result, OLD)
    second = desk.page("default", LIST, {"cursor": cursor(first)}, list_result, OLD)
    third = desk.page("default", LIST, {"cursor": cursor(second)}, list_result, OLD)
    assert names(first) + names(second) + names(third) == list("abcde")
    assert cursor(third) is None


@pytest.mark.parametrize("size", [1, 5, 6])
def test_no_page_is_empty_or_lost_at_the_edges(gateway: FakeGateway, size: int) -> None:
    desk = Desk(gateway, page_size=size)
    page, seen = desk.page("default", LIST, {}, list_result, OLD), []
    while True:
        seen += names(page)
        if cursor(page) is None:
            break
        page = desk.page("default", LIST, {"cursor": cursor(page)}, list_result, OLD)
        assert names(page)
    assert seen == list("abcde")


def test_an_empty_domain_has_one_empty_page() -> None:
    assert Desk(FakeGateway()).page("default", LIST, {}, list_result, OLD) == b'{"tools":[]}'


def test_a_page_is_encoded_once_per_revision(gateway: FakeGateway) -> None:
    desk = Desk(gateway)
    first = desk.page("default", LIST, {}, list_result, OLD)
    assert desk.page("default", LIST, {}, list_result, OLD) is first
    gateway.add("f")
    assert names(desk.page("default", LIST, {}, list_result, OLD)) == list("abcdef")


def test_a_page_that_nobody_asks_for_is_not_encoded(gateway: FakeGateway) -> None:
    desk, written = Desk(gateway, page_size=2), list[int]()

    def write(items: bytes, cursor: str | None, key: str) -> bytes:
        written.append(len(json.loads(items)))
        return list_result(items, cursor, key)

    first = desk.page("default", LIST, {}, write, OLD)
    assert written == [2]
    desk.page("default", LIST, {"cursor": cursor(first)}, write, OLD)
    desk.page("default", LIST, {"cursor": cursor(first)}, write, OLD)
    assert written == [2, 2]


@pytest.mark.parametrize("shape", ["{}-1", "{}-6", "{}-02", "{}-", "{}-2-2", "x-2"])
def test_only_cursors_that_begin_a_page_are_taken(gateway: FakeGateway, shape: str) -> None:
    desk = Desk(gateway, page_size=2)
    given = cursor(desk.page("default", LIST, {}, list_result, OLD))
    assert given is not None
    with pytest.raises(BadMessage):
        desk.page(
            "default", LIST, {"cursor": shape.format(given.partition("-")[0])}, list_result, OLD
        )


def test_a_cursor_of_an_older_list_or_of_nobody_is_refused(gateway: FakeGateway) -> None:
    desk = Desk(gateway, page_size=2)
    stale = cursor(desk.page("default", LIST, {}, list_result, OLD))
    gateway.add("f")
    for bad in (stale, "", "2", 7, ["x"]):
        with pytest.raises(BadMessage) as caught:
            desk.page("default", LIST, {"cursor": bad}, list_result, OLD)
        assert caught.value.rpc_code == -32602


def test_a_domain_that_does_not_exist_has_no_pages(gateway: FakeGateway) -> None:
    with pytest.raises(UnknownTarget):
        Desk(gateway).page("nobody", LIST, {}, list_result, OLD)


def test_an_output_schema_that_old_clients_refuse_is_shown_to_new_ones_only() -> None:
    gateway = FakeGateway()
    gateway.add("list", outputSchema={"type": "array"})
    desk = Desk(gateway)
    [old] = json.loads(desk.page("default", LIST, {}, list_result, OLD))["tools"]
    [new] = json.loads(desk.page("default", LIST, {}, list_result, NEW))["tools"]
    assert "outputSchema" not in old
    assert new["outputSchema"] == {"type": "array"}


def test_every_list_has_pages_of_its_own() -> None:
    gateway = FakeGateway().offer("name", "p").offer("uri", "r:x").offer("uriTemplate", "r:{x}")
    desk = Desk(gateway)
    for method, key, name in (
        (methods.PROMPTS_LIST, "prompts", {"name": "p"}),
        (methods.RESOURCES_LIST, "resources", {"name": "x", "uri": "r:x"}),
        (methods.TEMPLATES_LIST, "resourceTemplates", {"name": "x", "uriTemplate": "r:{x}"}),
    ):
        page = desk.page("default", method, {}, list_result, OLD)
        assert json.loads(page) == {key: [name]}
    tools = desk.page("default", LIST, {}, list_result, OLD)
    gateway.offer("name", "q")
    assert desk.page("default", LIST, {}, list_result, OLD) is tools
    page = desk.page("default", methods.PROMPTS_LIST, {}, list_result, OLD)
    assert [one["name"] for one in json.loads(page)["prompts"]] == ["p", "q"]
