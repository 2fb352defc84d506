"""The admin face by itself: who may ask, what is read, and how errors look."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tests.support.waiting import until, within
from thoughtgate.core.errors import Conflict, Missing, Refused, StoreFull
from thoughtgate.surface.admin import AdminFace, AdminSettings, Front
from thoughtgate.surface.admin_openapi import document
from thoughtgate.surface.admin_route import Ask, Match, Route, match_of
from thoughtgate.testing.recorder import ListAuditLog

TOKEN = "t" * 43


class Thing(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A thing."""

    size: int = 0


class Which(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which things."""

    limit: int = 10
    all: bool = False


class Desk:
    def __init__(self) -> None:
        self.asked: list[Ask] = []
        self.released = asyncio.Event()
        self.released.set()

    async def answer(self, ask: Ask) -> Thing:
        self.asked.append(ask)
        await self.released.wait()
        return Thing(size=7)

    async def gone(self, ask: Ask) -> Thing:
        raise Missing(message=f"no thing {ask.path['name']}")

    async def break_(self, ask: Ask) -> Thing:
        return Thing(size=int("secret detail"))


def refuse(value: Any) -> None:
    if "bad" in value:
        raise Refused(message="bad things are refused")


ROUTES: tuple[Route[Desk], ...] = (
    Route(
        name="list_things", method="GET", path="/things", summary="List", handler=Desk.answer,
        query=Which, reply=Thing, tagged=True,
    ),
    Route(
        name="put_thing", method="PUT", path="/things/{name}", summary="Put", handler=Desk.answer,
        body=Thing, reply=Thing, errors=(Conflict,), guarded=True, refuse=refuse,
    ),
    Route(
        name="get_thing", method="GET", path="/things/{name}", summary="Get", handler=Desk.gone,
        reply=Thing, errors=(Missing,),
    ),
    Route(
        name="break_thing", method="POST", path="/things/{name}/break", summary="Break",
        handler=Desk.break_, reply=Thing,
    ),
)  # fmt: skip


class Place:
    """A face in memory."""

    def __init__(self, audit: ListAuditLog | None = None, **settings: Any) -> None:
        self.desk = Desk()
        self.audit = audit or ListAuditLog()
        self.body_comes = True
        given = AdminSettings(token=TOKEN, version="1", **settings)
        self.face = AdminFace(ROUTES, self.desk, self.revision, self.audit, given)
        self.app: Callable[..., Awaitable[None]] = self.face

    async def revision(self) -> int:
        return 42

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: tuple[tuple[bytes, bytes], ...] = (),
        *,
        query: bytes = b"",
        token: str = TOKEN,
    ) -> tuple[int, dict[str, str], Any]:
        sent: list[Any] = []
        given: list[tuple[bytes, bytes]] = [(b"host", b"127.0.0.1:8765")]
        if token:
            given.append((b"authorization", f"Bearer {token}".encode()))
        names = {name for name, _ in headers}
        given = [pair for pair in given if pair[0] not in names]
        if body and b"content-type" not in names:
            given.append((b"content-type", b"application/json"))
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
            "headers": [*given, *headers],
        }

        async def receive() -> Any:
            if not self.body_comes:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(event: Any) -> None:
            sent.append(event)

        await within(self.app(scope, receive, send))
        start, end = sent
        told = {name.decode(): value.decode() for name, value in start["headers"]}
        return start["status"], told, json.loads(end["body"])


@pytest.fixture
def place() -> Place:
    return Place()


async def status(asking: Awaitable[tuple[int, dict[str, str], Any]]) -> tuple[int, str]:
    """Return the status and the code of a problem, which must be one by its looks."""
    number, headers, body = await asking
    assert headers["content-type"] == "application/problem+json"
    assert body["status"] == number
    assert body["type"] == "about:blank"
    assert body["title"]
    assert body["detail"]
    return number, body["code"]


async def test_a_good_reply_is_json_with_its_revision_and_is_kept_by_nobody(place: Place) -> None:
    number, headers, body = await place.ask("GET", "/api/v1/things", query=b"limit=3&all=true")
    assert (number, body) == (200, {"size": 7})
    assert headers["content-type"] == "application/json"
    assert headers["etag"] == '"42"'
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert not any(name.startswith("access-control") for name in headers)
    [asked] = place.desk.asked
    assert asked.query == Which(limit=3, all=True)


WITHOUT = [
    (),
    ((b"authorization", b""),),
    ((b"authorization", b"Bearer"),),
    ((b"authorization", b"Bearer "),),
    ((b"authorization", f"Bearer {TOKEN}x".encode()),),
    ((b"authorization", f"Bearer {TOKEN[:-1]}".encode()),),
    ((b"authorization", f"Basic {TOKEN}".encode()),),
    ((b"authorization", TOKEN.encode()),),
    ((b"authorization", "Bearer é".encode()),),
    ((b"cookie", f"token={TOKEN}".encode()),),
]


@pytest.mark.parametrize("headers", WITHOUT)
@pytest.mark.parametrize("path", ["/things", "/nothing", "/openapi.json", "", "/things/a/break"])
async def test_without_the_token_nobody_learns_what_there_is(
    place: Place, headers: tuple[tuple[bytes, bytes], ...], path: str
) -> None:
    number, told, body = await place.ask("GET", f"/api/v1{path}", headers=headers, token="")
    assert (number, body["code"]) == (401, "refused")
    assert told["www-authenticate"].startswith("Bearer")
    assert TOKEN not in json.dumps(body)
    assert place.desk.asked == []


async def test_the_scheme_of_the_token_may_be_in_any_case(place: Place) -> None:
    headers = ((b"authorization", f"bearer {TOKEN}".encode()),)
    assert (await place.ask("GET", "/api/v1/things", headers=headers))[0] == 200


HOSTILE = [
    ((b"host", b"evil.example"), 421),
    ((b"host", b""), 421),
    ((b"origin", b"http://evil.example"), 403),
    ((b"origin", b"null"), 403),
    ((b"origin", b"http://localhost:3000"), 403),
    ((b"origin", b"http://127.0.0.1:1"), 403),
    ((b"origin", b"https://127.0.0.1:8765.evil.example"), 403),
    ((b"sec-fetch-site", b"cross-site"), 403),
    ((b"sec-fetch-site", b"same-site"), 403),
    ((b"connection", b"upgrade"), 400),
]


@pytest.mark.parametrize(("header", "number"), HOSTILE)
async def test_a_foreign_host_or_page_is_refused_though_it_has_the_token(
    place: Place, header: tuple[bytes, bytes], number: int
) -> None:
    assert (await status(place.ask("GET", "/api/v1/things", headers=(header,))))[0] == number
    assert place.desk.asked == []


async def test_a_page_of_this_very_place_may_ask(place: Place) -> None:
    headers = ((b"origin", b"http://127.0.0.1:8765"), (b"sec-fetch-site", b"same-origin"))
    assert (await place.ask("GET", "/api/v1/things", headers=headers))[0] == 200


async def test_a_preflight_is_not_answered(place: Place) -> None:
    number, told, _ = await place.ask("OPTIONS", "/api/v1/things", token="")
    assert number == 401
    assert not any(name.startswith("access-control") for name in told)


async def test_a_header_that_decides_may_come_once_only(place: Place) -> None:
    twice = ((b"authorization", b"Bearer x"), (b"authorization", f"Bearer {TOKEN}".encode()))
    asking = place.ask("GET", "/api/v1/things", headers=twice)
    assert await status(asking) == (400, "malformed")


async def test_what_is_not_there_and_what_is_not_done_there_differ(place: Place) -> None:
    assert await status(place.ask("GET", "/api/v1/nothing")) == (404, "not_found")
    assert await status(place.ask("GET", "/api/v1/things/a/b/c")) == (404, "not_found")
    assert await status(place.ask("GET", "/api/v1/things/a")) == (404, "not_found")
    number, told, body = await place.ask("DELETE", "/api/v1/things/a")
    assert (number, told["allow"], body["code"]) == (405, "PUT, GET", "malformed")


BODIES = [
    (b"", 400),
    (b"{", 400),
    (b"[]", 400),
    (b'{"size":"7"}', 400),
    (b'{"size":7,"size":8}', 400),
    (b'{"size":7,"other":1}', 400),
    (b'{"size":NaN}', 400),
    (b'\xff{"size":7}', 400),
    (b'{"bad":1}', 403),
    (b'{"size":' + b"1" * 2000 + b"}", 413),
]


@pytest.mark.parametrize(("body", "number"), BODIES)
async def test_a_body_is_read_strictly_and_within_bounds(body: bytes, number: int) -> None:
    place = Place(max_body=1024)
    headers = ((b"if-match", b"*"), (b"content-type", b"application/json; charset=utf-8"))
    asking = place.ask("PUT", "/api/v1/things/a", body, headers)
    assert (await status(asking))[0] == number
    assert place.desk.asked == []


@pytest.mark.parametrize("kind", [b"text/plain", b"application/x-www-form-urlencoded", b""])
async def test_a_form_of_a_page_is_no_body(place: Place, kind: bytes) -> None:
    headers = ((b"if-match", b"*"), (b"content-type", kind))
    asking = place.ask("PUT", "/api/v1/things/a", b'{"size":1}', headers)
    assert (await status(asking))[0] == 415


@pytest.mark.parametrize("query", [b"limit=x", b"limit=1&limit=2", b"other=1", b"all=maybe"])
async def test_a_query_is_read_strictly(place: Place, query: bytes) -> None:
    assert await status(place.ask("GET", "/api/v1/things", query=query)) == (400, "malformed")


async def test_an_operation_without_a_query_takes_none(place: Place) -> None:
    asking = place.ask("GET", "/api/v1/things/a", query=b"x=1")
    assert await status(asking) == (400, "malformed")


PRECONDITIONS = [
    ('"42"', None, Match(revision=42)),
    ("*", None, Match(exists=True)),
    (None, "*", Match(exists=False)),
    (None, None, Match()),
    ("42", None, None),
    ('W/"42"', None, None),
    ('"42", "43"', None, None),
    ('"-1"', None, None),
    ('"' + "9" * 19 + '"', None, None),
    (None, '"42"', None),
    ('"42"', "*", None),
]


@pytest.mark.parametrize(("match", "none_match", "read"), PRECONDITIONS)
def test_a_precondition_is_one_revision_or_a_star(
    match: str | None, none_match: str | None, read: Match | None
) -> None:
    assert match_of(match, none_match) == read


async def test_a_guarded_change_without_a_precondition_is_not_made(place: Place) -> None:
    number, _ = await status(place.ask("PUT", "/api/v1/things/a", b'{"size":1}'))
    assert number == 428
    number, _ = await status(
        place.ask("PUT", "/api/v1/things/a", b'{"size":1}', ((b"if-match", b"x"),))
    )
    assert number == 400
    assert place.desk.asked == []


async def test_a_name_in_a_path_is_decoded_by_itself(place: Place) -> None:
    headers = ((b"if-match", b"*"),)
    await place.ask("PUT", "/api/v1/things/a%2Fb%20%C3%A9", b'{"size":1}', headers)
    [asked] = place.desk.asked
    assert asked.path == {"name": "a/b é"}
    assert asked.body == Thing(size=1)
    bad = place.ask("PUT", "/api/v1/things/%ff", b'{"size":1}', headers)
    assert await status(bad) == (400, "malformed")


async def test_a_bug_is_an_id_and_nothing_else(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    number, _, body = await place.ask("POST", "/api/v1/things/a/break")
    assert (number, body["code"]) == (500, "internal")
    assert "secret detail" not in json.dumps(body)
    [record] = caplog.records
    assert body["data"]["id"] == vars(record)["incident"]
    assert TOKEN not in caplog.text


async def test_every_change_leaves_a_row_in_the_audit_log_and_no_question_does(
    place: Place,
) -> None:
    await place.ask("GET", "/api/v1/things")
    await place.ask("PUT", "/api/v1/things/a", b'{"size":1}', ((b"if-match", b"*"),))
    await place.ask("PUT", "/api/v1/things/a", b'{"bad":1}', ((b"if-match", b"*"),))
    await place.ask("PUT", "/api/v1/things/a", b'{"size":1}')
    await place.ask("POST", "/api/v1/things/a/break")
    rows = [(row.action, row.principal, row.outcome) for row in place.audit.rows]
    assert rows == [
        ("admin.put_thing", "admin", "ok"),
        ("admin.put_thing", "admin", "refused"),
        ("admin.put_thing", "admin", "malformed"),
        ("admin.break_thing", "admin", "internal"),
    ]


class FullLog(ListAuditLog):
    async def flush(self) -> None:
        raise StoreFull(message="no space is left")


async def test_a_required_log_holds_a_change_before_it_is_made() -> None:
    place = Place(intents=True)
    await place.ask("PUT", "/api/v1/things/a", b'{"size":1}', ((b"if-match", b"*"),))
    assert [row.outcome for row in place.audit.rows] == ["", "ok"]


async def test_what_a_required_log_cannot_hold_is_not_done() -> None:
    place = Place(FullLog(), intents=True)
    asking = place.ask("PUT", "/api/v1/things/a", b'{"size":1}', ((b"if-match", b"*"),))
    assert await status(asking) == (507, "store_full")
    assert place.desk.asked == []
    assert (await place.ask("GET", "/api/v1/things"))[0] == 200


async def test_too_many_requests_at_once_are_refused_and_room_comes_back() -> None:
    place = Place(max_running=1)
    place.desk.released.clear()
    waiting = asyncio.create_task(place.ask("GET", "/api/v1/things"))
    await until(lambda: place.desk.asked)
    assert await status(place.ask("GET", "/api/v1/things")) == (503, "overloaded")
    place.desk.released.set()
    assert (await within(waiting))[0] == 200
    assert (await place.ask("GET", "/api/v1/things"))[0] == 200


async def test_a_body_that_never_comes_is_not_waited_for() -> None:
    place = Place(body_timeout=0.05)
    place.body_comes = False
    headers = ((b"if-match", b"*"),)
    asking = place.ask("PUT", "/api/v1/things/a", b"{}", headers)
    assert (await status(asking))[0] == 408


async def test_the_document_is_made_of_the_routes_that_are_served(place: Place) -> None:
    number, _, body = await place.ask("GET", "/api/v1/openapi.json")
    assert (number, body) == (200, document(ROUTES, "1"))
    served = {(route.path, route.method.lower()) for route in ROUTES}
    assert {(path, method) for path, ways in body["paths"].items() for method in ways} == served


OURS = [("/api/v1", True), ("/api/v1/", True), ("/api/v1/x", True), ("/api/v10", False)]


@pytest.mark.parametrize(("path", "ours"), [*OURS, ("/mcp", False), ("/mcp/api/v1", False)])
async def test_the_front_gives_the_admin_face_its_own_and_nothing_else(
    place: Place, path: str, *, ours: bool
) -> None:
    async def rest(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 299, "headers": []})
        await send({"type": "http.response.body", "body": b"{}", "more_body": False})

    place.app = Front(rest, place.face)
    assert ((await place.ask("GET", path))[0] != 299) is ours
    place.app = Front(rest, None)
    assert (await place.ask("GET", path))[0] == 299
