"""What a domain shows beside tools: which prompts and resources, under which names and URIs."""

import json
from dataclasses import replace

import pytest

from thoughtgate.catalog import Catalog, admit, merge
from thoughtgate.core.calls import ItemName
from thoughtgate.core.domains import Domain
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.tools import Kind
from thoughtgate.offered import MOST_LOOKED_UP, Offered
from thoughtgate.testing.values import make_listing, make_server
from thoughtgate.uris import own_uri, split_uri
from thoughtgate.views import build

HAS: JsonObject = {"resources": {}}


def catalog(**servers: dict[str, JsonValue]) -> Catalog:
    parts = []
    for name, listed in servers.items():
        tags = listed.pop("tags", frozenset())
        listing = replace(make_listing(name, "tool"), **listed)
        server = make_server(name, tags=tags)
        parts.append(admit(listing, server=server, effects={}, reject=lambda _: None))
    return merge(parts)


def resources(*uris: str) -> tuple[dict[str, JsonValue], ...]:
    return tuple({"uri": uri, "name": uri} for uri in uris)


def show(of: Catalog, **domain: JsonValue) -> Offered:
    return build(Domain(name="d", **domain), of).offered


TWO = {
    "a": {"resources": resources("file:///x", "file:///a"), "capabilities": HAS},
    "b": {
        "resources": resources("file:///x", "mem://b"),
        "templates": ({"uriTemplate": "db://{table}/{id}", "name": "rows"},),
        "capabilities": HAS,
    },
}


def two() -> Catalog:
    return catalog(**{name: dict(listed) for name, listed in TWO.items()})


def test_a_uri_of_two_servers_names_its_server_and_leads_back() -> None:
    shown = show(two())
    assert [one.name for one in shown.resources] == [
        "thoughtgate+a:file:///x",
        "file:///a",
        "thoughtgate+b:file:///x",
        "mem://b",
    ]
    for one in shown.resources:
        assert one.shown["uri"] == one.name
        assert shown.route(one.name) == (one.offer.server, one.offer.name)
    assert shown.route("file:///x") is None


@pytest.mark.parametrize(
    ("uri", "route"),
    [
        ("db://users/1", ("b", "db://users/1")),
        ("mem://unlisted", None),
        ("thoughtgate+a:mem://unlisted", ("a", "mem://unlisted")),
        ("thoughtgate+c:mem://x", None),
        ("thoughtgate+a:", None),
        ("", None),
    ],
)
def test_an_unlisted_uri_goes_where_only_one_server_can_have_it(
    uri: str, route: tuple[str, str] | None
) -> None:
    assert show(two()).route(uri) == route


def test_a_lone_server_gets_every_uri_as_it_is() -> None:
    shown = show(catalog(a=dict(TWO["a"])))
    assert shown.plain_uris
    assert shown.route("anything at all") == ("a", "anything at all")
    raw = b'{"contents":[{"uri":"file:///x"}]}'
    assert shown.translated("a", raw) is raw


def test_uris_in_results_are_those_that_the_client_can_ask_for() -> None:
    shown = show(two())
    link = {"type": "resource_link", "uri": "file:///x", "name": "x"}
    embedded = {"type": "resource", "resource": {"uri": "mem://new", "text": "uri"}}
    text = {"type": "text", "text": "file:///x", "n": 12345678901234567890123}
    raw = json.dumps({
        "content": [link, embedded, text],
        "structuredContent": {"uri": "file:///x"},
        "messages": [{"role": "user", "content": embedded}],
        "contents": [{"uri": "mem://b", "text": ""}],
    }).encode()
    got = json.loads(shown.translated("b", raw))
    assert got["content"][0]["uri"] == "thoughtgate+b:file:///x"
    assert got["content"][1]["resource"] == {"uri": "thoughtgate+b:mem://new", "text": "uri"}
    assert got["content"][2] == text
    assert got["structuredContent"] == {"uri": "file:///x"}
    assert got["messages"][0]["content"]["resource"]["uri"] == "thoughtgate+b:mem://new"
    assert got["contents"] == [{"uri": "mem://b", "text": ""}]
    for uri in (got["content"][0]["uri"], got["content"][1]["resource"]["uri"]):
        assert shown.route(uri) == ("b", split_uri(uri)[1])


def test_a_server_without_resources_has_no_uris_to_translate() -> None:
    raw = b'{"content":[{"type":"resource_link","uri":"file:///x"}]}'
    assert show(two()).translated("c", raw) is raw


