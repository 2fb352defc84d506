"""Every operation of the admin API over a composed gateway, held to its own OpenAPI document."""

from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.support.admin_api import DOCUMENT, SECRET, api
from thoughtgate.app.admin_routes import ROUTES
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.errors import Conflict
from thoughtgate.core.servers import HttpTransport, Server, StdioTransport
from thoughtgate.registry.store import Registry
from thoughtgate.surface.admin_route import Match
from thoughtgate.testing.fake_http import fake_http
from thoughtgate.testing.fake_server import FakeServer
from thoughtgate.testing.fake_turn import Script

FAR = HttpTransport(url="http://127.0.0.1:9/mcp")


def test_the_document_is_valid_openapi() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()
    operations = [one for ways in DOCUMENT["paths"].values() for one in ways.values()]
    assert {one["operationId"] for one in operations} == {route.name for route in ROUTES}
    assert len(operations) == len(ROUTES)
    assert all(one["summary"] for one in operations)
    kinds = DOCUMENT["components"]["schemas"]
    assert [name for name, kind in kinds.items() if not kind.get("description")] == []


def test_no_field_on_the_way_in_is_for_a_command() -> None:
    put = DOCUMENT["components"]["schemas"]["ServerPut"]
    assert put["additionalProperties"] is False
    assert set(put["properties"]).isdisjoint({"command", "argv", "args", "env", "cwd"})


async def test_every_operation_answers_as_the_document_says(tmp_path: Path) -> None:
    async with fake_http() as peer, api(tmp_path) as ours:
        good, new = ours.good, {"If_None_Match": "*"}
        await good("put_server", {"url": peer.url}, server="far", **new)
        assert (await good("check_server", server="far"))["ok"]
        assert (await good("restart_server", server="far"))["state"] == "ready"
        assert (await good("get_server", server="far"))["tools"]
        assert (await good("disable_server", server="far"))["state"] == "disabled"
        assert (await good("enable_server", server="far"))["enabled"]
        names = [one["name"] for one in (await good("list_servers"))["servers"]]
        assert names == ["far", "filed"]
        await ours.app.keeper.discover(["far"], lambda line: None)
        tools = (await good("list_tools", query="server=far"))["tools"]
        tool = {"server": "far", "tool": tools[0]["tool"]}
        assert (await good("get_tool", **tool))["definition"]["name"] == tool["tool"]
        assert (await good("put_effect", {"effect": "read"}, **tool))["warnings"] == []
        assert (await good("get_tool", **tool))["entry"]["effect"] == "read"
        await good("put_domain", {"include": ["far/*"]}, domain="small", **new)
        assert (await good("get_domain", domain="small"))["tools"] == len(tools)
        assert [one["name"] for one in (await good("list_domains"))["domains"]] == [
            "default", "filed", "small",
        ]  # fmt: skip
        shown = (await good("list_domain_tools", domain="small"))["tools"][0]["name"]
        assert (await good("list_domain_offers", domain="small"))["offers"] == []
        whole = await good("get_domain_tool", domain="small", tool=shown)
        assert whole["shown"]["name"] == shown
        stages = (await good("explain_tool", domain="small", tool=shown))["stages"]
        assert [one["stage"] for one in stages][-1] == "sent"
        await good("delete_domain", domain="small", If_Match="*")
        await good("delete_server", server="far", If_Match="*")
        status = await good("get_status")
        assert [one["name"] for one in status["servers"]] == ["filed", "thoughtgate"]
        assert (await good("reload"))["servers"] == []
        assert (await good("back_up", {"name": "one.db"}))["size"] > 0
        assert (await good("verify_audit"))["ok"]
        assert (await good("list_audit"))["rows"][0]["row"]["action"].startswith("admin.")
        assert ours.called == {route.name for route in ROUTES}


