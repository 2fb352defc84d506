"""The command line as real processes: signals, terminals, shells, and what ends how."""

import asyncio
import os
import pty
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.support.gate import START, Home, command, gate, home, python_server, starting
from tests.support.waiting import until, within
from thoughtgate.cli.exits import Exit
from thoughtgate.testing.fake_http import fake_http
from thoughtgate.testing.fake_server import FakeServer

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return home(tmp_path)


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_ctrl_c_cancels_the_call_in_the_server(tmp_path: Path, era: str) -> None:
    server = FakeServer()
    async with fake_http(server) as endpoint:
        place = home(tmp_path, f'[servers.far]\nurl = "{endpoint.url}"\nera = "{era}"\n')
        process = await asyncio.create_subprocess_exec(
            *command("tool", "call", "far__hang"),
            env=place.environment,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            await until(lambda: calls(server), START)
            assert server.running
            process.send_signal(signal.SIGINT)
            _, said = await within(process.communicate(), START)
            await until(lambda: not server.running)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert process.returncode == Exit.INTERRUPTED
    assert said.decode().endswith("interrupted\n")
    assert [row["outcome"] for row in place.audit_rows()] == ["cancelled"]


def calls(server: FakeServer) -> list[object]:
    return [message for message in server.seen if message.get("method") == "tools/call"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda n: n.name)
def test_a_gateway_that_is_told_to_stop_ends_well(place: Home, number: signal.Signals) -> None:
    with gate(place) as running:
        running.process.send_signal(number)
        assert running.process.wait(START) == Exit.OK
    assert "Traceback" not in running.words


def test_a_gateway_that_still_waits_for_a_server_stops_at_once(tmp_path: Path) -> None:
    deaf = python_server("deaf", "thoughtgate.testing.fake_server", "--deaf")
    with starting(home(tmp_path, deaf), "--log-level", "info") as running:
        running.hear("server deaf: starting")
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(START / 2) == Exit.OK
    assert "listening" not in running.words
    assert "Traceback" not in running.words


def test_a_port_that_is_taken_is_said_to_be(place: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = place.run("serve", "--port", port)
    assert refused.returncode == Exit.USAGE
    assert f"cannot listen on 127.0.0.1:{port}" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_standard_output_of_a_stdio_gateway_is_protocol_alone(place: Home) -> None:
    answered = place.run(
        "serve", "--stdio", "--log-level", "debug",
        given='{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"no"}\n',
    )  # fmt: skip
    assert answered.returncode == Exit.OK
    lines = answered.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith('{"jsonrpc":"2.0",') for line in lines)


def test_output_into_a_closed_pipe_ends_quietly(place: Home) -> None:
    with subprocess.Popen(
        command("config", "schema"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=place.environment,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, said = process.communicate(timeout=START)
    assert said == b""


@contextmanager
def terminal(place: Home, *arguments: str) -> Iterator[str]:
    """Run a command on a terminal of its own and give what appeared there."""
    ours, theirs = pty.openpty()
    with closing(os.fdopen(ours, "rb", buffering=0)) as screen:
        process = subprocess.Popen(command(*arguments), stdout=theirs, env=place.environment)
        os.close(theirs)
        shown = b""
        try:
            while data := screen.read(4096):
                shown += data
        except OSError:  # Linux's way to say that the other end is closed
            pass
        assert process.wait(START) == 0
        yield shown.decode()


def test_a_terminal_shows_colours_unless_told_not_to(tmp_path: Path) -> None:
    with terminal(home(tmp_path), "domain", "list") as shown:
        assert COLOUR.search(shown)
    with terminal(home(tmp_path, NO_COLOR="1"), "domain", "list") as shown:
        assert not COLOUR.search(shown)
        assert shown.startswith("NAME")


def test_a_shell_completes_commands(tmp_path: Path) -> None:
    asked = {"_THOUGHTGATE_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
    done = home(tmp_path, **asked, COMP_WORDS="thoughtgate ser").run()
    assert done.returncode == 0
    assert done.stdout.split() == ["plain,serve", "plain,server"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(place: Home, shell: str) -> None:
    script = place.invoke("completion", shell)
    assert script.exit_code == 0
    assert f"_THOUGHTGATE_COMPLETE={shell}_complete" in script.stdout


def test_the_script_for_bash_is_one(place: Home) -> None:
    script = place.invoke("completion", "bash").stdout
    subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=START)