@pytest.mark.parametrize(
    ("rules", "prompts", "uris"),
    [
        ({"include": ("a/*",)}, ["a__p"], ["file:///x", "file:///a"]),
        ({"include": ("a/tool",)}, [], []),
        ({"include": ("prompt:*",)}, ["a__p", "b__p"], []),
        ({"include": ("resource:a/*", "tool:*")}, [], ["file:///x", "file:///a"]),
        ({"include": ("tag:kind",)}, ["b__p"], ["file:///x", "mem://b"]),
        ({"exclude": ("resource:b/*",)}, ["a__p", "b__p"], ["file:///x", "file:///a"]),
        ({"exclude": ("a/file:///a", "b/*")}, ["a__p"], ["file:///x"]),
    ],
)
def test_rules_choose_prompts_and_resources_as_they_choose_tools(
    rules: dict[str, JsonValue], prompts: list[str], uris: list[str]
) -> None:
    listed = {name: {**some, "prompts": ({"name": "p"},)} for name, some in TWO.items()}
    listed["b"]["tags"] = frozenset({"kind"})
    view = build(Domain(name="d", **rules), catalog(**listed))
    assert [one.name for one in view.prompts] == prompts
    assert [one.name for one in view.resources] == uris
    assert not any("fits no" in warning for warning in view.warnings)


def test_what_a_rule_hides_is_reached_by_no_spelling_of_its_uri() -> None:
    shown = show(two(), exclude=("a/file:///a", "b/*"))
    assert shown.route("file:///x") == ("a", "file:///x")
    for uri in ("file:///a", "thoughtgate+a:file:///a", "thoughtgate+b:mem://b", "mem://b"):
        assert shown.route(uri) in {None, ("a", "mem://b"), ("a", "thoughtgate+b:mem://b")}


def test_own_names_of_prompts_are_left_out_where_they_would_be_ambiguous() -> None:
    both = catalog(
        a={"prompts": ({"name": "p"}, {"name": "only"})}, b={"prompts": ({"name": "p"},)}
    )
    view = build(Domain(name="d", prefixed=False), both)
    assert [one.name for one in view.prompts] == ["only"]
    assert sum("prompt" in warning for warning in view.warnings) == 2


def test_bad_objects_are_held_back_with_a_reason_and_cost_nobody_a_place() -> None:
    found = catalog(
        a={
            "prompts": ({"name": "p"}, {"name": ""}, {}, {"name": "p"}, {"name": 7}),
            "resources": ({"uri": "a:b"}, {"uri": "a:c", "name": "c", "x": "y" * 300_000}),
        }
    )
    (offers,) = found.offers
    assert [one.name for one in offers.prompts] == ["p"]
    assert offers.resources == ()
    assert [one.rule for one in found.quarantined] == [
        "bad_name", "bad_name", "duplicate_name", "bad_name", "bad_name", "too_large",
    ]  # fmt: skip


def test_objects_are_shown_value_for_value() -> None:
    given = {"name": "p", "x-own": {"n": 12345678901234567890, "none": None}, "arguments": []}
    (shown,) = show(catalog(a={"prompts": (given,)})).prompts
    assert shown.shown == {**given, "name": "a__p"}


def method(shown: Offered, name: str, **arguments: JsonValue) -> tuple[str, JsonObject] | None:
    item = shown.find(ItemName(domain="d", kind=Kind.METHOD, name=name), arguments)
    return None if item is None else (item.server, shown.true_arguments(item, arguments))


def test_extensions_go_to_the_only_server_that_has_any() -> None:
    one = show(catalog(a={"capabilities": {"extensions": {"x/y": {"v": 1}}}}, b={}))
    assert one.extensions == {"x/y": {"v": 1}}
    assert method(one, "x/do", taskId="7") == ("a", {"taskId": "7"})
    raw = b'{"resultType":"task","taskId":"7"}'
    assert one.translated("a", raw) is raw


def test_a_task_leads_back_to_the_server_that_made_it() -> None:
    both = show(
        catalog(
            a={"capabilities": {"extensions": {"x/y": {"v": 1}}}},
            b={"capabilities": {"extensions": {"x/y": {"v": 2}, "x/z": {}}}},
        )
    )
    assert both.extensions == {"x/y": {"v": 1}, "x/z": {}}
    assert method(both, "x/do") is None
    made = json.loads(both.translated("b", b'{"resultType":"task","taskId":"7","n":1.0}'))
    assert made == {"resultType": "task", "taskId": "thoughtgate+b:7", "n": 1.0}
    assert method(both, "tasks/get", taskId=made["taskId"]) == ("b", {"taskId": "7"})
    assert method(both, "tasks/get", taskId="7") is None
    assert method(both, "tasks/get", taskId="thoughtgate+c:7") is None
    assert method(both, "tasks/get", taskId=7) is None