async def test_an_unrelated_change_does_not_refuse_who_expects_a_thing_to_be_missing(
    tmp_path: Path,
) -> None:
    async with api(tmp_path) as ours:
        registry, new = ours.app.registry, Match(exists=False)
        others = iter(["faster"])

        def changing(store: Registry) -> None:
            new.hold(exists=store.server("mine") is not None)
            for name in others:
                registry.put_server(Server(name=name, transport=FAR))
            store.put_server(Server(name="mine", transport=FAR))

        await ours.desk.change(new, changing)
        assert {"faster", "mine"} <= {*registry.server_names()}
        with pytest.raises(Conflict):
            await ours.desk.change(new, changing)


async def test_what_is_held_back_is_listed_with_its_reason(tmp_path: Path) -> None:
    odd = {"name": "odd", "inputSchema": {"type": "object", "$ref": "http://elsewhere/schema"}}
    async with api(tmp_path) as ours:
        far = Server(name="far", transport=HttpTransport(url="http://127.0.0.1:9/mcp"))
        ours.app.registry.put_server(far)
        ours.app.registry.record_tools("far", [odd, {"name": "even", "inputSchema": {}}])
        await ours.app.keeper.refresh()
        [held] = (await ours.good("list_tools", query="held=true"))["tools"]
        assert (held["server"], held["tool"], held["effect"]) == ("far", "odd", None)
        assert held["rule"]
        assert held["reason"]
        found = await ours.good("get_tool", server="far", tool="odd")
        assert found == {"entry": held, "definition": {}}
        [told] = (await ours.good("list_domain_tools", domain="default"))["held"]
        assert (told["tool"], told["rule"]) == ("odd", held["rule"])
        both = (await ours.good("list_tools", query="server=far"))["tools"]
    assert [one["tool"] for one in both] == ["even", "odd"]


OFFERS = Script(offers=True)


async def test_a_domain_tells_of_its_prompts_and_resources(tmp_path: Path) -> None:
    async with fake_http(FakeServer(OFFERS)) as peer, api(tmp_path) as ours:
        await ours.good("put_server", {"url": peer.url}, server="far", If_None_Match="*")
        await ours.app.keeper.discover(["far"], lambda line: None)
        found = (await ours.good("list_domain_offers", domain="default"))["offers"]
        first = await ours.good("list_domain_offers", query="limit=1", domain="default")
        rest = await ours.good(
            "list_domain_offers", query=f"cursor={first['next']}", domain="default"
        )
    assert {one["kind"] for one in found} == {"prompt", "resource", "template"}
    assert {one["server"] for one in found} == {"far"}
    assert first["offers"] + rest["offers"] == found


MISSING = [
    ("get_server", {"server": "no"}, None),
    ("enable_server", {"server": "no"}, None),
    ("check_server", {"server": "no"}, None),
    ("delete_server", {"server": "no", "If_Match": "*"}, None),
    ("get_tool", {"server": "no", "tool": "no"}, None),
    ("get_domain", {"domain": "no"}, None),
    ("delete_domain", {"domain": "no", "If_Match": "*"}, None),
    ("list_domain_tools", {"domain": "no"}, None),
    ("list_domain_offers", {"domain": "no"}, None),
    ("get_domain_tool", {"domain": "default", "tool": "no"}, None),
]


@pytest.mark.parametrize(("name", "given", "body"), MISSING)
async def test_what_is_not_there_is_said_to_be_missing(
    tmp_path: Path, name: str, given: dict[str, str], body: Any
) -> None:
    async with api(tmp_path) as ours:
        reply = await ours.ask(name, body, **given)
    assert (reply.status, reply.code) == (404, "not_found")


async def test_an_entry_of_the_file_stays_as_the_file_says(tmp_path: Path) -> None:
    async with api(tmp_path) as ours:
        star = {"If_Match": "*"}
        replies = [
            await ours.ask("put_server", {"url": "http://a"}, server="filed", **star),
            await ours.ask("delete_server", server="filed", **star),
            await ours.ask("enable_server", server="filed"),
            await ours.ask("put_domain", {}, domain="filed", **star),
            await ours.ask("delete_domain", domain="filed", **star),
        ]
        entry = await ours.good("get_server", server="filed")
    assert [(one.status, one.code) for one in replies] == [(422, "config_error")] * 5
    assert all("thoughtgate.toml" in one.body["detail"] for one in replies)
    assert (entry["source"], entry["enabled"]) == ("config", False)


