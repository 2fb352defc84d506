"""`server add` of a gRPC server: its URL, its options, and what is said when they do not fit."""

from pathlib import Path

import pytest

from tests.support.gate import Home, home
from thoughtgate.app.stores import open_registry
from thoughtgate.config.files import load
from thoughtgate.core.servers import GrpcTransport, Streaming, Tls, Transport

PLAIN = "grpc://127.0.0.1:50051"
SECURE = "grpcs://orders.shop.example"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.chdir(tmp_path)
    for name in ("ca.pem", "me.pem", "me.key", "shop.binpb"):
        (tmp_path / name).write_bytes(b"")
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
        ((PLAIN,), "127-0-0-1-50051", GrpcTransport(url=PLAIN)),
        ((SECURE,), "orders-shop", GrpcTransport(url=SECURE)),
        (("data", PLAIN), "data", GrpcTransport(url=PLAIN)),
        (("data", "--url", PLAIN), "data", GrpcTransport(url=PLAIN)),
        (("data", PLAIN, "--sharing", "shared"), "data", GrpcTransport(url=PLAIN)),
        (
            ("data", PLAIN, "--header", "Authorization: Bearer x", "--header", "b=2"),
            "data",
            GrpcTransport(url=PLAIN, headers={"authorization": "Bearer x", "b": "2"}),
        ),
        (
            ("s", PLAIN, "--reflect", "a.B", "--reflect", "a.C/D", "--streaming", "last", "--bidi"),
            "s",
            GrpcTransport(url=PLAIN, reflect=("a.B", "a.C/D"), streaming=Streaming.LAST, bidi=True),
        ),
    ],
)
def test_a_grpc_url_is_registered_however_it_is_given(
    place: Home, arguments: tuple[str, ...], name: str, transport: Transport
) -> None:
    result = place.invoke("server", "add", *arguments)
    assert result.exit_code == 0, result.output
    assert transports(place) == {name: transport}
    assert f"server {name} registered" in result.stderr


def test_files_are_found_from_wherever_a_gateway_is_started(place: Home, tmp_path: Path) -> None:
    files = ("--ca", "ca.pem", "--cert", "./me.pem", "--key", str(tmp_path / "me.key"))
    given = ("--reflect", "*", "--descriptor-set", "x/../shop.binpb", "--server-name", "orders")
    result = place.invoke("server", "add", "s", SECURE, *files, *given)
    assert result.exit_code == 0, result.output
    assert transports(place)["s"] == GrpcTransport(
        url=SECURE,
        reflect=("*",),
        descriptor_set=str(tmp_path / "shop.binpb"),
        tls=Tls(
            ca=str(tmp_path / "ca.pem"),
            cert=str(tmp_path / "me.pem"),
            key=str(tmp_path / "me.key"),
            name="orders",
        ),
    )
    shown = place.said("server", "show", "s")
    assert shown["transport"] == SECURE
    assert (shown["reflect"], shown["tls_ca"]) == (["*"], str(tmp_path / "ca.pem"))
    assert "reflect" not in _shown_of_a_url(place)


def _shown_of_a_url(place: Home) -> dict[str, object]:
    assert place.invoke("server", "add", "web", "https://tools.example/mcp").exit_code == 0
    shown: dict[str, object] = place.said("server", "show", "web")
    return shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("grpc://localhost",), "names no port"),
        (("x", "grpc://localhost:1/pkg.Service"), "--reflect"),
        (("x", PLAIN, "--ca", "ca.pem"), "--ca is for TLS, and grpc:// has none; write grpcs://"),
        (("x", SECURE, "--cert", "me.pem"), "--key is missing"),
        (("x", PLAIN, "--descriptor-set", "shop.binpb"), "--descriptor-set needs --reflect"),
        (("x", PLAIN, "--bidi"), "--bidi is for reflected services"),
        (("x", PLAIN, "--streaming", "last"), "--streaming is for reflected services"),
        (("x", PLAIN, "--streaming", "all"), "'array', 'last'"),
        (("x", PLAIN, "--reflect", "a b"), "a b is no service"),
        (("x", PLAIN, "--era", "handshake"), "--era is for MCP"),
        (("x", PLAIN, "--sse"), "--sse is for HTTP"),
        (("x", PLAIN, "--sharing", "session"), "--sharing is for MCP"),
        (("x", PLAIN, "--env", "A=1"), "--env is for a command"),
        (("x", PLAIN, "--cwd", "/"), "--cwd is for a command"),
        (("x", PLAIN, "--header", "te=1"), "--header te: is set by the gateway"),
        (("x", SECURE, "--ca", "no.pem"), "there is no file"),
        (("x", "localhost:50051", "--reflect", "*"), "localhost:50051 is no URL"),
        (("x", "https://h.example/mcp", "--reflect", "*"), "--reflect is for a gRPC server"),
        (("x", "https://h.example/mcp", "--ca", "ca.pem"), "--ca is for a gRPC server"),
        (("x", "--bidi", "--", "srv"), "--bidi is for a gRPC server"),
        (("grpcz://h:1",), "a URL begins with http://, https://, grpc:// or grpcs://"),
        (("x", PLAIN, "--", "srv"), "not both"),
    ],
)
def test_what_does_not_fit_is_explained(place: Home, arguments: tuple[str, ...], said: str) -> None:
    result = place.invoke("server", "add", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert transports(place) == {}


def test_a_grpc_server_is_listed_by_its_url_and_says_that_it_has_no_login(place: Home) -> None:
    assert place.invoke("server", "add", "data", PLAIN).exit_code == 0
    assert PLAIN in place.invoke("server", "list").stdout
    refused = place.invoke("server", "login", "data")
    assert refused.exit_code != 0
    assert "speaks gRPC, which has no OAuth login" in refused.stderr
    assert "there was no login" in place.invoke("server", "logout", "data").stderr