@pytest.mark.parametrize("uri", ["file:///a", "a:b:c", "thoughtgate+x:y", ""])
def test_a_uri_with_its_server_s_name_splits_into_the_two_again(uri: str) -> None:
    assert split_uri(own_uri("srv", uri)) == (("srv", uri) if uri else ("", own_uri("srv", "")))


@pytest.mark.parametrize(
    "uri",
    [
        "file:///secret/x",
        "file:/secret/x",
        "FILE:///secret/x",
        "file://localhost/secret/x",
        "file:////secret//x",
        "file:///./secret/x",
        "file:///%73ecret/x",
        "file:///%2573ecret/x",
        "file:///secret%2fx",
        "file:///public/../secret/x",
        "file:///public/%2e%2e/secret/x",
        "file:///public/..\\secret/x",
        "file:///%" + "25" * 9 + "73ecret/x",
        "thoughtgate+inner:file:///secret/x",
        "thoughtgate+f:thoughtgate+g:file:///%73ecret/x",
    ],
)
def test_no_spelling_of_a_uri_gets_past_a_rule(uri: str) -> None:
    server = {"capabilities": HAS}
    excluding = show(catalog(f=dict(server)), exclude=("resource:f/file:///secret/*",))
    assert excluding.route(uri) is None
    including = show(catalog(f=dict(server)), include=("f/tool", "f/", "f/file:///public/*"))
    assert including.route(uri) is None
    for shown in (excluding, including):
        assert shown.route("file:///public/a%20b?q=1") == ("f", "file:///public/a%20b?q=1")


def test_a_rule_for_one_resource_holds_with_a_query_and_a_fragment_too() -> None:
    shown = show(catalog(f={"capabilities": HAS}), exclude=("resource:f/file:///etc/passwd",))
    assert shown.route("file:///etc/passwd?a#b") is None
    assert shown.route("file:///etc/passwd2") is not None


def test_a_domain_without_rules_for_uris_passes_any_spelling_on() -> None:
    shown = show(catalog(f={"capabilities": HAS}), include=("f/*",), exclude=("tag:x",))
    assert shown.route("git://x/../y") == ("f", "git://x/../y")


def test_a_gateway_behind_the_only_server_keeps_its_own_uris() -> None:
    """The inner one names its servers by the same scheme; one may even have our server's name."""
    listed = ("thoughtgate+a:file:///x", "thoughtgate+inner:file:///x")
    shown = show(catalog(a={"resources": resources(*listed), "capabilities": HAS}))
    for one in shown.resources:
        assert shown.route(one.name) == ("a", one.offer.name)


def test_a_server_cannot_speak_for_another_by_listing_a_uri_that_names_it() -> None:
    liar = {"resources": resources("thoughtgate+b:file:///x"), "capabilities": HAS}
    shown = show(catalog(b=dict(TWO["b"]), liar=liar))
    assert shown.route("thoughtgate+b:file:///x") == ("b", "file:///x")
    (lied,) = [one for one in shown.resources if one.offer.server == "liar"]
    assert shown.route(lied.name) == ("liar", "thoughtgate+b:file:///x")


def test_so_many_uris_that_looking_them_up_would_take_long_all_lead_back() -> None:
    shown = show(two())
    uris = [f"db://t/{number}" for number in range(MOST_LOOKED_UP + 1)]
    raw = json.dumps({"content": [{"type": "resource_link", "uri": uri} for uri in uris]}).encode()
    got = [block["uri"] for block in json.loads(shown.translated("b", raw))["content"]]
    assert got == [*uris[:-1], own_uri("b", uris[-1])]
    assert [shown.route(uri) for uri in got] == [("b", uri) for uri in uris]


@pytest.mark.parametrize("name", ["", "a b", "x/y\r\nEvil: z", "x\0", "méthode", "x" * 257])
def test_a_method_whose_name_no_header_can_carry_is_unknown(name: str) -> None:
    """A request under such a name could not be sent over HTTP, and counted against its server."""
    shown = show(catalog(a={"capabilities": {**HAS, "extensions": {"e": {}}}}))
    assert shown.find(ItemName(domain="d", kind=Kind.METHOD, name="x/y"), {}) is not None
    assert shown.find(ItemName(domain="d", kind=Kind.METHOD, name=name), {}) is None