async def test_a_command_can_be_used_or_not_but_never_put_or_changed(tmp_path: Path) -> None:
    child = StdioTransport(argv=("my-server", "--api-key", SECRET), env={"KEY": SECRET}, cwd="/")
    async with api(tmp_path) as ours:
        ours.app.registry.put_server(Server(name="child", transport=child, enabled=False))
        for body in ({"url": "http://a"}, {"command": ["sh"]}, {"url": "http://a", "env": {}}):
            reply = await ours.ask("put_server", body, server="child", If_Match="*")
            assert (reply.status, reply.code) == (403, "refused")
        reply = await ours.ask("put_server", {"command": ["sh"]}, server="new", If_None_Match="*")
        assert (reply.status, reply.code) == (403, "refused")
        entry = await ours.good("get_server", server="child")
        assert ours.app.registry.server("child") == Server(
            name="child", transport=child, enabled=False
        )
        await ours.good("delete_server", server="child", If_Match="*")
    assert entry["command"] == ["my-server", "--api-key", "***"]
    assert (entry["secrets"], entry["kind"]) == (["KEY"], "stdio")
    assert SECRET not in "".join(ours.replies)


async def test_the_gateway_s_own_name_is_taken(tmp_path: Path) -> None:
    async with api(tmp_path) as ours:
        body = {"url": "http://a"}
        reply = await ours.ask("put_server", body, server="thoughtgate", If_None_Match="*")
        assert (reply.status, reply.code) == (403, "refused")
        bad = await ours.ask("put_server", body, server="Not a name", If_None_Match="*")
        assert (bad.status, bad.code) == (422, "config_error")


