"""`thoughtgate doctor` as people run it: a healthy place, and one with faults."""

import json
import socket
import sys
from pathlib import Path

import pytest

from tests.support.gate import Home, gate, home, python_server, server_table
from thoughtgate.testing.otlp import OtlpReceiver


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.fixture
def well(tmp_path: Path) -> Home:
    files = python_server("files", "thoughtgate_servers.files", "--root", str(tmp_path))
    return home(tmp_path, f"port = {free_port()}\n{files}")


def test_a_healthy_gateway_has_no_finding_before_it_runs_while_it_runs_and_after(
    well: Home,
) -> None:
    with OtlpReceiver() as receiver:
        place = Home(
            folder=well.folder,
            extra={**well.extra, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url},
        )
        for _ in range(2):
            before = place.run("doctor", "--json")
            assert json.loads(before.stdout)["ok"] is True
            assert _findings(before.stdout) == []
            assert before.returncode == 0
            with gate(place):
                during = place.run("doctor", "--json")
                assert (during.returncode, _findings(during.stdout)) == (0, [])
    lines = well.invoke("doctor").stdout.splitlines()
    assert all(line.startswith("ok ") for line in lines), lines
    assert any("server files: 4 tools" in line for line in lines)
    assert well.invoke("doctor", "--fix-hints").stdout == "nothing to mend\n"


def test_a_gateway_on_the_port_of_the_configuration_is_no_problem(well: Home) -> None:
    port = free_port()
    well.config.write_text(f"[gateway]\nport = {port}\n", encoding="utf-8")
    with gate(well, "--port", str(port)):
        done = well.run("doctor", "port")
    assert done.returncode == 0, done.stdout
    assert f"a gateway listens on 127.0.0.1:{port}" in done.stdout


def test_a_problem_ends_with_one_and_a_warning_with_none(tmp_path: Path) -> None:
    place = home(tmp_path, f"port = 0\n{server_table('gone', 'no-such-command')}")
    done = place.invoke("doctor", "gone")
    assert done.exit_code == 1
    assert "[command_missing]" in done.stdout
    assert "why: " in done.stdout
    assert "mend: install no-such-command" in done.stdout
    warned = Home(folder=tmp_path, extra={"OTEL_TRACES_EXPORTER": "jaeger"})
    assert warned.invoke("doctor", "traces").exit_code == 0
    hints = place.invoke("doctor", "--fix-hints", "gone").stdout
    assert hints.startswith("server gone: install no-such-command")


def test_what_a_server_prints_does_not_reach_the_terminal_as_it_is(tmp_path: Path) -> None:
    program = "import sys; sys.stderr.write('\\x1b[31mred \\u202e'); sys.exit(2)"
    place = home(tmp_path, f"port = 0\n{server_table('rude', sys.executable, '-c', program)}")
    done = place.invoke("doctor", "rude")
    assert done.exit_code == 1
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout


def test_doctor_works_where_the_configuration_does_not(tmp_path: Path) -> None:
    place = home(tmp_path, "port = 'x'\n")
    done = place.invoke("doctor")
    assert done.exit_code == 1
    assert "gateway.port" in done.stdout
    assert "versions: Python" in done.stdout


def _findings(text: str) -> list[object]:
    return [finding for check in json.loads(text)["checks"] for finding in check["findings"]]
