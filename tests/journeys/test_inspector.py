"""The Inspector's command line through a real gateway, over HTTP and over stdio."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.gate import START, Gate, Home, command, gate, home, python_server
from tests.support.peers import environment, inspector

SETTINGS = python_server("peer", "tests.support.sdk_server") + (
    '[domains.few]\nexclude = ["peer/wait"]\n'
)
ERAS = ("legacy", "modern")
FAILED = 5
"""The Inspector's exit code for a tool that failed or is not there."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return home(tmp_path_factory.mktemp("home"), SETTINGS)


@pytest.fixture(scope="module")
def gateway(place: Home) -> Iterator[Gate]:
    with gate(place) as running:
        yield running


def inspect(place: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        inspector("--format", "json", "--quiet", *arguments),
        capture_output=True,
        text=True,
        env={**environment(), **place.environment, "PATH": environment()["PATH"]},
        timeout=START,
        check=False,
    )


def over_http(gateway: Gate, era: str, *arguments: str, domain: str = "") -> Any:
    url = ("--transport", "http", "--server-url", gateway.url(domain))
    return inspect(gateway.home, *url, "--protocol-era", era, *arguments)


def call(tool: str, **arguments: object) -> tuple[str, ...]:
    return (
        *("--method", "tools/call", "--tool-name", tool),
        *("--tool-args-json", json.dumps(arguments)),
    )


def result_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)["result"]
    return result


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_listed_and_their_schemas_portable(gateway: Gate, era: str) -> None:
    tools = result_of(over_http(gateway, era, "--method", "tools/list", "--strict"))["tools"]
    assert {"peer__echo", "peer__sum"} <= {tool["name"] for tool in tools}


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_is_called(gateway: Gate, era: str) -> None:
    result = result_of(over_http(gateway, era, *call("peer__sum", a=2, b=40)))
    assert result["structuredContent"] == {"sum": 42}


def test_broken_arguments_come_back_as_a_tools_error_with_problems(gateway: Gate) -> None:
    done = over_http(gateway, "modern", *call("peer__sum", a=[1], b=2))
    assert done.returncode == FAILED
    result = json.loads(done.stdout)["result"]
    assert result["isError"]
    assert [problem["pointer"] for problem in result["structuredContent"]["problems"]] == ["/a"]


def test_a_hidden_tool_and_a_missing_one_look_the_same(gateway: Gate) -> None:
    hidden = over_http(gateway, "modern", *call("peer__wait"), domain="few")
    missing = over_http(gateway, "modern", *call("peer__nope"), domain="few")
    assert hidden.returncode == missing.returncode == FAILED
    assert hidden.stdout == missing.stdout == ""
    assert hidden.stderr.replace("peer__wait", "peer__nope") == missing.stderr


def test_a_gateway_on_standard_input_and_output_is_called(place: Home) -> None:
    # the Inspector gives its child none of its own variables
    given = [part for pair in place.variables.items() for part in ("-e", "=".join(pair))]
    options = ("--transport", "stdio", *call("peer__echo", x=[1, None]))
    done = inspect(place, *options, *given, "--", *command("serve", "--stdio"))
    assert result_of(done)["structuredContent"] == {"x": [1, None]}
