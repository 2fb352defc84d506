"""`server add`: by a command or by a URL, in every order that people write it."""

import json
from pathlib import Path

import pytest

from tests.support.gate import Home, home
from thoughtgate.app.stores import open_registry
from thoughtgate.config.files import load
from thoughtgate.core.servers import HttpTransport, StdioTransport, Transport

URL = "https://tools.example/mcp"


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return home(tmp_path)


def transports(place: Home) -> dict[str, Transport]:
    registry = open_registry(load(place.config, place.environment))
    try:
        return {server.name: server.transport for server in registry.servers()}
    finally:
        registry.close()


@pytest.mark.parametrize(
    ("arguments", "name", "transport"),
    [
        ((URL,), "tools", HttpTransport(url=URL)),
        (("web", URL), "web", HttpTransport(url=URL)),
        (("web", "--", URL), "web", HttpTransport(url=URL)),
        (("web", "--url", URL), "web", HttpTransport(url=URL)),
        (("--url", URL, "web"), "web", HttpTransport(url=URL)),
        ((URL, "--header", "A=1"), "tools", HttpTransport(url=URL, headers={"A": "1"})),
        (("--header", "A: b=c", "web", URL), "web", HttpTransport(url=URL, headers={"A": "b=c"})),
        ((URL, "--header", "A=b: c"), "tools", HttpTransport(url=URL, headers={"A": "b: c"})),
        ((URL, "--header", "A:"), "tools", HttpTransport(url=URL, headers={"A": ""})),
        (
            (URL, "--header", "Authorization: Bearer x", "--header", "B=2"),
            "tools",
            HttpTransport(url=URL, headers={"Authorization": "Bearer x", "B": "2"}),
        ),
        (("old", f"{URL}/sse", "--sse"), "old", HttpTransport(url=f"{URL}/sse", sse=True)),
    ],
)
def test_a_url_is_registered_however_it_is_given(
    place: Home, arguments: tuple[str, ...], name: str, transport: Transport
) -> None:
    result = place.invoke("server", "add", *arguments)
    assert result.exit_code == 0, result.output
    assert transports(place) == {name: transport}
    assert f"server {name} registered" in result.stderr


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        (("--", "srv", "--port", "1"), ("srv", "--port", "1")),
        (("srv",), ("srv",)),
        (("--", "mcp-remote", URL), ("mcp-remote", URL)),
        (("--", "image:1"), ("image:1",)),
        (("./bin/of:1",), ("./bin/of:1",)),
    ],
)
def test_a_command_is_registered_as_it_is(
    place: Home, words: tuple[str, ...], argv: tuple[str, ...]
) -> None:
    assert place.invoke("server", "add", "x", "--env", "A=b: c", *words).exit_code == 0
    transport = transports(place)["x"]
    assert isinstance(transport, StdioTransport)
    assert (transport.argv, transport.env) == (argv, {"A": "b: c"})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x",), "give a command after `--`, or a URL; not both"),
        (("x", "--url", URL, "--", "srv"), "not both"),
        ((URL, "--url", URL), "is no server name"),
        ((URL, "--", "srv"), "is no server name"),
        ((URL, "--env", "A=1"), "--env is for a command"),
        (("x", "--header", "A=1", "--", "srv"), "--header is for a URL"),
        (("x", "--sse", "--", "srv"), "--sse is for a URL"),
        ((URL, "--header", "A"), "--header takes NAME=VALUE"),
        ((URL, "--header", ": x"), "--header takes NAME=VALUE"),
        (("x", "--env", "A: b", "--", "srv"), "--env takes NAME=VALUE"),
        (("https:///mcp",), "the URL names no host; give a name"),
        (("thoughtgate", URL), "the name thoughtgate is the gateway's own"),
        ((), "give a NAME and a command after `--`, or a URL"),
        (("ftp://tools.example/mcp",), "a URL begins with http://, https://, grpc"),
        (("x", "ftp://tools.example/mcp"), "a URL begins with http://, https://, grpc"),
        (("x", URL, "--", "srv"), "not both"),
        (("--", "srv", "--port", "1"), "a NAME stands before `--`"),
        (("x", "srv", "--port", "1"), "options of the server's own command come after `--`"),
        (("x", "srv", "--trustd"), "Did you mean '--trusted'?"),
        (("x", "127.0.0.1:8300"), "127.0.0.1:8300 is no URL: one begins with http://"),
        (("127.0.0.1:8300",), "127.0.0.1:8300 is no URL: one begins with http://"),
        (("x", "localhost:8300", "--reflect", "*"), "localhost:8300 is no URL"),
        (("x", "grpc:127.0.0.1:8300"), "grpc:127.0.0.1:8300 is no URL"),
        (("x", "[::1]:8300/mcp"), "a command of that name stands after `--`"),
    ],
)
def test_what_means_nothing_is_refused(place: Home, arguments: tuple[str, ...], said: str) -> None:
    result = place.invoke("server", "add", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert transports(place) == {}


def test_a_program_is_told_what_was_registered(place: Home) -> None:
    result = place.invoke("server", "add", "x", "--json", "--", "srv", "--json")
    assert json.loads(result.stdout) == {"server": "x", "registered": True}
    assert result.stderr == ""
    assert transports(place) == {"x": StdioTransport(argv=("srv", "--json"), cwd=str(Path.cwd()))}


def test_a_url_of_the_older_transport_s_look_is_pointed_out(place: Home) -> None:
    result = place.invoke("server", "add", "https://tools.example/v1/sse?k=1")
    assert result.exit_code == 0
    assert "add --sse if it speaks the older HTTP+SSE transport" in result.stderr
    assert "add --sse" not in place.invoke("server", "add", "b", URL).stderr


def test_who_shares_and_how_long_it_may_rest_are_kept(place: Home) -> None:
    done = place.invoke("server", "add", "web", URL, "--sharing", "principal", "--idle-timeout", 9)
    assert done.exit_code == 0, done.output
    shown = place.said("server", "show", "web")
    assert (shown["sharing"], shown["idle_timeout"]) == ("principal", 9.0)
    assert place.invoke("server", "add", "b", URL, "--sharing", "nobody").exit_code == 2
    assert place.invoke("server", "add", "b", URL, "--idle-timeout", "-1").exit_code == 2
