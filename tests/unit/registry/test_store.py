"""The registry's nouns: what goes in comes out, and what changed is seen."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.support.registries import open_in
from thoughtgate.core.calls import LOCAL, Principal
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.errors import ConfigError, Conflict, StoreError
from thoughtgate.core.json import JsonObject, digest
from thoughtgate.core.servers import (
    Era,
    HttpTransport,
    LocalTransport,
    NullPolicy,
    ResultPolicy,
    Server,
    Sharing,
    StdioTransport,
    Transport,
)
from thoughtgate.core.tools import Effect
from thoughtgate.registry.store import Registry
from thoughtgate.registry.tools import HISTORY_LIMIT
from thoughtgate.registry.verdicts import Verdict

Action = Callable[[], object]

ALICE = Principal(id="alice", name="Alice")

STDIO = StdioTransport(
    argv=("node", "server.js", "", "\udcff"), env={"TOKEN": "t", "EMPTY": ""}, cwd="/srv"
)
HTTP = HttpTransport(url="https://a:b@host:8443/mcp?key=v#f", headers={"Authorization": "Bearer é"})

FULL_SERVER = Server(
    name="all-fields-1",
    transport=STDIO,
    enabled=False,
    trusted=True,
    tags=frozenset({"b", "a"}),
    era=Era.STATELESS,
    results=ResultPolicy.STRICT,
    nulls=NullPolicy.PASS,
    start_timeout=1.5,
    call_timeout=2.5,
    sharing=Sharing.PRINCIPAL,
    idle_timeout=3.5,
)

FULL_DOMAIN = Domain(
    name="ops",
    include=("logs/*", "tag:ops"),
    exclude=("logs/rm",),
    dress={"logs/find": ToolDress(rename="f", description="", fixed={"n": 2**70, "x": None})},
    instructions="line\nline",
    max_tools=None,
    max_tokens=500,
    prefixed=False,
    limits="openai",
    engine="react",
)


def tool(name: str, **more: object) -> JsonObject:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


@pytest.mark.parametrize(
    "transport",
    [STDIO, HTTP, LocalTransport(), HttpTransport(url="http://h", sse=True)],
)
def test_a_server_comes_back_as_it_was_put(registry: Registry, transport: Transport) -> None:
    server = replace(FULL_SERVER, transport=transport)
    registry.put_server(server)
    assert registry.server("all-fields-1") == server
    assert registry.servers() == (server,)


def test_no_field_of_the_full_server_has_its_default() -> None:
    """So that the test above notices a field that is added later and not stored."""
    stored = [field.name for field in fields(Server) if field.name not in {"name", "source"}]
    plain = Server(name="plain", transport=LocalTransport())
    assert [name for name in stored if getattr(plain, name) == getattr(FULL_SERVER, name)] == []


def test_no_field_of_the_full_domain_has_its_default() -> None:
    stored = [f.name for f in fields(Domain) if f.name not in {"name", "source", "revision"}]
    plain = Domain(name="plain")
    assert [name for name in stored if getattr(plain, name) == getattr(FULL_DOMAIN, name)] == []


def test_putting_a_server_again_replaces_it_and_its_secrets(registry: Registry) -> None:
    registry.put_server(FULL_SERVER)
    fewer = replace(FULL_SERVER, transport=replace(STDIO, env={"OTHER": "o"}), trusted=False)
    registry.put_server(fewer)
    assert registry.servers() == (fewer,)


def test_servers_are_switched_and_trusted_by_name(registry: Registry) -> None:
    registry.put_server(FULL_SERVER)
    registry.set_enabled(FULL_SERVER.name, True)
    registry.set_trusted(FULL_SERVER.name, False, ALICE)
    assert registry.server(FULL_SERVER.name) == replace(FULL_SERVER, enabled=True, trusted=False)
    assert registry.principals() == (LOCAL, ALICE)


@pytest.mark.parametrize("name", ["", "A", "-a", "a_b", "a/b", "a" * 41, "a\n", "a&calc", "é"])
def test_a_name_that_cannot_stand_in_a_url_is_refused(registry: Registry, name: str) -> None:
    with pytest.raises(ConfigError):
        registry.put_server(replace(FULL_SERVER, name=name))
    with pytest.raises(ConfigError):
        registry.put_domain(Domain(name=name))
    assert registry.server_names() == ()


@pytest.mark.parametrize(
    "transport",
    [
        StdioTransport(argv=()),
        StdioTransport(argv=("",)),
        HttpTransport(url="file:///etc/passwd"),
        HttpTransport(url="http://"),
        HttpTransport(url="http://[::1"),
    ],
)
def test_a_transport_that_leads_nowhere_is_refused(
    registry: Registry, transport: Transport
) -> None:
    with pytest.raises(ConfigError):
        registry.put_server(replace(FULL_SERVER, transport=transport))


def test_what_is_not_there_cannot_be_changed(registry: Registry) -> None:
    before = registry.revision()
    attempts: list[Action] = [
        lambda: registry.remove_server("none"),
        lambda: registry.set_enabled("none", True),
        lambda: registry.set_trusted("none", True),
        lambda: registry.remove_domain("none"),
    ]
    for attempt in attempts:
        with pytest.raises(ConfigError):
            attempt()
    assert (registry.server("none"), registry.domain("none")) == (None, None)
    assert registry.revision() == before


def test_every_change_raises_the_revision_for_other_processes(folder: Path) -> None:
    registry, other = open_in(folder), open_in(folder)
    seen = [other.revision()]
    changes: list[Action] = [
        lambda: registry.put_server(FULL_SERVER),
        lambda: registry.set_enabled(FULL_SERVER.name, True),
        lambda: registry.record_tools(FULL_SERVER.name, [tool("a")]),
        lambda: registry.set_effect(FULL_SERVER.name, "a", Effect.READ),
        lambda: registry.put_domain(FULL_DOMAIN),
        lambda: registry.remove_domain("ops"),
        lambda: registry.remove_server(FULL_SERVER.name),
    ]
    for change in changes:
        change()
        seen.append(other.revision())
    registry.close()
    other.close()
    assert seen == sorted(set(seen))


def test_reading_and_relisting_the_same_leave_the_revision(registry: Registry) -> None:
    registry.record_tools("files", [tool("a")])
    before = registry.revision()
    assert not registry.record_tools("files", [tool("a")])
    registry.put_verdicts({"sha256:1": Verdict()}, checker="1")
    assert registry.servers() == ()
    assert registry.revision() == before


def test_a_listing_is_kept_value_for_value_and_in_its_order(registry: Registry) -> None:
    listing = (tool("z", n=2**70, x=None, f=1.0, deep=[{"b": 1, "a": "é\u2028\x00"}]), tool("a"))
    changes = registry.record_tools("files", listing)
    assert changes.new == ("z", "a")
    known = registry.known_tools("files")
    assert known == listing
    assert [list(one) for one in known] == [list(one) for one in listing]


def test_new_changed_gone_and_reordered_tools_are_told(registry: Registry) -> None:
    registry.record_tools("files", [tool("a"), tool("b"), tool("c")])
    changes = registry.record_tools("files", [tool("c"), tool("b", title="B"), tool("d")])
    assert (changes.new, changes.changed, changes.gone) == (("d",), ("b",), ("a",))
    assert changes.reordered
    assert [one["name"] for one in registry.known_tools("files")] == ["c", "b", "d"]


def test_every_definition_ever_seen_is_kept_with_its_digest(registry: Registry) -> None:
    old, new = tool("a"), tool("a", description="now with teeth")
    for listing in ([old], [new], []):
        registry.record_tools("files", listing)
    history = registry.tool_history("files", "a")
    assert [seen.digest for seen in history] == [digest(new), digest(old)]
    assert [seen.current for seen in history] == [False, False]
    registry.record_tools("files", [old])
    assert [seen.current for seen in registry.tool_history("files", "a")] == [True, False]


def test_a_server_that_changes_without_end_does_not_fill_the_disk(registry: Registry) -> None:
    registry.record_tools("files", [tool("first")])
    registry.record_tools("files", [tool(f"t{number}") for number in range(HISTORY_LIMIT)])
    registry.record_tools("files", [tool("now")])
    assert registry.tool_history("files", "first") == ()
    assert len(registry.tool_history("files", "t0")) == 1
    assert registry.known_tools("files") == (tool("now"),)


def test_a_tool_without_a_name_does_not_spoil_the_listing(registry: Registry) -> None:
    registry.record_tools("files", [{"inputSchema": {}}, {"name": 3}, tool("a"), tool("a")])
    assert registry.known_tools("files") == (tool("a"),)


def test_another_program_behind_a_name_starts_without_a_listing(registry: Registry) -> None:
    registry.put_server(FULL_SERVER)
    registry.record_tools(FULL_SERVER.name, [tool("a")])
    registry.put_server(replace(FULL_SERVER, transport=replace(STDIO, env={"TOKEN": "new"})))
    assert registry.known_tools(FULL_SERVER.name) == (tool("a"),)
    registry.put_server(replace(FULL_SERVER, transport=replace(STDIO, argv=("other",))))
    assert registry.known_tools(FULL_SERVER.name) == ()


def test_effects_are_set_taken_back_and_end_with_the_server(registry: Registry) -> None:
    registry.put_server(FULL_SERVER)
    registry.set_effect(FULL_SERVER.name, "a", Effect.WRITE)
    registry.set_effect(FULL_SERVER.name, "a", Effect.READ)
    registry.set_effect(FULL_SERVER.name, "b", Effect.IDEMPOTENT)
    registry.set_effect(FULL_SERVER.name, "b", None)
    assert registry.effects(FULL_SERVER.name) == {"a": Effect.READ}
    registry.remove_server(FULL_SERVER.name)
    registry.put_server(FULL_SERVER)
    assert registry.effects(FULL_SERVER.name) == {}


def test_verdicts_count_only_for_the_rules_that_gave_them(registry: Registry) -> None:
    many = {f"sha256:{number}": Verdict() for number in range(1200)}
    registry.put_verdicts(many, checker="1")
    registry.put_verdicts({"sha256:7": Verdict(rule="remote_ref", reason="no")}, checker="1")
    found = registry.verdicts([*many, "sha256:unknown"], checker="1")
    assert len(found) == 1200
    assert [key for key, verdict in found.items() if not verdict.ok] == ["sha256:7"]
    assert registry.verdicts(many, checker="2") == {}


def test_a_domain_gets_a_revision_per_change_and_keeps_the_old_ones(registry: Registry) -> None:
    first = registry.put_domain(FULL_DOMAIN, ALICE)
    same = registry.put_domain(replace(FULL_DOMAIN, revision=99))
    second = registry.put_domain(replace(FULL_DOMAIN, engine=""))
    registry.remove_domain("ops")
    third = registry.put_domain(FULL_DOMAIN)
    assert first == same == FULL_DOMAIN
    assert (second.revision, third.revision) == (2, 4)
    assert registry.domains() == (registry.domain("ops"),) == (third,)
    history = registry.domain_history("ops")
    assert [one.domain for one in history] == [first, second, None, third]
    assert [one.changed_by for one in history] == ["alice", "local", "local", "local"]


def test_many_threads_may_read_and_write_at_once(registry: Registry) -> None:
    def work(number: int) -> int:
        for turn in range(5):
            registry.put_server(replace(FULL_SERVER, name=f"s-{number}-{turn}"))
            assert registry.server(f"s-{number}-{turn}") is not None
        return len(registry.servers())

    with ThreadPoolExecutor(12) as pool:
        seen = list(pool.map(work, range(12)))
    assert max(seen) == len(registry.server_names()) == 60
    assert registry.revision() == 61


def web(name: str) -> Server:
    return Server(name=name, transport=HttpTransport(url="https://h/mcp"))


def test_a_decision_is_made_anew_when_somebody_was_faster(folder: Path, registry: Registry) -> None:
    seen: list[tuple[str, ...]] = []

    def deciding(store: Registry) -> None:
        seen.append(store.server_names())
        if len(seen) == 1:
            registry.put_server(web("faster"))
        store.put_server(web(f"after-{len(seen[-1])}"))

    with closing(open_in(folder)) as other:
        other.decide(deciding)
    assert seen == [(), ("faster",)]
    assert registry.server_names() == ("after-1", "faster")


def test_a_decision_is_given_up_when_somebody_is_always_faster(registry: Registry) -> None:
    def deciding(store: Registry) -> None:
        registry.put_server(web("faster"))
        store.put_server(web("late"))

    with pytest.raises(Conflict):
        registry.decide(deciding)
    assert registry.server_names() == ("faster",)


def test_a_registry_that_was_replaced_while_it_was_open_is_neither_read_nor_written(
    registry: Registry, folder: Path
) -> None:
    path = registry.database.path
    away = path.rename(path.with_name("away"))
    path.write_bytes(away.read_bytes())
    with pytest.raises(StoreError, match="removed or replaced"):
        registry.revision()
    with pytest.raises(StoreError, match="removed or replaced"):
        registry.put_server(FULL_SERVER)
    away.replace(path)
    registry.put_server(FULL_SERVER)
    assert registry.servers()
