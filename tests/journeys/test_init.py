"""`thoughtgate init`: with and without a terminal, all answers combined, and second thoughts."""

import itertools
import json
import os
import pty
import select
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.gate import command
from thoughtgate.cli.exits import Exit
from thoughtgate.cli.init_questions import QUESTIONS
from thoughtgate.cli.root import cli

PATIENCE = 20.0


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with a home of their own, who stands in a folder."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    for name in list(os.environ):
        if name.startswith(("THOUGHTGATE_", "OTEL_", "XDG_", "CODEX_", "CLAUDE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("THOUGHTGATE_HOME", str(home / "state"))
    monkeypatch.chdir(here)
    return home


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)))


def done(*words: object) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def init(*words: object, **answers: object) -> dict[str, Any]:
    given = [part for key, value in answers.items() for part in ("--answers", f"{key}={value}")]
    found: dict[str, Any] = json.loads(done("init", "--json", *words, *given))
    return found


COMBINATIONS = list(
    itertools.product(
        ("user", "folder"),
        ("default", "notes"),
        ("none", "import", "files"),
        ("yes", "no"),
        ("none", "http://127.0.0.1:4318"),
        ("8123", "stdio"),
    )
)


@pytest.mark.parametrize("answers", COMBINATIONS)
def test_every_combination_of_answers_gives_a_configuration_that_can_be_used(
    user: Path, answers: tuple[str, ...]
) -> None:
    keys = ("where", "domain", "servers", "capture", "traces", "port")
    found = init(
        "--yes", purpose='For "notes"', folder=user, **dict(zip(keys, answers, strict=True))
    )
    file = Path(found["file"])
    assert file.parent == (Path.cwd() if answers[0] == "folder" else user / ".config/thoughtgate")
    assert done("config", "check", file).startswith(f"{file}: ok")
    said = tomllib.loads(file.read_text(encoding="utf-8"))
    assert said["domains"][answers[1]]["instructions"] == 'For "notes"'
    assert said["gateway"].get("capture", False) is (answers[3] == "yes")
    assert ("files" in said.get("servers", {})) is (answers[2] == "files")
    assert file.stat().st_mode & 0o777 == 0o600


def test_without_a_terminal_and_without_answers_nothing_is_asked_or_written(user: Path) -> None:
    result = run("init")
    assert result.exit_code == Exit.USAGE
    assert "--yes" in result.stderr
    assert not (user / ".config").exists()


def test_a_file_is_never_overwritten_without_force_and_kept_with_it(user: Path) -> None:
    first = Path(init("--yes", port=1111)["file"])
    before = first.read_text(encoding="utf-8")
    result = run("init", "--yes")
    assert result.exit_code == Exit.USAGE
    assert "--force" in result.stderr
    assert first.read_text(encoding="utf-8") == before
    found = init("--yes", "--force", port=2222)
    assert Path(found["kept"]).read_text(encoding="utf-8") == before
    assert "port = 2222" in first.read_text(encoding="utf-8")
    assert user in first.parents


