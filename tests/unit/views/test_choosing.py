"""Which tools a domain shows, under which names."""

import pytest

from thoughtgate.catalog import Catalog, Part, advertised_name, merge
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.tools import Tool
from thoughtgate.testing.values import make_tool
from thoughtgate.views import View, build


def catalog(*tools: Tool) -> Catalog:
    servers = {tool.server for tool in tools}
    return merge(
        Part(server=name, tools=tuple(tool for tool in tools if tool.server == name))
        for name in servers
    )


OPS = frozenset({"ops"})
FOUR = catalog(
    make_tool("files", "read"),
    make_tool("files", "write"),
    make_tool("logs", "read", tags=OPS),
    make_tool("mail", "send", tags=OPS),
)


def names(view: View) -> list[str]:
    return [entry.name for entry in view.entries]


@pytest.mark.parametrize(
    ("include", "exclude", "shown"),
    [
        ((), (), ["files__read", "files__write", "logs__read", "mail__send"]),
        (("files/*",), (), ["files__read", "files__write"]),
        (("*/read",), ("logs/*",), ["files__read"]),
        (("tag:ops",), (), ["logs__read", "mail__send"]),
        (("files/read", "tag:ops"), ("mail/send",), ["files__read", "logs__read"]),
        ((), ("tag:ops", "files/w*"), ["files__read"]),
        (("FILES/*",), (), []),
        (("tag:op",), (), []),
    ],
)
def test_globs_and_tags_choose(
    include: tuple[str, ...], exclude: tuple[str, ...], shown: list[str]
) -> None:
    assert names(build(Domain(name="d", include=include, exclude=exclude), FOUR)) == shown


def test_a_rule_that_fits_nothing_is_pointed_out() -> None:
    domain = Domain(name="d", include=("file/*",), dress={"files/raed": ToolDress(rename="r")})
    assert len(build(domain, FOUR).warnings) == 2


def test_a_renamed_tool_answers_to_its_new_name_only() -> None:
    domain = Domain(name="d", dress={"files/read": ToolDress(rename="open_file")})
    view = build(domain, FOUR)
    assert view.table["open_file"].tool.key == ("files", "read")
    assert "files__read" not in view.table
    assert not view.warnings


def test_two_tools_may_swap_their_names() -> None:
    dress = {
        "files/read": ToolDress(rename="logs__read"),
        "logs/read": ToolDress(rename="files__read"),
    }
    view = build(Domain(name="d", dress=dress), FOUR)
    assert view.table["logs__read"].tool.server == "files"
    assert view.table["files__read"].tool.server == "logs"


@pytest.mark.parametrize(
    "dress",
    [
        {"files/read": ToolDress(rename="x"), "logs/read": ToolDress(rename="x")},
        {"files/read": ToolDress(rename="mail__send")},
        {
            "files/read": ToolDress(rename="logs__read"),
            "logs/read": ToolDress(rename="mail__send"),
        },
        {"files/read": ToolDress(rename="not a name"), "mail/send": ToolDress(rename="x" * 61)},
    ],
)
def test_renames_that_cannot_be_had_leave_every_tool_at_its_usual_name(
    dress: dict[str, ToolDress],
) -> None:
    view = build(Domain(name="d", dress=dress), FOUR)
    assert {entry.tool.key: entry.name for entry in view.entries} == {
        tool.key: advertised_name(*tool.key) for tool in FOUR.tools
    }
    assert len(view.warnings) == len(dress)


def test_without_prefixes_tools_show_their_own_names() -> None:
    dotted = catalog(make_tool("files", "admin.files.read"))
    assert names(build(Domain(name="d", prefixed=False), dotted)) == ["admin.files.read"]


def test_without_prefixes_an_ambiguous_name_is_left_out_and_said() -> None:
    view = build(Domain(name="d", prefixed=False), FOUR)
    assert names(view) == ["write", "send"]
    assert len(view.warnings) == 2


def test_without_prefixes_a_rename_resolves_an_ambiguous_name() -> None:
    domain = Domain(name="d", prefixed=False, dress={"logs/read": ToolDress(rename="read_log")})
    view = build(domain, FOUR)
    assert view.table["read"].tool.server == "files"
    assert view.table["read_log"].tool.server == "logs"


def test_without_prefixes_a_rename_cannot_take_another_tools_own_name() -> None:
    domain = Domain(name="d", prefixed=False, dress={"files/write": ToolDress(rename="send")})
    view = build(domain, FOUR)
    assert view.table["send"].tool.server == "mail"
    assert view.table["write"].tool.server == "files"


def test_names_are_never_taken_apart() -> None:
    view = build(
        Domain(name="d"),
        catalog(
            make_tool("a", "b__c"),
            make_tool("a__b", "c"),
            make_tool("a", "get-catalog-entity"),
            make_tool("test_", "x"),
            make_tool("test", "_x"),
        ),
    )
    assert len(view.table) == 5
    for entry in view.entries:
        assert view.table[advertised_name(*entry.tool.key)] is entry


def test_a_view_over_its_budget_shows_everything_and_says_so() -> None:
    view = build(Domain(name="d", max_tools=3, max_tokens=10), FOUR)
    assert len(view.entries) == 4
    assert len(view.warnings) == 2


def test_a_domain_without_a_budget_has_nothing_to_say() -> None:
    assert not build(Domain(name="d", max_tools=None), FOUR).warnings
