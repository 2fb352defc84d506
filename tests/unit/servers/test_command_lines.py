"""The command lines of the shipped servers: examples in the help, mistakes told in words."""

import click
import pytest
from click.testing import CliRunner

from thoughtgate_servers import data, files, logs, notify, report

COMMANDS: dict[str, click.Command] = {
    "logs": logs.main,
    "report": report.main,
    "notify": notify.main,
    "files": files.main,
    "data": data.main,
}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_examples(name: str) -> None:
    shown = CliRunner().invoke(COMMANDS[name], ["--help"])
    assert shown.exit_code == 0
    assert f"  thoughtgate-{name} " in shown.output
    assert "Examples:" in shown.output
    assert "--http HOST:PORT" in shown.output
    assert "--grpc HOST:PORT" in shown.output


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("logs", ["--root", "/no/such/place"], "no such directory"),
        ("logs", ["--http", "0.0.0.0:0"], "only loopback"),
        ("logs", ["--http", "example.org:80"], "only loopback"),
        ("files", ["--http", "8101"], "HOST:PORT"),
        ("files", ["--http", "127.0.0.1:70000"], "HOST:PORT"),
        ("logs", ["--grpc", "0.0.0.0:0"], "only loopback"),
        ("logs", ["--grpc", "127.0.0.1"], "--grpc wants HOST:PORT"),
        ("logs", ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"], "not both"),
        ("logs", ["--tls-cert", "a.pem", "--tls-key", "b.pem"], "go with --grpc"),
        ("logs", ["--grpc", "127.0.0.1:0", "--tls-cert", "a.pem"], "go together"),
        ("logs", ["--grpc", "127.0.0.1:0", "--tls-cert", "/no/a", "--tls-key", "/no/b"], "no such"),
        ("notify", ["--webhook", "team"], "NAME=URL"),
        ("notify", ["--webhook", "team=env:NO_SUCH_VARIABLE"], "is not set"),
        ("notify", ["--allow", "example.org"], "http://"),
        ("notify", ["--outbox", "/proc/none/x"], "name another file"),
        ("data", ["--out", "/proc/none"], "cannot be made"),
        ("report", ["--out", "/proc/none"], "cannot be made"),
    ],
)
def test_a_wrong_command_line_ends_with_2(name: str, arguments: list[str], said: str) -> None:
    shown = CliRunner().invoke(COMMANDS[name], arguments)
    assert shown.exit_code == 2
    assert said in " ".join(shown.output.split())
