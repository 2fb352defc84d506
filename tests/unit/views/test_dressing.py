"""How a tool looks in a domain, and what its server gets in the end."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.catalog import Part, merge
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.errors import InvalidArguments
from thoughtgate.core.json import JsonObject
from thoughtgate.testing.values import make_definition, make_tool
from thoughtgate.views import Entry, View, build

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def view_of(definition: JsonObject, *, dress: ToolDress | None = None, name: str = "d") -> View:
    tool = make_tool(name=definition["name"], definition=definition)
    worn = {} if dress is None else {f"files/{definition['name']}": dress}
    return build(Domain(name=name, dress=worn), merge([Part(server="files", tools=(tool,))]))


def entry_of(definition: JsonObject, dress: ToolDress | None = None) -> Entry:
    return view_of(definition, dress=dress).entries[0]


SEARCH = make_definition(
    "search",
    description="Search the index.",
    inputSchema={
        "type": "object",
        "properties": {"query": {"type": "string"}, "tenant": {"type": "string"}},
        "required": ["query", "tenant"],
    },
)


@given(extra=st.dictionaries(st.from_regex(r"x-[a-z]{1,5}", fullmatch=True), JSON, max_size=4))
def test_everything_but_the_name_is_shown_value_for_value(extra: JsonObject) -> None:
    schema = {
        "type": "object",
        "definitions": {"d": {"type": ["array", "null"]}},
        "properties": {"a": {"$ref": "#/definitions/d"}},
        **extra,
    }
    definition = make_definition(
        "t", inputSchema=schema, outputSchema={"$ref": "#/$defs/x", "$defs": {"x": {}}}, **extra
    )
    shown = entry_of(definition).shown
    assert shown == {**definition, "name": "files__t"}
    assert list(shown) == list(definition)


def test_a_missing_type_is_written_out_because_clients_refuse_the_list_without() -> None:
    shown = entry_of({"name": "t", "inputSchema": {"properties": {"a": {}}}}).shown
    assert shown["inputSchema"] == {"type": "object", "properties": {"a": {}}}


def test_a_null_in_an_optional_field_is_left_out_of_the_list_only() -> None:
    entry = entry_of(make_definition("t", title=None, annotations=None, own=None))
    assert entry.shown == {"name": "files__t", "inputSchema": {"type": "object"}, "own": None}
    assert entry.tool.definition["title"] is None


@pytest.mark.parametrize("text", ["Find things.", ""])
def test_a_domain_may_say_it_in_its_own_words(text: str) -> None:
    entry = entry_of(SEARCH, ToolDress(description=text))
    assert entry.shown["description"] == text
    assert entry.tool.definition["description"] == "Search the index."


def test_a_hidden_argument_is_not_shown_and_always_sent() -> None:
    entry = entry_of(SEARCH, ToolDress(fixed={"tenant": "blue"}))
    assert entry.shown["inputSchema"] == {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    }
    assert entry.to_true({"query": "x"}) == {"query": "x", "tenant": "blue"}
    assert entry.tool.input_schema is SEARCH["inputSchema"]


def test_a_client_that_sends_a_hidden_argument_is_told_that_there_is_none() -> None:
    entry = entry_of(SEARCH, ToolDress(fixed={"tenant": "blue"}))
    with pytest.raises(InvalidArguments) as caught:
        entry.to_true({"query": "x", "tenant": "red"})
    (problem,) = caught.value.problems
    assert problem.pointer == "/tenant"
    assert problem.hint == 'leave out "tenant"'
    assert problem.expected == 'no property of this name (allowed: "query")'
    assert 'Leave out "tenant".' in caught.value.message
    assert "red" not in caught.value.message
    assert "blue" not in f"{caught.value.message}{caught.value.data}"


@pytest.mark.parametrize("fixed", [{"tenant": 5}, {"tenant": "blue", "nobody/knows": 1}])
def test_a_tool_that_does_not_take_its_fixed_arguments_is_left_out(fixed: JsonObject) -> None:
    closed = {**SEARCH["inputSchema"], "additionalProperties": False}
    view = view_of({**SEARCH, "inputSchema": closed}, dress=ToolDress(fixed=fixed))
    assert not view.entries
    assert len(view.warnings) == 1
    assert "blue" not in view.warnings[0]


@given(
    arguments=st.dictionaries(st.text(), JSON, max_size=4),
    fixed=st.dictionaries(st.text(), JSON, max_size=3),
)
def test_the_server_gets_what_was_sent_and_what_is_fixed_and_nothing_else(
    arguments: JsonObject, fixed: JsonObject
) -> None:
    entry = entry_of(make_definition("search"), ToolDress(fixed=fixed))
    free = {name: value for name, value in arguments.items() if name not in fixed}
    sent = entry.to_true(free)
    assert {name: value for name, value in sent.items() if name not in fixed} == free
    assert {name: sent[name] for name in fixed} == fixed


def test_arguments_pass_as_they_are_where_nothing_is_hidden() -> None:
    arguments = {"query": None}
    assert entry_of(SEARCH).to_true(arguments) is arguments


def test_the_revision_follows_what_clients_see_and_nothing_else() -> None:
    plain = view_of(SEARCH)
    assert view_of(dict(reversed(list(SEARCH.items())))).revision == plain.revision
    assert view_of(SEARCH, name="other").revision == plain.revision
    assert view_of(SEARCH, dress=ToolDress(description="x")).revision != plain.revision
    assert view_of({**SEARCH, "title": "x"}).revision != plain.revision


def test_the_tokens_of_a_view_are_those_of_its_tools() -> None:
    view = view_of(make_definition("t"))
    shown = '{"inputSchema":{"type":"object"},"name":"files__t"}'
    assert view.tokens == view.entries[0].tokens == -(-len(shown) // 4)


@pytest.mark.parametrize(
    "domain",
    [Domain(name="d"), Domain(name="d", dress={"files/search": ToolDress(description="x")})],
)
def test_what_is_taken_from_an_earlier_view_is_what_would_be_built(domain: Domain) -> None:
    search, other = make_tool(name="search", definition=SEARCH), make_tool(name="other")
    before = merge([Part(server="files", tools=(search, other))])
    changed = make_tool(name="other", definition=make_definition("other", title="New"))
    after = merge([Part(server="files", tools=(search, changed))])
    earlier = build(Domain(name="d"), before)
    later = build(domain, after, earlier=earlier)
    assert later == build(domain, after)
    assert (later.table["files__search"] is earlier.table["files__search"]) is (not domain.dress)


@pytest.mark.parametrize(
    "domain",
    [
        Domain(name="d"),
        Domain(name="d", prefixed=False),
        Domain(name="d", include=("files/*", "tag:none"), exclude=("*/other",)),
        Domain(name="d", dress={"logs/search": ToolDress(rename="files__search")}),
        Domain(name="d", dress={"logs/other": ToolDress(rename="fine"), "no/tool": ToolDress()}),
    ],
)
def test_a_change_of_one_server_leaves_what_was_made_of_the_others(domain: Domain) -> None:
    files = Part(server="files", tools=(make_tool("files", "search"), make_tool("files", "other")))
    logs = Part(server="logs", tools=(make_tool("logs", "search"), make_tool("logs", "other")))
    more = replace(logs, tools=(*logs.tools, make_tool("logs", "more")))
    first = merge([files, logs])
    earlier = build(domain, first)
    second = merge([files, more], earlier=first)
    later = build(domain, second, earlier=earlier)
    assert later == build(domain, merge([files, more]))
    assert later.slices[0] is earlier.slices[0]
    assert later.offered is earlier.offered
    assert build(domain, first, earlier=later) == earlier
