"""gRPC servers in the registry: they come back as they were, and their metadata is a secret."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.registries import open_in
from thoughtgate.core.calls import LOCAL
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import GrpcTransport, HttpTransport, Server, Streaming, Tls

SECRET = "Bearer hunter2-hunter2"
FULL = GrpcTransport(
    url="grpcs://shop.example:8443",
    headers={"authorization": SECRET, "x-blob-bin": "AAEC"},
    reflect=("shop.v1.Orders", "*"),
    descriptor_set="/srv/shop.binpb",
    streaming=Streaming.LAST,
    bidi=True,
    tls=Tls(ca="/srv/ca.pem", cert="/srv/me.pem", key="/srv/me.key", name="orders"),
)
BARE = GrpcTransport(url="grpc://127.0.0.1:50051")


@pytest.mark.parametrize("transport", [FULL, BARE])
def test_a_grpc_server_comes_back_as_it_was_put(tmp_path: Path, transport: GrpcTransport) -> None:
    with closing(open_in(tmp_path)) as registry:
        registry.put_server(Server(name="shop", transport=transport), LOCAL)
    with closing(open_in(tmp_path)) as registry:
        (server,) = registry.servers()
    assert server.transport == transport


def test_metadata_is_stored_encrypted_and_everything_else_may_be_shown(tmp_path: Path) -> None:
    with closing(open_in(tmp_path)) as registry:
        registry.put_server(Server(name="shop", transport=FULL), LOCAL)
        (shown,) = registry.servers_without_secrets()
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"shop.v1.Orders" in stored
    assert SECRET.encode() not in stored
    assert isinstance(shown.transport, GrpcTransport)
    assert shown.transport.headers == {"authorization": "", "x-blob-bin": ""}
    assert shown.transport.tls == FULL.tls


def test_rows_of_before_grpc_are_read_as_they_were(tmp_path: Path) -> None:
    web = HttpTransport(url="https://a.example/mcp", headers={"A": "b"})
    with closing(open_in(tmp_path)) as registry:
        registry.put_server(Server(name="web", transport=web), LOCAL)
    (file,) = tmp_path.rglob("*.db")
    with closing(sqlite3.connect(file)) as database:
        (row,) = database.execute("select transport from servers").fetchone()
    assert row == b'{"kind":"http","url":"https://a.example/mcp"}'
    with closing(open_in(tmp_path)) as registry:
        assert registry.servers()[0].transport == web


@pytest.mark.parametrize("url", ["http://h/", "grpc://", "grpc://[::1", "h:50051"])
def test_a_url_of_no_grpc_server_is_refused(tmp_path: Path, url: str) -> None:
    with closing(open_in(tmp_path)) as registry, pytest.raises(ConfigError):
        registry.put_server(Server(name="shop", transport=GrpcTransport(url=url)), LOCAL)
