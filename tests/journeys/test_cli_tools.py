"""The command line with tool servers behind it: one that misbehaves on request, one that attacks.

Commands run in this process; the servers are its children.
"""

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from tests.support.gate import Home, home, python_server
from tests.support.hostile_server import EVIL
from thoughtgate.cli.exits import Exit

FAKE = "thoughtgate.testing.fake_server"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Home:
    settings = python_server("fake", FAKE, "--era", "stateless", era="stateless")
    settings += python_server("peer", "tests.support.sdk_server", era="stateless")
    settings += '[domains.few]\ninclude = ["peer/*"]\nexclude = ["peer/wait"]\n'
    settings += '[domains.few.tools."peer/sum"]\nrename = "add"\nfixed = {b = 40}\n'
    settings += 'description = "Adds 40."\n'
    made = home(tmp_path_factory.mktemp("home"), settings)
    listed = made.invoke("tool", "list")  # the servers' tools are remembered from here on
    assert listed.exit_code == 0, listed.output
    return made


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Home:
    settings = python_server("evil", "tests.support.hostile_server", era="handshake")
    return home(tmp_path_factory.mktemp("home"), settings)


def called(place: Home, *arguments: object) -> Any:
    """Call a tool that must answer well; return its structured content."""
    return place.said("tool", "call", *arguments)["structuredContent"]


def test_the_tools_are_listed_with_what_they_cost(place: Home) -> None:
    listed = place.said("tool", "list")
    names = [tool["name"] for tool in listed["tools"]]
    assert names == sorted(names)
    assert {"fake__echo", "peer__sum"} <= {*names}
    assert listed["tokens"] > 100
    assert listed["quarantined"] == []
    text = place.invoke("tool", "list").stdout
    assert all(name in text for name in names)


def test_the_servers_are_counted_with_their_tools_and_checked(place: Home) -> None:
    rows = {row["name"]: row for row in place.said("server", "list", "--check")}
    assert {name: row["state"] for name, row in rows.items()} == {"fake": "ready", "peer": "ready"}
    assert rows["peer"]["tools"] == len(place.said("server", "show", "peer")["tools"])


def test_a_domain_tells_what_its_clients_see(place: Home) -> None:
    shown = place.said("domain", "show", "few")
    assert {
        "name": "add", "server": "peer", "tool": "sum",
        "renamed": True, "description": "Adds 40.", "fixed": {"b": 40},
    } in shown["tools"]  # fmt: skip
    told = place.invoke("domain", "show", "few").stdout
    assert "  add  (peer/sum, renamed)\n    description: Adds 40.\n    fixed: b = 40\n" in told
    assert not any(tool["tool"] == "wait" for tool in shown["tools"])
    tool = place.said("tool", "show", "add", "--domain", "few")
    assert set(tool["shown"]["inputSchema"]["properties"]) == {"a"}
    assert called(place, "add", "a=2", "--domain", "few") == {"sum": 42}


def test_a_search_finds_the_tool_that_fits_best_first(place: Home) -> None:
    found = place.said("tool", "search", "report", "progress", "--limit", 2)
    assert 0 < len(found) <= 2
    assert "progress" in found[0]["name"]
    assert found == sorted(found, key=lambda tool: -tool["score"])
    assert found[0]["name"] in place.invoke("tool", "search", "progress").stdout


def test_the_path_of_a_call_is_explained_in_order(place: Home) -> None:
    stages = [stage for stage, _ in place.said("explain", "peer__sum")]
    order = ["audited", "resolved", "bounded", "checked_in", "authorized", "checked_out", "sent"]
    assert [stage for stage in stages if stage in order] == order
    assert "peer" in place.invoke("explain", "peer__sum").stdout


def test_arguments_are_json_where_they_parse_and_text_where_not(place: Home) -> None:
    file = place.folder / "arguments.json"
    file.write_text('{"deep": [null, 18446744073709551617]}', encoding="utf-8")
    pairs = ("n=1", "t=one two", "o={}", "e=", "q=a=b")
    sent = called(place, "fake__echo", *pairs, "--args", f"@{file}")
    assert sent == {
        "deep": [None, 18446744073709551617],
        "n": 1, "t": "one two", "o": {}, "e": "", "q": "a=b",
    }  # fmt: skip


def test_why_a_tool_counts_as_write_is_said_where_servers_are_not_trusted(place: Home) -> None:
    assert "a tool counts as write until you say otherwise" in place.invoke("tool", "list").stderr
    none = place.invoke("tool", "list", "--quarantined")
    assert none.stdout == "nothing is held back\n"


def test_without_servers_the_list_of_tools_says_where_to_look(tmp_path: Path) -> None:
    empty = home(tmp_path)
    assert empty.invoke("tool", "list").stdout.startswith("no tools here; ")
    assert empty.invoke("tool", "search", "x").stdout == "no tool fits\n"


