"""Merging: one revision for the same tools, whoever came first."""

from itertools import permutations

from thoughtgate.catalog import Part, admit, advertised_name, merge, settled
from thoughtgate.core.json import JsonValue
from thoughtgate.core.tools import Effect
from thoughtgate.testing.values import make_definition, make_listing, make_server, make_tool


def part(server: str, *tools: JsonValue, **fields: JsonValue) -> Part:
    return admit(
        make_listing(server, *tools),
        server=make_server(server, **fields),
        effects={},
        reject=lambda schema: None,
    )


PARTS = (part("b", "two", "one"), part("a", "one"), part("c", "three", 5))


def test_the_order_of_arrival_changes_nothing() -> None:
    merged = [merge(order) for order in permutations(PARTS)]
    assert all(catalog == merged[0] for catalog in merged)
    assert [tool.key for tool in merged[0].tools] == [
        ("a", "one"),
        ("b", "one"),
        ("b", "two"),
        ("c", "three"),
    ]
    assert [held.server for held in merged[0].quarantined] == ["c"]


def test_a_server_that_lists_in_another_order_makes_no_new_revision() -> None:
    assert merge([part("b", "one", "two")]).revision == merge([part("b", "two", "one")]).revision


def test_any_change_makes_a_new_revision() -> None:
    plain = part("a", "t")
    changed = [
        plain,
        part("b", "t"),
        part("a", "t", "u"),
        part("a", make_definition("t", description="new")),
        part("a", make_definition("t", unknown=None)),
        part("a", "t", tags=frozenset({"x"})),
        part("a", "t", call_timeout=1.0),
        Part(server="a", tools=(make_tool("a", "t", effect=Effect.READ),)),
    ]
    assert len({merge([one]).revision for one in changed}) == len(changed)


def test_names_of_other_servers_change_no_name_here() -> None:
    alone = {advertised_name(*tool.key) for tool in merge(PARTS[:1]).tools}
    together = {advertised_name(*tool.key) for tool in merge(PARTS).tools}
    assert alone <= together


def test_two_servers_with_the_same_tool_are_both_reachable() -> None:
    catalog = merge([part("a", "send_email"), part("b", "send_email")])
    names = {advertised_name(*tool.key): tool.server for tool in catalog.tools}
    assert names == {"a__send_email": "a", "b__send_email": "b"}


def test_a_tool_whose_name_is_taken_is_held_back_with_a_reason() -> None:
    twice = Part(server="a", tools=(make_tool("a", "t"), make_tool("a", "t", effect=Effect.READ)))
    catalog = merge([twice])
    assert len(catalog.tools) == 1
    assert [held.rule for held in catalog.quarantined] == ["name_taken"]


def test_an_empty_catalogue_has_a_revision() -> None:
    assert merge([]).revision.startswith("sha256:")


def test_what_is_taken_from_an_earlier_catalogue_is_what_would_be_merged() -> None:
    earlier = merge(PARTS)
    for later in (
        PARTS[1:],
        (*PARTS[:2], part("c", "four")),
        (*PARTS, part("d", "one")),
        (PARTS[0], part("a", "one", tags=frozenset({"x"}))),
    ):
        assert merge(later, earlier=earlier) == merge(later)
    changed = merge((*PARTS[:2], part("c", "four")), earlier=earlier)
    same = [one is other for one, other in zip(changed.shares, earlier.shares, strict=True)]
    assert same == [True, True, False]


def test_a_listing_that_says_the_same_again_changes_no_object() -> None:
    earlier = part("a", "one", make_definition("two", title="Old"))
    assert settled(part("a", "one", make_definition("two", title="Old")), earlier) is earlier
    later = settled(part("a", "one", make_definition("two", title="New")), earlier)
    assert later.tools[0] is earlier.tools[0]
    assert later.tools[1].definition["title"] == "New"
    fresh = part("a", "one")
    assert settled(fresh, None) is fresh


def test_numbers_that_only_python_takes_for_the_same_are_told_apart() -> None:
    earlier = part("a", make_definition("one", _meta={"weight": 1}))
    later = part("a", make_definition("one", _meta={"weight": True}))
    assert settled(later, earlier).tools[0].definition["_meta"]["weight"] is True