def test_a_file_that_is_a_link_stays_one(user: Path) -> None:
    named = Path(init("--yes", port=1111)["file"])
    real = user / "dotfiles.toml"
    named.rename(real)
    named.symlink_to(real)
    init("--yes", "--force", port=2222)
    assert named.is_symlink()
    assert "port = 2222" in real.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("where", "mars"), ("domain", "A b"), ("purpose", "two\nlines"), ("servers", "some"),
        ("capture", "maybe"), ("traces", "ftp://h"), ("port", "0"), ("port", "http"),
        ("client", "emacs-of-1985"), ("colour", "red"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_is_refused_by_its_name(user: Path, key: str, answer: str) -> None:
    result = run("init", "--yes", "--answers", f"{key}={answer}")
    assert result.exit_code == Exit.USAGE
    assert key in result.stderr
    assert not (user / ".config").exists()


def test_answers_come_from_a_file_too_and_the_last_one_counts(user: Path) -> None:
    answers = user / "answers.toml"
    answers.write_text('domain = "work"\nport = 7777\ncapture = true\n', encoding="utf-8")
    found = init("--answers", answers, domain="play")
    said = tomllib.loads(Path(found["file"]).read_text(encoding="utf-8"))
    assert said["gateway"] == {"port": 7777, "capture": True}
    assert set(said["domains"]) == {"play"}


def test_the_servers_of_clients_are_registered_and_the_rest_is_told(user: Path) -> None:
    (user / ".cursor").mkdir()
    servers = {"Notes": {"command": "notes-server", "env": {"KEY": "s3cret"}}}
    (user / ".cursor/mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    windsurf = user / ".codeium/windsurf"
    windsurf.mkdir(parents=True)
    broken = {"mcpServers": {**servers, "odd": {"command": ["x"], "url": 3}}}
    (windsurf / "mcp_config.json").write_text(json.dumps(broken), encoding="utf-8")
    found = init("--yes", servers="import")
    assert "imported Notes" in found["imported"][0]
    assert "not imported" in found["imported"][1]
    assert "thoughtgate server import" in found["imported"][1]
    assert [one["name"] for one in json.loads(done("server", "list", "--json"))] == ["notes"]
    assert "s3cret" not in Path(found["file"]).read_text(encoding="utf-8")


def test_it_ends_with_commands_that_exist(user: Path) -> None:
    for answers in ({}, {"where": "folder"}, {"port": "stdio"}, {"client": "cursor"}):
        found = init("--yes", "--force", **answers)
        assert 2 <= len(found["next"]) <= 3
        for line in found["next"]:
            program, *words = line.split(" ")
            assert program == "thoughtgate"
            assert run(*words, "--help").exit_code == 0
    assert (user / ".config").is_dir()


class Screen:
    """The other end of a dumb terminal in which `init` runs."""

    def __init__(self, end: int, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._end = end
        self._unread = ""

    def hear(self, text: str) -> str:
        """Read until the terminal shows `text`; what comes after it is for the next look."""
        while text not in self._unread:
            ready, _, _ = select.select([self._end], [], [], PATIENCE)
            assert ready, self._unread
            try:
                part = os.read(self._end, 4096)
            except OSError:  # the other end is closed
                part = b""
            assert part, self._unread
            self._unread += part.decode()
        before, _, self._unread = self._unread.partition(text)
        return before

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._end, f"{line}\n".encode())

    def interrupted(self) -> int:
        """Press Ctrl-C, and again where it is lost between a prompt and the read that follows."""
        for _ in range(int(PATIENCE)):
            self.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                return self.process.wait(1)
        return self.ended()

    def ended(self) -> int:
        """Return the exit code, as soon as there is one."""
        return self.process.wait(PATIENCE)


@contextmanager
def terminal() -> Iterator[Screen]:
    """Run `init` in a dumb terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("init"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "dumb"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Screen(ours, process)
    finally:
        process.kill()
        process.wait(PATIENCE)
        os.close(ours)


def test_on_a_dumb_terminal_questions_are_asked_the_file_is_shown_and_then_written(
    user: Path,
) -> None:
    words = {"port": "99999", "domain": "notes", "servers": "files", "folder": str(user)}
    with terminal() as screen:
        for question in QUESTIONS:
            screen.hear(question.text)
            screen.type(words.get(question.key, ""))
            if question.key == "port":
                screen.hear("must be a port")
                screen.hear(question.text)
                screen.type("8111")
        shown = screen.hear("Write it?")
        assert not (user / ".config").exists()
        assert "[domains.notes]" in shown
        assert "\x1b" not in shown
        screen.type("y")
        screen.hear("thoughtgate serve")
        assert screen.ended() == 0
    said = tomllib.loads((user / ".config/thoughtgate/thoughtgate.toml").read_text("utf-8"))
    assert said["gateway"]["port"] == 8111
    assert said["servers"]["files"]["command"][-1] == str(user)


def test_a_file_that_is_there_is_told_before_the_rest_is_asked(user: Path) -> None:
    init("--yes")
    with terminal() as screen:
        screen.hear(QUESTIONS[0].text)
        screen.type("")
        assert QUESTIONS[1].text not in screen.hear("add --force to replace it")
        assert screen.ended() == Exit.USAGE
    assert (user / ".config").is_dir()


def test_a_file_that_comes_while_questions_are_answered_is_left_alone(user: Path) -> None:
    where, *others = [question for question in QUESTIONS if question.key != "folder"]
    other = Path.cwd() / "thoughtgate.toml"
    with terminal() as screen:
        screen.hear(where.text)
        screen.type("folder")
        for question in others:
            screen.hear(question.text)
            other.write_text("# of somebody else\n", encoding="utf-8")
            screen.type("")
        screen.hear("Write it?")
        screen.type("y")
        screen.hear("changed by another program")
        assert screen.ended() == Exit.USAGE
    assert other.read_text(encoding="utf-8") == "# of somebody else\n"
    assert user.is_dir()


@pytest.mark.parametrize("moment", ["Name of the domain", "Write it?"])
def test_an_interrupt_leaves_nothing_behind(user: Path, moment: str) -> None:
    asked = [question.text for question in QUESTIONS if question.key != "folder"]
    with terminal() as screen:
        for text in (*asked, "Write it?"):
            screen.hear(text)
            if text.startswith(moment):
                break
            screen.type("")
        assert screen.interrupted() == Exit.INTERRUPTED
    assert not (user / ".config").exists()