def test_progress_and_log_go_to_stderr_and_the_result_to_stdout(place: Home) -> None:
    result = place.invoke("tool", "call", "fake__progress", "count=2")
    assert result.stdout == "done\n"
    assert result.stderr.splitlines()[-2:] == ["0/2", "1/2"]
    logged = place.invoke("tool", "call", "fake__log", 'levels=["debug","error"]')
    assert (logged.stdout, "error: a error" in logged.stderr) == ("logged\n", True)
    assert "debug" not in logged.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("fake__tool_error",), Exit.FAILED),
        (("peer__sum", "a=1"), Exit.USAGE),
        (("nobody",), Exit.USAGE),
        (("fake__echo", "--domain", "few"), Exit.USAGE),
        (("fake__echo", "--domain", "nowhere"), Exit.USAGE),
        (("fake__echo", "--args", "[1]"), Exit.USAGE),
        (("fake__echo", "--args", '{"a":1,"a":2}'), Exit.USAGE),
        (("fake__echo", "--args", "@nothing-here.json"), Exit.USAGE),
        (("fake__echo", "pair"), Exit.USAGE),
        (("fake__fail", "code=-32099"), Exit.UPSTREAM),
        (("fake__crash",), Exit.UPSTREAM),
        (("fake__broken", "kind=nan"), Exit.UPSTREAM),
        (("fake__hang", "--timeout", "0.2"), Exit.UPSTREAM),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value.name,
)
def test_the_exit_code_tells_who_was_wrong(
    place: Home, arguments: tuple[str, ...], code: Exit
) -> None:
    result = place.invoke("tool", "call", *arguments)
    assert (Exit(result.exit_code), "Traceback" in result.output) == (code, False)
    assert result.output.strip()


def test_calls_of_the_command_line_are_audited_like_any_other(place: Home) -> None:
    before = len(place.audit_rows())
    place.invoke("tool", "call", "peer__sum", "a=1", "b=2")
    place.invoke("tool", "call", "peer__sum", "a=canary-8")
    rows = place.audit_rows()[before:]
    assert [row["outcome"] for row in rows] == ["ok", "invalid_arguments"]
    assert "canary-8" not in repr(rows)
    newest = place.said("audit", "list")
    assert any(record["row"].get("outcome") == "invalid_arguments" for record in newest)
    assert place.said("audit", "verify")["ok"]


def test_an_operators_word_changes_what_a_tool_counts_as(place: Home) -> None:
    place.invoke("tool", "set", "peer/echo", "--effect", "read")
    effects = {tool["name"]: tool["effect"] for tool in place.said("tool", "list")["tools"]}
    assert (effects["peer__echo"], effects["peer__sum"]) == ("read", "write")


def test_a_call_of_a_server_that_nobody_ever_reached_says_so(tmp_path: Path) -> None:
    place = home(tmp_path, '[servers.gone]\ncommand = ["/nonexistent/server"]\n')
    refused = place.invoke("tool", "call", "gone__find", "--json")
    assert refused.exit_code == Exit.UPSTREAM
    assert "server gone cannot be reached: " in refused.stderr
    assert json.loads(refused.stdout)["error"] == "upstream_unreachable"
    assert place.invoke("tool", "call", "other__find").exit_code == Exit.USAGE


def test_a_dead_server_is_said_to_be_and_hides_no_other(place: Home) -> None:
    place.invoke("server", "add", "dead", "--start-timeout", "5", "--", "/no/such/program")
    try:
        checked = place.invoke("server", "list", "--check", "--json")
        rows = {row["name"]: row for row in json.loads(checked.stdout)}
        assert checked.exit_code == Exit.FAILED
        assert rows["dead"]["state"] not in {"ready", "enabled"}
        assert "/no/such/program" in rows["dead"]["reason"]
        assert rows["peer"]["state"] == "ready"
        said = place.invoke("server", "list", "--check").stderr
        assert said.count("/no/such/program") == 1
        assert "dead: cannot start /no/such/program: " in said
        assert called(place, "peer__sum", "a=1", "b=2") == {"sum": 3}
    finally:
        place.invoke("server", "rm", "dead")


SHOWING = [
    ("tool", "list"),
    ("tool", "list", "--quarantined"),
    ("tool", "show", "evil__talk"),
    ("tool", "search", "abc"),
    ("tool", "call", "evil__talk"),
    ("tool", "call", "evil__talk", "how=error"),
    ("tool", "call", "evil__talk", "how=fail"),
    ("tool", "call", "evil__talk", "how=crash"),
    ("explain", "evil__talk"),
    ("server", "list", "--check"),
    ("server", "show", "evil"),
    ("domain", "show", "default"),
    ("audit", "list"),
]


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("command", SHOWING, ids=" ".join)
def test_no_control_character_of_a_server_reaches_the_terminal(
    hostile: Home, command: tuple[str, ...], options: tuple[str, ...]
) -> None:
    result = hostile.invoke(*command, *options)
    assert "Traceback" not in result.output
    assert controls(result.stdout + result.stderr) == []


def test_what_a_server_says_is_whole_in_json(hostile: Home) -> None:
    result = hostile.said("tool", "call", "evil__talk")
    assert result["content"][0]["text"] == EVIL


def test_a_name_with_a_line_end_stays_in_its_row(hostile: Home) -> None:
    rows = hostile.invoke("tool", "list", "--quarantined").stdout.splitlines()
    assert len(rows) == 2  # the head and the tool that is held back


def test_log_lines_of_a_process_are_clean_too(hostile: Home) -> None:
    ended = hostile.run("tool", "call", "evil__talk", "how=crash")
    assert ended.returncode == Exit.UPSTREAM
    assert controls(ended.stdout + ended.stderr) == []


def controls(text: str) -> list[str]:
    return [c for c in text if c != "\n" and unicodedata.category(c) in {"Cc", "Cf"}]
