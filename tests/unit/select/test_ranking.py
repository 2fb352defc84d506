"""Ranking and choosing tools for a task."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.catalog import Part, merge
from thoughtgate.core.domains import Domain
from thoughtgate.core.json import JsonObject
from thoughtgate.select import Index, choose, index, terms
from thoughtgate.testing.values import make_definition, make_tool
from thoughtgate.views import Entry, build


def entries_of(*tools: tuple[str, JsonObject]) -> tuple[Entry, ...]:
    parts = [
        Part(server=server, tools=(make_tool(server, definition["name"], definition=definition),))
        for server, definition in tools
    ]
    return build(Domain(name="d"), merge(parts)).entries


SHELF = entries_of(
    ("calendar", make_definition("create_event", description="Put a meeting into the calendar.")),
    (
        "files",
        make_definition(
            "read_text",
            description="Return a document.",
            inputSchema={"type": "object", "properties": {"encoding": {}, "path": {}}},
        ),
    ),
    ("logs", make_definition("classifyErrors", description="把日志文件中的错误按类型分类")),
    ("mail", make_definition("send", description="Deliver a message to somebody.")),
)


@pytest.fixture(scope="module")
def shelf() -> Index:
    return index(SHELF)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("please create some events for me", "calendar__create_event"),
        ("which encodings are there", "files__read_text"),
        ("classify the errors", "logs__classifyErrors"),
        ("按类型统计错误", "logs__classifyErrors"),
        ("send mails", "mail__send"),
        ("deliver", "mail__send"),
    ],
)
def test_server_name_description_and_arguments_are_found(
    shelf: Index, query: str, best: str
) -> None:
    assert shelf.rank(query, 3)[0].entry.name == best


@pytest.mark.parametrize("query", ["", "the", "zebra", "， 。", "天气"])
def test_a_query_that_shares_no_word_finds_nothing(shelf: Index, query: str) -> None:
    assert shelf.rank(query, 10) == ()


def test_the_rarer_word_weighs_more() -> None:
    tools = entries_of(
        *(("a", make_definition(f"t{place}", description="log file")) for place in range(4)),
        ("a", make_definition("z", description="log parser")),
    )
    assert index(tools).rank("parser for a file", 1)[0].entry.tool.name == "z"


def test_equal_tools_keep_the_order_of_the_view() -> None:
    tools = entries_of(*((server, make_definition("same")) for server in "cab"))
    ranked = index(tools).rank("same", 10)
    assert [scored.entry.tool.server for scored in ranked] == ["a", "b", "c"]


def test_an_empty_index_finds_nothing() -> None:
    assert index(()).rank("anything", 5) == ()


@given(query=st.text(max_size=40), limit=st.integers(min_value=0, max_value=5))
def test_any_text_is_a_query(query: str, limit: int) -> None:
    ranked = index(SHELF).rank(query, limit)
    assert len(ranked) <= limit
    assert sorted(ranked, key=lambda scored: -scored.score) == list(ranked)


@pytest.mark.parametrize(
    "text", ["getLogFiles", "get_log_files", "Get the log-file", "GETLog files"]
)
def test_a_name_has_the_terms_of_the_words_it_is_made_of(text: str) -> None:
    assert list(terms(text)) == list(terms("log files"))


def test_chinese_is_read_in_pairs_beside_words() -> None:
    assert list(terms("读取log文件")) == ["读取", "log", "文件"]
    assert list(terms("错误日志")) == ["错误", "误日", "日志"]
    assert list(terms("读")) == ["读"]


def sized(*sizes: int) -> Index:
    """Return tools of these sizes, the first one fitting the query `log` best."""
    return index([
        Entry(
            name=str(place),
            tool=make_tool("x", "t"),
            shown={"description": "log " * (9 - place), "inputSchema": {}},
            visible={},
            digest="",
            tokens=size,
        )
        for place, size in enumerate(sizes)
    ])


@pytest.mark.parametrize(
    ("max_tools", "max_tokens", "chosen"),
    [
        (None, None, "0123"),
        (2, None, "01"),
        (None, 40, "023"),
        (2, 40, "02"),
        (None, 5, ""),
        (0, None, ""),
    ],
)
def test_the_best_tools_that_fit_the_budget_are_chosen(
    max_tools: int | None, max_tokens: int | None, chosen: str
) -> None:
    picked = choose(sized(10, 90, 20, 10), "log", max_tools=max_tools, max_tokens=max_tokens)
    assert "".join(entry.name for entry in picked) == chosen
