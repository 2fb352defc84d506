"""The command line without a running server: registry, domains, configuration, schemas, audit.

Commands run in this process, each with a home of its own; what they print is all that is looked at.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from tests.support.gate import Home, home
from thoughtgate.cli.exits import Exit, code_of
from thoughtgate.cli.root import cli
from thoughtgate.core.errors import (
    ConfigError,
    GateError,
    Malformed,
    ModelError,
    Refused,
    StoreLocked,
    UnknownTarget,
    UpstreamLost,
)

SECRET = "canary-s3cret-1"

SETTINGS = f"""
[servers.fixed]
command = ["fixed-server", "--token", "{SECRET}", "--place=${{PLACE}}"]
env = {{KEY = "{SECRET}"}}

[servers.web]
url = "http://user:{SECRET}@127.0.0.1:9/mcp?key={SECRET}"
headers = {{Authorization = "Bearer ${{TOKEN}}"}}
enabled = false

[domains.work]
include = ["fixed/*"]

[models.local]
url = "http://127.0.0.1:9/v1"
model = "m"
api_key = "{SECRET}"
"""

READS = (
    ("server", "list"), ("server", "show", "mine"), ("domain", "list"), ("domain", "show", "work"),
    ("config", "check"), ("config", "show"), ("audit", "verify"), ("audit", "list"), ("version",),
    ("model", "list"),
)  # fmt: skip
"""The commands that answer a question from what is stored."""

SERVED = {("tool", name) for name in ("list", "show", "search", "call")} | {("explain",)}
"""The commands with `--json` that need a tool server; they have a file of their own."""

OTHERS = {
    ("schema", "check"),
    ("run", "start"),
    ("server", "add"),
    ("server", "import"),
    ("server", "login"),
    ("server", "logout"),
    ("status",),
    ("reload",),
    ("doctor",),
    ("init",),
    ("client", "list"),
    ("grpc", "describe"),
    ("model", "add"),
    ("model", "rm"),
    ("model", "test"),
}


CHANGES = (
    ("server", "disable", "mine"), ("server", "enable", "mine"), ("server", "rm", "mine"),
    ("domain", "set", "new"), ("domain", "rm", "old"),
    ("tool", "set", "mine/go", "--effect", "read"),
    ("registry", "backup", "copy.db"), ("registry", "restore", "old.db"),
)  # fmt: skip
"""The commands that change what is stored, and print what they changed."""


@pytest.fixture
def place(tmp_path: Path) -> Home:
    made = home(tmp_path, SETTINGS, TOKEN=SECRET, PLACE=SECRET)
    done(made, "server", "add", "mine", "--env", f"KEY={SECRET}", "--", "my-server", "--quiet")
    return made


@pytest.fixture
def empty(tmp_path: Path) -> Home:
    return home(tmp_path)


def done(place: Home, *arguments: object) -> str:
    """Run a command that must end well and return what it printed."""
    result = place.invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(place: Home, *arguments: object) -> tuple[int, str]:
    """Run a command that must not end well; return its exit code and what it said on stderr."""
    result = place.invoke(*arguments)
    assert result.exit_code != 0, result.output
    assert "Traceback" not in result.output
    return result.exit_code, result.stderr


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    return command


@pytest.mark.parametrize("path", [(), *commands(cli)], ids=" ".join)
def test_every_command_explains_itself(empty: Home, path: tuple[str, ...]) -> None:
    text = done(empty, *path, "--help")
    assert text.startswith("Usage: ")
    assert "\\b" not in text


def test_every_command_that_can_print_json_is_tested_for_it() -> None:
    can = {
        path
        for path in commands(cli)
        if any("--json" in option.opts for option in command_at(path).params)
    }
    known = (*READS, *CHANGES)
    asked = {path for path in commands(cli) if any(path == r[: len(path)] for r in known)}
    assert can == asked | SERVED | OTHERS


@pytest.mark.parametrize("change", CHANGES, ids=" ".join)
def test_a_change_is_told_as_text_and_as_json(place: Home, change: tuple[str, ...]) -> None:
    words = [str(place.folder / word) if word.endswith(".db") else word for word in change]
    done(place, "domain", "set", "old")
    done(place, "registry", "backup", place.folder / "old.db")
    told = place.invoke(*words, "--json")
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)
    assert told.stderr == ""
    if change[1] in {"rm", "backup"}:
        return  # a second time there is nothing to remove, and the name is taken
    again = place.invoke(*words)
    assert (again.exit_code, again.stdout) == (0, "")
    assert again.stderr.strip()


@pytest.mark.parametrize("read", READS, ids=" ".join)
def test_a_question_is_answered_as_text_and_as_json(place: Home, read: tuple[str, ...]) -> None:
    assert done(place, *read).strip()
    assert place.said(*read) is not None


@pytest.mark.parametrize("read", READS, ids=" ".join)
def test_no_answer_shows_a_secret_or_a_variables_value(place: Home, read: tuple[str, ...]) -> None:
    for options in ((), ("--json",)):
        result = place.invoke(*read, *options)
        assert SECRET not in result.output


def test_no_file_of_the_registry_holds_a_secret_in_the_clear(place: Home) -> None:
    done(
        place,
        "server",
        "add",
        "w2",
        "--url",
        f"https://x:{SECRET}@h/mcp",
        "--header",
        f"A={SECRET}",
    )
    stored = [path.read_bytes() for path in place.state.iterdir() if path.suffix != ".key"]
    assert stored
    assert not any(SECRET.encode() in data for data in stored)


def test_a_server_is_added_shown_changed_and_removed(empty: Home) -> None:
    add = ("server", "add", "files", "--tag", "disk", "--trusted", "--era", "stateless")
    done(empty, *add, "--", "srv", "--root", "/x")
    shown = empty.said("server", "show", "files")
    assert shown["transport"] == "srv --root /x"
    assert (shown["tags"], shown["trusted"], shown["era"]) == (["disk"], True, "stateless")

    assert refused(empty, *add, "--", "other") == (
        2,
        "error: server files is registered already; add --replace\n",
    )
    done(empty, *add, "--replace", "--", "other")
    done(empty, "server", "disable", "files")
    (row,) = empty.said("server", "list")
    assert (row["transport"], row["state"], row["source"]) == ("other", "disabled", "registry")
    done(empty, "server", "enable", "files")
    assert empty.said("server", "show", "files")["enabled"]
    done(empty, "server", "rm", "files")
    assert empty.said("server", "list") == []
    assert refused(empty, "server", "rm", "files")[0] == Exit.USAGE


def test_a_command_keeps_the_folder_that_it_was_registered_in(
    empty: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(empty.folder)
    result = empty.invoke("server", "add", "here", "--", "./srv")
    assert "thoughtgate server list --check" in result.stderr
    done(empty, "server", "add", "there", "--cwd", "sub", "--", "./srv")
    done(empty, "server", "add", "web", "--url", "http://h/mcp")
    folders = [empty.said("server", "show", name)["cwd"] for name in ("here", "there", "web")]
    assert folders == [str(empty.folder), str(empty.folder / "sub"), ""]
    assert f"cwd: {empty.folder}\n" in done(empty, "server", "show", "here")


def test_servers_are_shown_without_the_key_of_their_secrets(place: Home) -> None:
    done(place, "server", "add", "w2", "--url", f"http://h/mcp?k={SECRET}")
    (place.state / "registry.key").unlink()
    assert {row["name"] for row in place.said("server", "list")} == {"fixed", "mine", "w2", "web"}
    assert place.said("server", "show", "mine")["secrets"] == ["KEY"]
    code, said = refused(place, "tool", "list")
    assert code == Exit.STORE
    assert "secrets of servers mine, w2" in said


def test_an_empty_registry_says_how_to_begin(empty: Home) -> None:
    said = done(empty, "server", "list")
    assert said.startswith("no servers yet; add one with: ")
    assert "thoughtgate server import" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("Bad Name", "--", "srv"),
        ("x",),
        ("x", "--url", "http://h/mcp", "--", "srv"),
        ("x", "--url", "ftp://h/mcp"),
        ("x", "--env", "A", "--", "srv"),
        ("x", "--call-timeout", "0", "--", "srv"),
        ("x", "--url", "http://h/mcp", "--env", "A=b"),
        ("x", "--url", "http://h/mcp", "--cwd", "/tmp"),
        ("x", "--header", "A=b", "--", "srv"),
    ],
    ids=repr,
)
def test_a_server_that_cannot_be_registered_is_refused(
    empty: Home, arguments: tuple[str, ...]
) -> None:
    code, said = refused(empty, "server", "add", *arguments)
    assert code == Exit.USAGE
    assert said.lower().count("error: ") == 1
    assert empty.said("server", "list") == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("server", "add", "fixed", "--", "other"),
        ("server", "enable", "web"),
        ("server", "disable", "fixed"),
        ("server", "rm", "fixed"),
        ("domain", "set", "work", "--max-tools", "3"),
        ("domain", "rm", "work"),
    ],
    ids=" ".join,
)
def test_an_entry_of_the_configuration_file_is_changed_there_only(
    place: Home, arguments: tuple[str, ...]
) -> None:
    before = place.said("server", "list"), place.said("domain", "list")
    code, said = refused(place, *arguments)
    assert code == Exit.USAGE
    assert f"comes from {place.config}; change it there" in said
    assert (place.said("server", "list"), place.said("domain", "list")) == before


def test_a_domain_keeps_what_is_not_given(empty: Home) -> None:
    done(empty, "domain", "set", "ops", "--include", "a/*", "--include", "tag:x", "--max-tools", 4)
    done(empty, "domain", "set", "ops", "--instructions", "be quick", "--rename", "a/b=c")
    done(empty, "domain", "set", "ops", "--fix", 'a/b:q={"n": 1}', "--fix", "a/b:r=word")
    shown = empty.said("domain", "show", "ops")
    assert (shown["include"], shown["max_tools"]) == (["a/*", "tag:x"], 4)
    assert (shown["instructions"], shown["revision"]) == ("be quick", 3)
    assert shown["endpoint"] == "/mcp/ops"
    done(empty, "domain", "rm", "ops")
    assert refused(empty, "domain", "show", "ops")[0] == Exit.USAGE


def test_what_a_domain_says_can_be_taken_back(empty: Home) -> None:
    done(empty, "domain", "set", "ops", "--include", "a/*", "--exclude", "b/*", "--max-tools", 4)
    done(empty, "domain", "set", "ops", "--rename", "a/b=c", "--max-tokens", 100)
    cleared = ("include", "exclude", "looks", "max-tools", "max-tokens")
    done(empty, "domain", "set", "ops", *(word for what in cleared for word in ("--clear", what)))
    shown = empty.said("domain", "show", "ops")
    assert (shown["include"], shown["exclude"], shown["max_tools"]) == ([], [], None)
    assert shown["max_tokens"] is None


def test_a_domain_says_at_once_which_of_its_rules_fit_nothing(empty: Home) -> None:
    result = empty.invoke("domain", "set", "ops", "--include", "nope/*", "--rename", "a/b=c")
    assert result.exit_code == 0
    assert "warning: the rule nope/* of domain ops fits no tool\n" in result.stderr
    assert "warning: domain ops dresses a/b, which is no tool\n" in result.stderr


def test_a_domain_is_shown_in_words(empty: Home) -> None:
    done(empty, "domain", "set", "ops", "--include", "a/*", "--include", "tag:x")
    lines = done(empty, "domain", "show", "ops").splitlines()
    assert {"include: a/*, tag:x", "exclude: none", "max_tokens: no limit", "prefixed: yes"} <= {
        *lines
    }
    assert not any(word in line for line in lines for word in ("[", "None", "True", "()"))
    assert lines[-1] == "it shows no tools"


def test_a_domain_with_an_engine_is_shown_with_its_tool(empty: Home) -> None:
    done(empty, "domain", "set", "ops", "--engine", "react")
    assert [tool["name"] for tool in empty.said("domain", "show", "ops")["tools"]] == ["reason"]
    done(empty, "domain", "set", "ops", "--engine", "none")
    assert empty.said("domain", "show", "ops")["tools"] == []


def test_the_default_domain_stays_without_a_budget_when_it_is_given_instructions(
    empty: Home,
) -> None:
    built_in = empty.said("domain", "show", "default")
    done(empty, "domain", "set", "default", "--instructions", "hello")
    changed = empty.said("domain", "show", "default")
    assert changed == {**built_in, "instructions": "hello", "source": "registry"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("set", "Bad Name"),
        ("set", "d", "--rename", "a/b=not a name"),
        ("set", "d", "--rename", "nothing"),
        ("set", "d", "--fix", "a/b=1"),
        ("set", "d", "--engine", "unknown"),
        ("set", "d", "--max-tools", "0"),
        ("rm", "nowhere"),
        ("show", "nowhere"),
    ],
    ids=" ".join,
)
def test_a_domain_that_cannot_be_is_refused(empty: Home, arguments: tuple[str, ...]) -> None:
    assert refused(empty, "domain", *arguments)[0] == Exit.USAGE
    assert [entry["name"] for entry in empty.said("domain", "list")] == ["default"]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[gateway]\nhost = '0.0.0.0'\n", "gateway.host"),
        ("[gateway]\nprot = 1\n", "gateway.prot: unknown key; did you mean port?"),
        ("[server.x]\ncommand = ['y']\n", "server: unknown key; did you mean servers?"),
        ("[servers.x]\ncomand = ['y']\n", "servers.x.comand: unknown key; did you mean command?"),
        ("[limits]\nzzz = 1\n", "limits.zzz: unknown key; the keys here are call_depth, "),
        ("[servers.x]\nurl = 'http://h'\ncommand = ['y']\n", "servers.x"),
        ("[servers.x]\ncommand = ['${NOT_SET_ANYWHERE}']\n", "NOT_SET_ANYWHERE"),
        ("[servers.'Bad Name']\n", 'servers: "Bad Name" is no server name; use 1 to 40 lower-case'),
        ("[domains.Bad]\n", 'domains: "Bad" is no domain name; use 1 to 40 lower-case'),
        ("not toml", "TOML"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_said_to_be_where(
    empty: Home, text: str, where: str
) -> None:
    file = empty.folder / "other.toml"
    file.write_text(text, encoding="utf-8")
    code, said = refused(empty, "config", "check", file)
    assert code == Exit.USAGE
    assert str(file) in said
    assert where in said
    assert refused(empty, "--config", file, "server", "list")[0] == Exit.USAGE


def test_the_schema_of_the_configuration_accepts_what_config_check_accepts(place: Home) -> None:
    schema = place.folder / "schema.json"
    schema.write_text(done(place, "config", "schema"), encoding="utf-8")
    settings = place.folder / "settings.json"
    shown = place.said("config", "show")["settings"]
    shown["models"]["local"]["url"] = "http://h/v1"
    settings.write_text(json.dumps(shown), encoding="utf-8")
    verdict = place.said("schema", "check", schema, settings)
    assert verdict == {"registered": True, "valid": True, "problems": []}


def judged(empty: Home, schema: str, instance: str | None = None) -> tuple[int, Any]:
    files = [empty.folder / "schema.json", empty.folder / "instance.json"]
    files[0].write_text(schema, encoding="utf-8")
    files[1].write_text(instance or "", encoding="utf-8")
    asked = files if instance is not None else files[:1]
    text = empty.invoke("schema", "check", *asked)
    result = empty.invoke("schema", "check", *asked, "--json")
    assert text.exit_code == result.exit_code
    return result.exit_code, json.loads(result.stdout or "null")


NEEDS_A = '{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}'


def test_a_schema_and_a_valid_instance_pass(empty: Home) -> None:
    assert judged(empty, NEEDS_A) == (0, {"registered": True})
    code, verdict = judged(empty, NEEDS_A, '{"a": 1}')
    assert (code, verdict["valid"], verdict["problems"]) == (0, True, [])


def test_an_invalid_instance_is_told_with_its_problems(empty: Home) -> None:
    code, verdict = judged(empty, NEEDS_A, '{"a": "1"}')
    assert (code, verdict["registered"], verdict["valid"]) == (Exit.FAILED, True, False)
    assert [problem["pointer"] for problem in verdict["problems"]] == ["/a"]


@pytest.mark.parametrize(
    "schema",
    ['{"type": "strin"}', '{"$ref": "http://h/schema"}', '{"$schema": "urn:unknown"}'],
)
def test_a_refused_schema_is_told_with_its_rule_and_judges_nothing(
    empty: Home, schema: str
) -> None:
    code, verdict = judged(empty, schema, "1")
    assert (code, verdict["registered"], verdict["valid"]) == (Exit.FAILED, False, None)
    assert verdict["reason"]["rule"]
    assert verdict["reason"]["says"]


@pytest.mark.parametrize("text", ["", "{", '{"a": 1, "a": 2}', "NaN", "[1e999]"])
def test_json_that_is_not_acceptable_is_told_as_such(empty: Home, text: str) -> None:
    code, verdict = judged(empty, NEEDS_A, text)
    assert (code, verdict["valid"]) == (Exit.FAILED, False)
    assert verdict["malformed"]
    assert judged(empty, text)[0] == Exit.USAGE


def test_a_copy_of_the_registry_brings_back_what_was_removed(empty: Home) -> None:
    copy = empty.folder / "copy.db"
    done(empty, "server", "add", "x", "--", "srv")
    done(empty, "registry", "backup", copy)
    assert refused(empty, "registry", "backup", copy)[0] == Exit.USAGE  # never written over
    done(empty, "server", "rm", "x")
    said = empty.invoke("registry", "restore", copy).stderr
    assert "the former one is " in said
    assert [row["name"] for row in empty.said("server", "list")] == ["x"]
    assert refused(empty, "registry", "restore", empty.folder / "nothing")[0] == Exit.USAGE


def test_a_registry_that_cannot_be_read_is_exit_4_and_stays(empty: Home) -> None:
    empty.state.mkdir()
    file = empty.state / "registry.db"
    file.write_bytes(b"this is no database" * 100)
    code, said = refused(empty, "server", "list")
    assert code == Exit.STORE
    assert str(file) in said
    assert file.read_bytes().startswith(b"this is no database")


def test_an_empty_audit_log_is_whole(empty: Home) -> None:
    assert empty.said("audit", "verify") == {"ok": True, "rows": 0, "chains": []}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refused(message="no"), Exit.REFUSED),
        (UnknownTarget(name="x"), Exit.USAGE),
        (Malformed(message="no"), Exit.USAGE),
        (ConfigError(message="no"), Exit.USAGE),
        (UpstreamLost(message="no"), Exit.UPSTREAM),
        (StoreLocked(message="no"), Exit.STORE),
        (ModelError(message="no"), Exit.FAILED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_kind_of_error_has_its_exit_code(error: GateError, code: Exit) -> None:
    assert code_of(error) is code


@pytest.mark.parametrize(
    "arguments",
    [("nonsense",), ("server", "nonsense"), ("tool", "call"), ("version", "--nonsense")],
    ids=" ".join,
)
def test_a_command_line_that_makes_no_sense_is_exit_2(
    empty: Home, arguments: tuple[str, ...]
) -> None:
    code, said = refused(empty, *arguments)
    assert code == Exit.USAGE
    assert "Usage: " in said


def test_a_run_without_plan_or_model_is_refused(empty: Home) -> None:
    code, said = refused(empty, "run", "start", "do it")
    assert (code, "--plan" in said) == (Exit.USAGE, True)


@pytest.mark.parametrize(
    ("name", "text"), [("p.toml", "steps = 1"), ("p.json", "{"), ("p.toml", "not toml")]
)
def test_a_plan_that_cannot_be_used_is_refused(empty: Home, name: str, text: str) -> None:
    file = empty.folder / name
    file.write_text(text, encoding="utf-8")
    assert refused(empty, "run", "start", "do it", "--plan", file)[0] == Exit.USAGE


def test_an_input_that_the_plan_does_not_know_is_refused(empty: Home) -> None:
    file = empty.folder / "plan.toml"
    file.write_text(
        'inputs = {known = 1}\n[[steps]]\nid = "a"\ntool = "nope"\ngoal = "g"\n'
        'arguments = {x = {"$from" = "inputs#/place"}}\n',
        encoding="utf-8",
    )
    start = ("run", "start", "do it", "--plan", file, "--input", "place=1", "--input", "known=2")
    code, said = refused(empty, *start, "--input", "plcae=1")
    assert (code, "knows no input plcae\n" in said) == (Exit.USAGE, True)
    assert "knows no input" not in empty.invoke(*start).stderr


def test_a_port_is_no_matter_of_a_pipe(empty: Home) -> None:
    code, said = refused(empty, "serve", "--stdio", "--port", "0")
    assert (code, "--port is for HTTP" in said) == (Exit.USAGE, True)


def test_an_effect_of_what_nobody_has_seen_is_kept_with_a_warning(place: Home) -> None:
    for name, warning in (
        ("nope/x", "warning: no server is named nope; "),
        ("mine/x", "warning: mine has shown no tool x so far; "),
    ):
        result = place.invoke("tool", "set", name, "--effect", "read")
        assert (result.exit_code, warning in result.stderr) == (0, True)


def test_an_effect_is_said_of_a_tool_by_its_servers_own_name(empty: Home) -> None:
    done(empty, "tool", "set", "a/b", "--effect", "read")
    assert refused(empty, "tool", "set", "ab", "--effect", "read")[0] == Exit.USAGE
    assert refused(empty, "tool", "set", "a/b", "--effect", "some")[0] == Exit.USAGE
    done(empty, "tool", "set", "a/b", "--effect", "none")
