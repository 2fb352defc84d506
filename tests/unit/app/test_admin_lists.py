"""Lists of the admin API: stable, bounded, and whole though they change while they are read."""

import base64
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.support.admin_api import Api, api
from thoughtgate.app.paging import encoded, page, page_in_order
from thoughtgate.core.audit import AuditRow
from thoughtgate.core.errors import Malformed
from thoughtgate.core.servers import HttpTransport, Server

NAMES = [f"s{number}" for number in range(7)]


async def pages(ours: Api, operation: str, noun: str, limit: int, **given: str) -> list[list[Any]]:
    found = []
    cursor: str | None = ""
    while cursor is not None:
        body = await ours.good(operation, query=f"limit={limit}&cursor={cursor}", **given)
        found.append(body[noun])
        cursor = body["next"]
    return found


def joined(parts: list[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(parts))


async def test_pages_are_together_the_whole_list_in_order(tmp_path: Path) -> None:
    async with api(tmp_path, "") as ours:
        for name in reversed(NAMES):
            ours.app.registry.put_server(server(name))
        sizes = [
            [
                [one["name"] for one in part]
                for part in await pages(ours, "list_servers", "servers", n)
            ]
            for n in (1, 3, 7, 500)
        ]
    assert [joined(parts) for parts in sizes] == [NAMES] * 4
    assert [len(parts) for parts in sizes] == [7, 3, 1, 1]


def server(name: str) -> Server:
    transport = HttpTransport(url="http://127.0.0.1:9/mcp")
    return Server(name=name, transport=transport, enabled=False)


async def test_a_list_may_change_between_its_pages(tmp_path: Path) -> None:
    async with api(tmp_path, "") as ours:
        for name in NAMES:
            ours.app.registry.put_server(server(name))
        first = await ours.good("list_servers", query="limit=3")
        ours.app.registry.remove_server("s2")
        ours.app.registry.put_server(server("a0"))
        second = await ours.good("list_servers", query=f"limit=3&cursor={first['next']}")
    assert [one["name"] for one in second["servers"]] == ["s3", "s4", "s5"]


CURSORS = [
    "x", "%C3%A9", "====", encoded((1,)), encoded(("a", "b")),
    base64.urlsafe_b64encode(b"{}").decode(), base64.urlsafe_b64encode(b"[null]").decode(),
]  # fmt: skip


@pytest.mark.parametrize("cursor", CURSORS)
async def test_a_cursor_of_somebody_else_is_refused(tmp_path: Path, cursor: str) -> None:
    async with api(tmp_path) as ours:
        reply = await ours.ask("list_servers", query=f"cursor={cursor}")
    assert (reply.status, reply.code) == (400, "malformed")


@pytest.mark.parametrize("limit", ["0", "501", "-1", "x", "1e9"])
async def test_a_page_has_a_bound(tmp_path: Path, limit: str) -> None:
    async with api(tmp_path) as ours:
        reply = await ours.ask("list_audit", query=f"limit={limit}")
    assert (reply.status, reply.code) == (400, "malformed")


async def test_no_row_of_the_log_is_lost_between_pages_though_many_are_of_one_instant(
    tmp_path: Path,
) -> None:
    instants = [1, 1, 1, 2, 2, 2, 2, 2, 3]
    async with api(tmp_path, "") as ours:
        for number, at_ns in enumerate(instants):
            ours.app.audit.append(row(at_ns, f"call-{number}"))
        for limit in (1, 2, 3, 4, 20):
            found = joined(await pages(ours, "list_audit", "rows", limit))
            assert [one["row"]["call_id"] for one in found] == [
                f"call-{number}" for number in reversed(range(len(instants)))
            ]


def row(at_ns: int, call_id: str) -> AuditRow:
    return AuditRow(
        at_ns=at_ns, action="tool.call", principal="local", domain="default", server="s",
        tool="t", outcome="ok", call_id=call_id,
    )  # fmt: skip


async def test_the_log_s_own_rows_are_shown_on_demand(tmp_path: Path) -> None:
    async with api(tmp_path, "") as ours:
        ours.app.audit.append(row(1, "one"))
        plain = (await ours.good("list_audit"))["rows"]
        noted = (await ours.good("list_audit", query="notes=true"))["rows"]
    assert [one["row"]["action"] for one in plain] == ["tool.call"]
    assert {one["row"]["action"] for one in noted} == {"tool.call", "audit.started"}


def test_an_order_of_its_own_is_kept_and_a_lost_place_is_said() -> None:
    items = ["b", "a", "c"]

    def key(item: str) -> tuple[str]:
        return (item,)

    first, cursor = page_in_order(items, key, cursor="", limit=2)
    assert (first, cursor) == (("b", "a"), encoded(("a",)))
    assert page_in_order(items, key, cursor=cursor or "", limit=2) == (("c",), None)
    with pytest.raises(Malformed):
        page_in_order(["b", "c"], key, cursor=cursor or "", limit=2)
    assert page([], key, cursor=cursor or "", limit=2) == ((), None)
