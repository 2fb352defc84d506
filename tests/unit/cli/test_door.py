"""How a command that fails ends: for people on stderr, for programs on stdout too."""

import json
import logging
import sys
from collections.abc import Sequence

import click
import pytest

from thoughtgate.cli.door import DEBUG, Door, say_bugs
from thoughtgate.cli.exits import Exit
from thoughtgate.core.errors import GateError, Refused, UnknownTarget


def ended(args: Sequence[str], error: GateError | None = None) -> int:
    """Run one command `do`, which fails with `error`; return its exit code."""

    @click.command()
    @click.option("--json", is_flag=True)
    @click.argument("rest", nargs=-1)
    def do(json: bool, rest: tuple[str, ...]) -> None:
        if error is not None:
            raise error

    with pytest.raises(SystemExit) as caught:
        Door(commands=[do]).main(args)
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_an_error_stands_on_stdout_for_the_program_that_asked_for_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = Refused(message="the domain shows it to others", data={"domain": "work"})
    assert ended(["do", "--json"], error) == Exit.REFUSED
    said = capsys.readouterr()
    assert json.loads(said.out) == {
        "error": "refused", "message": error.message, "data": {"domain": "work"},
    }  # fmt: skip
    assert said.err == f"error: {error.message}\n"


def test_wrong_usage_is_told_as_json_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["do", "--json", "--colour"]) == Exit.USAGE
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert told["error"] == "usage"
    assert "--colour" in told["message"]
    assert "--colour" in said.err


@pytest.mark.parametrize("args", [["do"], ["do", "--", "--json"]])
def test_stdout_stays_empty_when_nobody_asked_for_json(
    args: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(args, UnknownTarget(name="x")) == Exit.USAGE
    assert capsys.readouterr().out == ""


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the hook for bugs in place, and the old one back afterwards."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "argv", ["thoughtgate", "server", "list", "--json"])
    monkeypatch.delenv(DEBUG, raising=False)
    say_bugs()


def caught() -> KeyError:
    """Return an error that was raised, so that it has a traceback."""
    with pytest.raises(KeyError) as found:
        raise KeyError("canary")
    return found.value


@pytest.mark.usefixtures("hook")
def test_a_bug_is_one_line_and_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    error = caught()
    sys.excepthook(KeyError, error, error.__traceback__)
    said = capsys.readouterr()
    assert said.err.startswith("error: internal: KeyError\n")
    assert DEBUG in said.err
    assert "Traceback" not in said.err
    assert json.loads(said.out) == {
        "error": "internal",
        "message": "internal: KeyError",
        "data": {},
    }


@pytest.mark.usefixtures("hook")
@pytest.mark.parametrize("way", ["variable", "log level"])
def test_a_bug_shows_its_traceback_to_who_wants_it(
    way: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    if way == "variable":
        monkeypatch.setenv(DEBUG, "1")
    else:
        caplog.set_level(logging.DEBUG)
    error = caught()
    sys.excepthook(KeyError, error, error.__traceback__)
    assert "Traceback" in capsys.readouterr().err
