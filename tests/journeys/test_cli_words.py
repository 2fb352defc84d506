"""What the command line says: of files in answers, of names, of secrets and of traces."""

import base64
import json
import sys
from pathlib import Path

import pytest

from tests.support.gate import Home, home, server_table
from tests.support.patient import TINY
from thoughtgate.cli.exits import Exit
from thoughtgate.testing.otlp import OtlpReceiver

PNG = b"\x89PNG\r\n\x1a\nnot really"
BLOCKS = [
    {"type": "text", "text": "here \x1b[1mit is"},
    {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"},
    {"type": "audio", "data": "####", "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "file:///../../etc/x", "text": "abc"}},
    {
        "type": "resource",
        "resource": {"uri": "a:b", "blob": "AAAA", "mimeType": "application/pdf"},
    },
    {"type": "resource_link", "uri": "a:\nc", "name": "c", "mimeType": "text/csv", "size": 9},
]
ANSWERING = TINY.replace(
    '        "tools/list"',
    '        "tools/call": json.loads(sys.argv[2]),\n        "tools/list"',
)
TOOLS = [{"name": "draw", "inputSchema": {"type": "object"}}]


def answering(folder: Path, result: object) -> Home:
    """Make a home with one server whose tool `draw` answers so."""
    program = folder / "server.py"
    program.write_text(ANSWERING, encoding="utf-8")
    argv = (sys.executable, "-I", "-S", program, json.dumps(TOOLS), json.dumps(result))
    return home(folder, server_table("art", *argv))


@pytest.fixture
def art(tmp_path: Path) -> Home:
    return answering(tmp_path, {"content": BLOCKS})


def test_what_is_no_text_is_one_line_each(art: Home) -> None:
    done = art.invoke("tool", "call", "art__draw")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "here \\u001b[1mit is",
        f"image (image/png, {len(PNG)} bytes)",
        "audio (audio/wav, what it holds cannot be read)",
        "resource: file:///../../etc/x (text/plain, 3 bytes)",
        "resource: a:b (application/pdf, 3 bytes)",
        "resource link: a:\\nc (text/csv, 9 bytes)",
    ]


@pytest.mark.parametrize("words", [("tool", "call"), ("tool", "show"), ("explain",)])
def test_a_tool_that_is_known_waits_for_no_other_server(art: Home, words: tuple[str, ...]) -> None:
    art.invoke("tool", "list")
    art.invoke("server", "add", "broken", "--", "touch", art.folder / "was-started")
    done = art.invoke(*words, "art__draw")
    assert done.exit_code == 0, done.output
    assert "broken" not in done.stderr
    assert not (art.folder / "was-started").exists()
    assert "broken" in art.invoke(*words, "broken__tool").stderr


def test_files_of_an_answer_are_saved_under_names_of_ours_and_none_is_overwritten(
    art: Home,
) -> None:
    folder = art.folder / "saved" / "here"
    for _ in range(2):
        done = art.invoke("tool", "call", "art__draw", "--save", folder)
        assert done.exit_code == 0, done.output
    assert f"saved as {folder / '2-2.png'}" in done.stdout
    found = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert set(found) == {"2.png", "2-2.png", "4.txt", "4-2.txt", "5.pdf", "5-2.pdf"}
    assert found["2.png"] == PNG
    assert found["4.txt"] == b"abc"


def test_a_folder_that_cannot_be_made_is_told(art: Home) -> None:
    (art.folder / "taken").write_text("", encoding="utf-8")
    done = art.invoke("tool", "call", "art__draw", "--save", art.folder / "taken" / "x")
    assert done.exit_code == Exit.USAGE
    assert "--save" in done.stderr


def test_what_a_failed_tool_says_goes_to_stderr(tmp_path: Path) -> None:
    failed = {"isError": True, "content": [{"type": "text", "text": "no paint"}]}
    done = answering(tmp_path, failed).invoke("tool", "call", "art__draw")
    assert done.exit_code == Exit.FAILED
    assert done.stdout == ""
    assert "no paint" in done.stderr


def test_an_answer_without_blocks_is_shown_whole(tmp_path: Path) -> None:
    done = answering(tmp_path, {"content": [], "structuredContent": {"a": 1}}).invoke(
        "tool", "call", "art__draw"
    )
    assert '"a": 1' in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("tool", "list", "--domain", "nowhere"),
        ("tool", "show", "x", "--domain", "nowhere"),
        ("tool", "search", "x", "--domain", "nowhere"),
        ("tool", "call", "x", "--domain", "nowhere"),
        ("explain", "x", "--domain", "nowhere"),
        ("domain", "show", "nowhere"),
        ("domain", "rm", "nowhere"),
        ("run", "start", "do it", "--plan", "plan.toml", "--domain", "nowhere"),
    ],
    ids=" ".join,
)
def test_an_unknown_domain_is_told_in_the_same_words_everywhere(
    art: Home, arguments: tuple[str, ...]
) -> None:
    plan = art.folder / "plan.toml"
    plan.write_text('[[steps]]\nid = "a"\ngoal = "b"\n', encoding="utf-8")
    words = [str(plan) if word == plan.name else word for word in arguments]
    done = art.invoke(*words)
    assert done.exit_code == Exit.USAGE, done.output
    assert "error: no domain is named nowhere" in done.stderr
    assert "see: thoughtgate domain list" in done.stderr


def test_serving_a_domain_that_is_none_says_so_too(art: Home) -> None:
    done = art.run("serve", "--stdio", "--domain", "nowhere")
    assert done.returncode == Exit.USAGE
    assert "error: no domain is named nowhere" in done.stderr


