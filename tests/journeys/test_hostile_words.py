"""What people and scripts type by mistake or on purpose: an answer and an exit code, never a crash.

Commands run in this process, where an exception that nobody expected is seen as itself.
"""

from pathlib import Path

import pytest

from tests.support.gate import Home, home
from thoughtgate.cli.exits import Exit

DEEP = "[" * 100_000
DIGITS = "9" * 5_000
RAW = b"\xff\xfe".decode("utf-8", "surrogateescape")
"""What Python makes of bytes on the command line that are no text."""


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return home(tmp_path)


def ended(place: Home, *arguments: object) -> tuple[int, str]:
    """Run a command; return its exit code and what it said on stderr."""
    result = place.invoke(*arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result.exit_code, result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("server", "rm", RAW),
        ("server", "add", "mine", "--env", f"{RAW}=1", "--", "x"),
        ("domain", "rm", RAW),
        ("domain", "set", "work", "--instructions", RAW),
        ("tool", "set", f"{RAW}/x", "--effect", "read"),
        ("tool", "call", "x", f"a={RAW}"),
        ("tool", "call", "x", "--args", RAW),
        ("registry", "backup", RAW),
        ("--config", RAW, "version"),
    ],
    ids=lambda words: " ".join(words).encode("ascii", "replace").decode(),
)
def test_bytes_that_are_no_text_are_refused(place: Home, arguments: tuple[str, ...]) -> None:
    code, said = ended(place, *arguments)
    assert code == Exit.USAGE
    assert "is not UTF-8" in said
    assert RAW not in said


@pytest.mark.parametrize("option", ["--call-timeout", "--start-timeout"])
def test_a_time_that_is_no_number_is_refused(place: Home, option: str) -> None:
    assert ended(place, "server", "add", "mine", option, "nan", "--", "x")[0] == Exit.USAGE
    assert ended(place, "tool", "call", "x", "--timeout", "NaN")[0] == Exit.USAGE
    assert place.said("server", "list") == []


@pytest.mark.parametrize("word", [DEEP, "NaN", "1e999", DIGITS, '"\\ud800"', '{"a":1,"a":2}'])
def test_a_fixed_value_that_is_no_json_is_taken_as_text(place: Home, word: str) -> None:
    assert ended(place, "domain", "set", "work", "--fix", f"s/t:a={word}")[0] == Exit.OK
    assert ended(place, "domain", "show", "work")[0] == Exit.OK


@pytest.mark.parametrize("text", [DEEP, DIGITS, '{"steps":[NaN]}', '{"steps":[],"steps":[]}'])
def test_a_plan_that_is_no_json_is_refused(place: Home, text: str) -> None:
    plan = place.folder / "plan.json"
    plan.write_text(text, encoding="utf-8")
    code, said = ended(place, "run", "start", "do it", "--plan", plan)
    assert code == Exit.USAGE
    assert "plan.json: not valid JSON" in said


@pytest.mark.parametrize("text", [f"a = {DEEP}", f"a = {DIGITS}", "a = {b = " * 20_000])
def test_toml_that_nobody_could_read_is_refused(place: Home, text: str) -> None:
    file = place.folder / "given.toml"
    file.write_text(text, encoding="utf-8")
    assert ended(place, "config", "check", file)[0] == Exit.USAGE
    assert ended(place, "run", "start", "do it", "--plan", file)[0] == Exit.USAGE


@pytest.mark.parametrize("value", ["nan", "-inf", "1979-05-27", "[{a = 07:32:00}]"])
def test_a_fixed_value_that_json_cannot_hold_is_refused(place: Home, value: str) -> None:
    file = place.folder / "given.toml"
    file.write_text(f'[domains.work.tools."s/t".fixed]\nx = {value}\n', encoding="utf-8")
    code, said = ended(place, "config", "check", file)
    assert code == Exit.USAGE
    assert "domains.work.tools.s/t.fixed" in said


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("allowed_hosts", ["gate.example", "::1", "10.0.0.1"], "gate.example:8765"),
        ("allowed_hosts", [], "http://gate.example"),
        ("allowed_hosts", [], "[::1]"),
        ("allowed_origins", ["https://a.example", "http://[::1]:80"], "https://a.example/"),
        ("allowed_origins", ["vscode-webview://abc"], "a.example"),
        ("allowed_origins", [], "null"),
    ],
)
def test_a_host_or_origin_that_no_request_can_bring_is_refused(
    place: Home, key: str, good: list[str], bad: str
) -> None:
    file = place.folder / "given.toml"
    file.write_text(f"[gateway]\n{key} = {good!r}\n", encoding="utf-8")
    assert ended(place, "config", "check", file)[0] == Exit.OK
    file.write_text(f"[gateway]\n{key} = {[*good, bad]!r}\n", encoding="utf-8")
    code, said = ended(place, "config", "check", file)
    assert code == Exit.USAGE
    assert f"gateway.{key}: {bad}" in said


def test_an_effect_needs_a_server_and_a_tool(place: Home) -> None:
    for name in ("/x", "x/", "x", "/"):
        assert ended(place, "tool", "set", name, "--effect", "read")[0] == Exit.USAGE
