"""Pages of tools: encoded once, bound to their revision."""

import json

import pytest

from tests.support.fake_gateway import FakeGateway
from thoughtgate.core.errors import UnknownTarget
from thoughtgate.core.servers import Era
from thoughtgate.surface.tools import ToolDesk
from thoughtgate.wire.handshake import list_result
from thoughtgate.wire.messages import BadMessage

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
    desk = ToolDesk(gateway, page_size=2)
    first = desk.page("default", {}, list_result, OLD)
    second = desk.page("default", {"cursor": cursor(first)}, list_result, OLD)
    third = desk.page("default", {"cursor": cursor(second)}, list_result, OLD)
    assert names(first) + names(second) + names(third) == list("abcde")
    assert cursor(third) is None


@pytest.mark.parametrize("size", [1, 5, 6])
def test_no_page_is_empty_or_lost_at_the_edges(gateway: FakeGateway, size: int) -> None:
    desk = ToolDesk(gateway, page_size=size)
    page, seen = desk.page("default", {}, list_result, OLD), []
    while True:
        seen += names(page)
        if cursor(page) is None:
            break
        page = desk.page("default", {"cursor": cursor(page)}, list_result, OLD)
        assert names(page)
    assert seen == list("abcde")


def test_an_empty_domain_has_one_empty_page() -> None:
    assert ToolDesk(FakeGateway()).page("default", {}, list_result, OLD) == b'{"tools":[]}'


def test_a_page_is_encoded_once_per_revision(gateway: FakeGateway) -> None:
    desk = ToolDesk(gateway)
    first = desk.page("default", {}, list_result, OLD)
    assert desk.page("default", {}, list_result, OLD) is first
    gateway.add("f")
    assert names(desk.page("default", {}, list_result, OLD)) == list("abcdef")


def test_a_cursor_of_an_older_list_or_of_nobody_is_refused(gateway: FakeGateway) -> None:
    desk = ToolDesk(gateway, page_size=2)
    stale = cursor(desk.page("default", {}, list_result, OLD))
    gateway.add("f")
    for bad in (stale, "", "2", 7, ["x"]):
        with pytest.raises(BadMessage) as caught:
            desk.page("default", {"cursor": bad}, list_result, OLD)
        assert caught.value.rpc_code == -32602


def test_a_domain_that_does_not_exist_has_no_pages(gateway: FakeGateway) -> None:
    with pytest.raises(UnknownTarget):
        ToolDesk(gateway).page("nobody", {}, list_result, OLD)


def test_an_output_schema_that_old_clients_refuse_is_shown_to_new_ones_only() -> None:
    gateway = FakeGateway()
    gateway.add("list", outputSchema={"type": "array"})
    desk = ToolDesk(gateway)
    [old] = json.loads(desk.page("default", {}, list_result, OLD))["tools"]
    [new] = json.loads(desk.page("default", {}, list_result, NEW))["tools"]
    assert "outputSchema" not in old
    assert new["outputSchema"] == {"type": "array"}