def test_restoring_junk_does_not_advise_a_restore(art: Home) -> None:
    art.invoke("domain", "set", "work")
    junk = art.folder / "junk.db"
    junk.write_bytes(b"junk" * 1000)
    done = art.invoke("registry", "restore", junk)
    assert done.exit_code == Exit.STORE
    assert str(junk) in done.stderr
    assert "registry restore" not in done.stderr
    assert "another backup" in done.stderr
    assert "work" in art.invoke("domain", "list").stdout


def test_fixed_arguments_that_look_secret_are_not_shown(tmp_path: Path) -> None:
    place = home(
        tmp_path,
        '[domains.d.tools."a/b".fixed]\napi_key = "canary-1"\nplain = "shown"\n'
        'deep = {password = "canary-2", list = ["Bearer canary-3.abc"]}\n',
    )
    for form in ((), ("--json",)):
        done = place.invoke("config", "show", *form)
        assert done.exit_code == 0
        assert "canary" not in done.stdout
        assert "shown" in done.stdout


def test_a_traces_exporter_that_is_none_is_told_once_by_a_single_command(tmp_path: Path) -> None:
    place = home(tmp_path, OTEL_TRACES_EXPORTER="jaeger")
    done = place.run("tool", "list")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("OTEL_TRACES_EXPORTER") == 1
    assert "WARNING" not in place.run("server", "list").stderr


def test_the_configuration_names_where_traces_go_and_a_variable_wins(art: Home) -> None:
    text = art.config.read_text(encoding="utf-8")
    with OtlpReceiver() as named, OtlpReceiver() as said:
        art.config.write_text(
            text.replace("[gateway]", f'[gateway]\ntraces = "{named.url}"', 1), encoding="utf-8"
        )
        art.invoke("tool", "call", "art__draw")
        assert len(named.spans()) == 2
        other = Home(folder=art.folder, extra={"OTEL_EXPORTER_OTLP_ENDPOINT": said.url})
        other.invoke("tool", "call", "art__draw")
        assert (len(named.spans()), len(said.spans())) == (2, 2)


@pytest.mark.parametrize("command", ["doctor", "init"])
def test_what_works_on_this_machine_only_says_so(art: Home, command: str) -> None:
    done = art.invoke("--server", "http://127.0.0.1:9", command)
    assert done.exit_code == Exit.USAGE
    assert "--server" in done.stderr


def test_the_version_is_an_option_too(art: Home) -> None:
    assert art.invoke("--version").stdout == art.invoke("version").stdout


def completed(place: Home, *words: str) -> list[str]:
    """Return what the shell is offered for the last word."""
    extra = {
        "_THOUGHTGATE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("thoughtgate", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = Home(folder=place.folder, extra={**place.extra, **extra}).run()
    assert done.stderr == ""
    return [line.removeprefix("plain,") for line in done.stdout.split()]


@pytest.mark.parametrize(
    ("option", "form"),
    [
        ("--rename", "SERVER/TOOL=NAME"),
        ("--describe", "SERVER/TOOL=TEXT"),
        ("--fix", "SERVER/TOOL:ARGUMENT=VALUE"),
    ],
)
def test_an_option_that_was_given_half_says_its_form(art: Home, option: str, form: str) -> None:
    assert f"{option} takes {form}, got a" in art.invoke("domain", "set", "d", option, "a").stderr


def test_how_a_server_is_spoken_to_is_shown(art: Home) -> None:
    art.config.write_text(
        '[servers.old]\nurl = "https://h.example/sse"\nsse = true\nsharing = "principal"\n'
        "idle_timeout = 5.0\n",
        encoding="utf-8",
    )
    shown = art.said("server", "show", "old")
    assert (shown["sse"], shown["sharing"], shown["idle_timeout"]) == (True, "principal", 5.0)
    art.invoke("server", "add", "new", "https://h.example/mcp")
    assert "sharing: as usual" in art.invoke("server", "show", "new").stdout


def test_what_a_command_does_is_listed_whole_in_a_narrow_terminal(art: Home) -> None:
    narrow = Home(folder=art.folder, extra={**art.extra, "COLUMNS": "80"})
    for group in ((), ("server",), ("client",), ("tool",), ("domain",), ("audit",), ("registry",)):
        lines = narrow.invoke(*group, "--help").stdout.splitlines()
        assert [line for line in lines if line.startswith("  ") and line.endswith("...")] == []


def test_a_shell_completes_the_names_of_domains_servers_and_tools(art: Home) -> None:
    art.invoke("domain", "set", "drawings")
    art.invoke("tool", "list")
    assert completed(art, "domain", "show", "d") == ["default", "drawings"]
    assert completed(art, "server", "show", "") == ["art"]
    assert completed(art, "tool", "call", "art_") == ["art__draw"]
    assert completed(art, "tool", "show", "--domain", "drawings", "a") == ["art__draw"]
    assert completed(art, "tool", "set", "art/") == ["art/draw"]
    assert completed(art, "tool", "list", "--domain", "dr") == ["drawings"]
    assert completed(art, "doctor", "a") == ["art"]
    assert completed(art, "doctor", "po") == ["port"]
    assert completed(art, "server", "login", "a") == ["art"]
    assert completed(art, "server", "logout", "a") == ["art"]


def test_completing_makes_no_registry_and_is_quiet_about_a_broken_configuration(
    tmp_path: Path,
) -> None:
    place = home(tmp_path, "[domains.notes]\n[servers.x]\n")
    assert completed(place, "domain", "show", "n") == ["notes"]
    assert completed(place, "tool", "call", "") == []
    assert not place.state.exists()
    place.config.write_text("not toml", encoding="utf-8")
    assert completed(place, "domain", "show", "") == ["default"]
