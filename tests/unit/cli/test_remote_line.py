"""The line to a running gateway: what answers there may be anything."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from thoughtgate.cli.remote import RemoteServers
from thoughtgate.cli.remote_line import Line
from thoughtgate.cli.target import Target
from thoughtgate.core import errors
from thoughtgate.core.errors import (
    ConfigError,
    Conflict,
    GateError,
    UnknownTarget,
    UpstreamGarbled,
    UpstreamUnreachable,
)
from thoughtgate.surface.admin_values import Problem, Status

TOKEN = "t" * 43


class Odd(ThreadingHTTPServer):
    """A server that answers everything alike, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.answer = (status, body, headers)
        self.asked: list[tuple[str, str | None]] = []


class Answering(BaseHTTPRequestHandler):
    server: Odd

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))
        status, body, headers = self.server.answer
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def odd(status: int, body: bytes, **headers: str) -> Iterator[Odd]:
    with Odd(status, body, headers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(5)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "admin.token"
    file.write_text(TOKEN, encoding="ascii")
    file.chmod(0o600)
    return file


def line(server: Odd, token: Path) -> Line:
    return Line(Target(f"http://127.0.0.1:{server.server_address[1]}", token))


NO_API = [
    (200, b"<html>hello</html>"),
    (200, b"{}"),
    (200, b""),
    (200, b"[1]"),
    (404, b"Not Found"),
    (500, b'{"error":"x"}'),
    (204, b""),
]


@pytest.mark.parametrize(("status", "body"), NO_API)
def test_what_is_no_admin_api_is_said_to_be_none(token: Path, status: int, body: bytes) -> None:
    with odd(status, body) as server, pytest.raises(UpstreamGarbled) as caught:
        line(server, token).get(Status, "status")
    assert "no admin API" in caught.value.message
    assert TOKEN not in caught.value.message


def test_a_redirect_is_not_followed_with_the_token(token: Path) -> None:
    with odd(200, b"{}") as other:
        there = f"http://127.0.0.1:{other.server_address[1]}/"
        with odd(302, b"", Location=there) as server, pytest.raises(UpstreamGarbled):
            line(server, token).get(Status, "status")
        assert server.asked == [("/api/v1/status", f"Bearer {TOKEN}")]
        assert other.asked == []


@pytest.mark.parametrize("kind", [ConfigError, Conflict, UnknownTarget, GateError])
def test_an_error_there_is_the_same_error_here(token: Path, kind: type[GateError]) -> None:
    told = Problem(status=422, code=kind.code, title="x", detail="what and why", data={"a": [1]})
    with odd(422, msgspec.json.encode(told)) as server, pytest.raises(GateError) as caught:
        line(server, token).get(Status, "status")
    assert type(caught.value) is kind
    assert (caught.value.message, caught.value.data) == ("what and why", {"a": [1]})
    assert str(caught.value) == "what and why"


def test_every_error_can_come_over_the_line(token: Path) -> None:
    kinds = [one for one in vars(errors).values() if isinstance(one, type)]
    with odd(400, b"") as server:
        for kind in kinds:
            if issubclass(kind, GateError):
                told = Problem(status=400, code=kind.code, title="x", detail="d")
                server.answer = (400, msgspec.json.encode(told), {})
                with pytest.raises(kind):
                    line(server, token).get(Status, "status")


def test_an_error_of_a_newer_release_is_an_error(token: Path) -> None:
    told = Problem(status=400, code="unheard_of", title="x", detail="d")
    with odd(400, msgspec.json.encode(told)) as server, pytest.raises(GateError) as caught:
        line(server, token).get(Status, "status")
    assert caught.value.message == "d"


def test_a_name_stays_one_part_of_the_path(token: Path) -> None:
    with odd(200, b"{}") as server, pytest.raises(UpstreamGarbled):
        line(server, token).get(Status, "tools", "a/b", "../c?d#e é")
    assert server.asked[0][0] == "/api/v1/tools/a%2Fb/..%2Fc%3Fd%23e%20%C3%A9"


def test_nobody_there_is_said(token: Path) -> None:
    with odd(200, b"{}") as server:
        gone = line(server, token)
    with pytest.raises(UpstreamUnreachable) as caught:
        gone.get(Status, "status")
    assert "no gateway answers at http://127.0.0.1:" in caught.value.message


URLS = [
    "",
    "http://",
    "http://user:x@127.0.0.1",
    "ftp://127.0.0.1",
    "http://127.0.0.1:x",
    "unix:/a",
]


@pytest.mark.parametrize("url", ["https://a..b", f"https://{'x' * 70}.example", "https://\u2024"])
def test_a_host_that_no_name_can_be_is_said_to_be_silent(token: Path, url: str) -> None:
    with pytest.raises((ConfigError, UpstreamUnreachable)):
        Line(Target(url, token)).get(Status, "status")


@pytest.mark.parametrize("url", URLS)
def test_what_is_no_url_is_refused(token: Path, url: str) -> None:
    with pytest.raises(ConfigError):
        Line(Target(url, token))


OPEN = ["http://10.0.0.1", "http://tools.example", "http://localhost.example", "10.0.0.1:80"]


@pytest.mark.parametrize("url", OPEN)
def test_the_token_does_not_leave_this_machine_in_the_clear(token: Path, url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Line(Target(url, token))
    assert "use https" in caught.value.message


@pytest.mark.parametrize(
    "url", ["http://[::1]:1", "localhost:1", "https://tools.example", "127.9.9.9:1"]
)
def test_this_machine_and_https_are_fine(token: Path, url: str) -> None:
    Line(Target(url, token))


def test_a_list_that_leads_back_to_itself_is_given_up(token: Path) -> None:
    with odd(200, b'{"servers":[],"next":"again"}') as server:
        servers = RemoteServers(Line(Target(f"http://127.0.0.1:{server.server_port}", token)))
        with pytest.raises(UpstreamGarbled, match="does not end"):
            servers.listed(check=False, say=lambda _: None)
    assert len(server.asked) == 2