async def test_a_secret_goes_in_and_never_comes_out(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:9/mcp?key={SECRET}"
    async with api(tmp_path) as ours:
        body = {"url": url, "headers": {"Authorization": SECRET}, "start_timeout": 1}
        entry = await ours.good("put_server", body, server="far", If_None_Match="*")
        await ours.good("check_server", server="far")
        for question in ("list_servers", "get_status", "list_audit", "list_tools"):
            await ours.good(question)
        again = {"url": entry["url"], "headers": {"Authorization": None}, "trusted": True}
        await ours.good("put_server", again, server="far", If_Match="*")
        stored = ours.app.registry.server("far")
    assert entry["secrets"] == ["Authorization"]
    assert entry["url"] == "http://127.0.0.1:9/mcp"
    assert stored is not None
    assert stored.trusted
    assert stored.transport == HttpTransport(url=url, headers={"Authorization": SECRET})
    assert SECRET not in "".join(ours.replies)


async def test_a_stored_secret_never_follows_to_another_place(tmp_path: Path) -> None:
    here = {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": SECRET}}
    there = {"url": "http://127.0.0.1:10/mcp", "headers": {"Authorization": None}}
    masked = {"url": "http://127.0.0.1:10/mcp?key=***"}
    async with api(tmp_path) as ours:
        await ours.good("put_server", here, server="far", If_None_Match="*")
        for body in (there, masked):
            reply = await ours.ask("put_server", body, server="far", If_Match="*")
            assert (reply.status, reply.code) == (422, "config_error")


async def test_of_two_who_looked_at_the_same_only_the_first_may_write(tmp_path: Path) -> None:
    async with api(tmp_path) as ours:
        await ours.good("put_domain", {"instructions": "old"}, domain="d", If_None_Match="*")
        tag = (await ours.ask("get_domain", domain="d")).headers["etag"]
        first = await ours.ask("put_domain", {"instructions": "a"}, domain="d", If_Match=tag)
        second = await ours.ask("put_domain", {"instructions": "b"}, domain="d", If_Match=tag)
        third = await ours.ask("delete_domain", domain="d", If_Match=tag)
        fourth = await ours.ask("put_domain", {}, domain="d", If_None_Match="*")
        none = await ours.ask("put_domain", {}, domain="other", If_Match="*")
        effect = await ours.ask(
            "put_effect", {"effect": "read"}, server="s", tool="t", If_Match=tag
        )
        unguarded = await ours.ask("put_domain", {}, domain="d")
        entry = await ours.good("get_domain", domain="d")
    assert first.status == 200
    late = [second, third, fourth, none, effect]
    assert [(one.status, one.code) for one in late] == [(412, "conflict")] * 5
    assert unguarded.status == 428
    assert entry["rules"]["instructions"] == "a"


async def test_a_fixed_value_that_may_be_a_secret_is_kept_unseen(tmp_path: Path) -> None:
    dress = {"far/send": ToolDress(fixed={"api_key": SECRET, "mode": "fast"})}
    async with api(tmp_path) as ours:
        ours.app.registry.put_domain(Domain(name="d", dress=dress))
        rules = (await ours.good("get_domain", domain="d"))["rules"]
        assert rules["dress"]["far/send"]["fixed"] == {"api_key": "***", "mode": "fast"}
        changed = {**rules, "instructions": "new"}
        await ours.good("put_domain", changed, domain="d", If_Match="*")
        stored = ours.app.registry.domain("d")
        unknown = {"dress": {"far/other": {"fixed": {"api_key": "***"}}}}
        reply = await ours.ask("put_domain", unknown, domain="d", If_Match="*")
    assert stored is not None
    assert (stored.instructions, stored.dress["far/send"]) == ("new", dress["far/send"])
    assert (reply.status, reply.code) == (422, "config_error")
    assert SECRET not in "".join(ours.replies)


async def test_what_is_put_is_what_the_gateway_serves_at_once(tmp_path: Path) -> None:
    async with api(tmp_path) as ours:
        await ours.good("put_domain", {"instructions": "x"}, domain="d", If_None_Match="*")
        assert ours.app.gateway.view("d").instructions == "x"
        await ours.good("delete_domain", domain="d", If_Match="*")
        assert "d" not in ours.app.gateway.domains


EFFECTS = """
[servers.filed]
url = "http://127.0.0.1:9"
enabled = false
tools.fixed.effect = "read"
"""


async def test_what_is_said_of_a_tool_in_vain_is_warned_of(tmp_path: Path) -> None:
    async with api(tmp_path, EFFECTS) as ours:
        warned = {}
        for server, tool in (("no", "x"), ("filed", "x"), ("filed", "fixed")):
            body = {"effect": "write"}
            said = await ours.good("put_effect", body, server=server, tool=tool)
            [warned[server, tool]] = said["warnings"]
    assert "no server is named no" in warned["no", "x"]
    assert "has shown no tool x" in warned["filed", "x"]
    assert "thoughtgate.toml" in warned["filed", "fixed"]


async def test_a_folder_of_copies_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    async with api(tmp_path) as ours:
        (tmp_path / "state" / "backups").touch()
        reply = await ours.ask("back_up", {"name": "copy.db"})
    assert reply.code == "store_error"
    assert "backups" in reply.body["detail"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "/etc/x", "a" * 101, "a\nb"])
async def test_a_copy_stands_only_where_copies_stand(tmp_path: Path, name: str) -> None:
    async with api(tmp_path) as ours:
        reply = await ours.ask("back_up", {"name": name})
        assert (reply.status, reply.code) == (400, "malformed")
        await ours.good("back_up", {"name": "copy.db"})
        again = await ours.ask("back_up", {"name": "copy.db"})
    assert (again.status, again.code) == (422, "config_error")
    assert [file.name for file in (tmp_path / "state" / "backups").iterdir()] == ["copy.db"]
