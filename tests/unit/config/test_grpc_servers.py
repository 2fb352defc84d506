"""gRPC servers in a configuration: what becomes of them, and what cannot stand together."""

from pathlib import Path

import pytest

from thoughtgate.config.files import load, parse, survey
from thoughtgate.config.values import servers_of
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import GrpcTransport, Streaming, Tls
from thoughtgate.protos.metadata import MAX_BYTES
from thoughtgate.protos.urls import Address, address_of

PLAIN = "url = 'grpc://127.0.0.1:50051'"
SECURE = "url = 'grpcs://tools.example'"


def refusal(lines: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(f"[servers.x]\n{lines}", "gate.toml", {})
    return caught.value.message


def test_every_setting_of_a_grpc_server_becomes_its_transport(tmp_path: Path) -> None:
    file = tmp_path / "gate.toml"
    file.write_text(
        """
        [servers.shop]
        url = "grpcs://shop.example:8443"
        headers = { Authorization = "Bearer ${TOKEN}", "X-Blob-bin" = "AAEC" }
        reflect = ["shop.v1.Orders", "shop.v1.Stock/Count"]
        descriptor_set = "shop.binpb"
        streaming = "last"
        bidi = true
        sharing = "shared"
        tls_ca = "/etc/ca.pem"
        tls_cert = "${CERTS}/me.pem"
        tls_key = "../me.key"
        tls_name = "orders.internal"
        """,
        encoding="utf-8",
    )
    settings = load(file, {"TOKEN": "secret", "CERTS": "/certs"}).settings
    (shop,) = servers_of(settings)
    assert shop.transport == GrpcTransport(
        url="grpcs://shop.example:8443",
        headers={"authorization": "Bearer secret", "x-blob-bin": "AAEC"},
        reflect=("shop.v1.Orders", "shop.v1.Stock/Count"),
        descriptor_set=str(tmp_path / "shop.binpb"),
        streaming=Streaming.LAST,
        bidi=True,
        tls=Tls(
            ca="/etc/ca.pem",
            cert="/certs/me.pem",
            key=str(tmp_path.parent / "me.key"),
            name="orders.internal",
        ),
    )


def test_a_bare_url_is_a_server_of_our_own_protocol() -> None:
    (server,) = servers_of(parse(f"[servers.data]\n{PLAIN}", "gate.toml", {}))
    assert server.transport == GrpcTransport(url="grpc://127.0.0.1:50051")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("grpc://localhost:1", Address(host="localhost", port=1, secure=False)),
        ("grpc://[::1]:50051/", Address(host="::1", port=50051, secure=False)),
        ("grpcs://tools.example", Address(host="tools.example", port=443, secure=True)),
        ("grpcs://10.0.0.1:65535", Address(host="10.0.0.1", port=65535, secure=True)),
    ],
)
def test_a_url_names_host_and_port(url: str, address: Address) -> None:
    assert address_of(url) == address
    assert address_of("grpc://[::1]:50051").shown == "[::1]:50051"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("grpc://localhost", "names no port, and gRPC has no usual one: grpc://localhost:PORT"),
        ("grpc://:50051", "grpc://HOST:PORT"),
        ("grpc://h:0", "must be 1 to 65535"),
        ("grpc://h:99999", "malformed"),
        ("grpc://h:port", "malformed"),
        ("grpc://[::1:5", "malformed"),
        ("grpc://me:pw@h:1", "give a header instead"),
        ("grpc://h:1/pkg.Service", "reflect"),
        ("grpc://h:1?x=1", "ends after the port"),
        ("grpc://a b:1", "no name and no address"),
        ("grpc://unix%3a:1", "no name and no address"),
    ],
)
def test_a_url_that_leads_nowhere_is_explained(url: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        address_of(url)
    assert said in caught.value.message
    assert "pw" not in caught.value.message
    assert "servers.x.url" in refusal(f"url = '{url}'")


@pytest.mark.parametrize(
    ("lines", "key", "said"),
    [
        (f"{PLAIN}\ntls_ca = 'a'", "tls_ca", "write grpcs://"),
        (f"{PLAIN}\ntls_name = 'a'", "tls_name", "write grpcs://"),
        (f"{SECURE}\ntls_cert = 'a'", "tls_key", "come together"),
        (f"{SECURE}\ntls_key = 'a'", "tls_cert", "come together"),
        (f"{PLAIN}\ndescriptor_set = 'a'", "descriptor_set", "needs reflect"),
        (f"{PLAIN}\nstreaming = 'last'", "streaming", "reflected services"),
        (f"{PLAIN}\nbidi = true", "bidi", "reflected services"),
        (f"{PLAIN}\nreflect = ['a b']", "reflect", "no service"),
        (f"{PLAIN}\nreflect = ['pkg.Svc/a/b']", "reflect", "package.Service/Method"),
        (f"{PLAIN}\nreflect = ['']", "reflect", "no service"),
        (f"{PLAIN}\nera = 'handshake'", "era", "no protocol era"),
        (f"{PLAIN}\nsse = true", "sse", "for HTTP"),
        (f"{PLAIN}\nsharing = 'session'", "sharing", "everybody shares"),
        (f"{PLAIN}\nenv = {{A = 'b'}}", "env", "headers"),
        (f"{PLAIN}\ncwd = '/'", "cwd", "no folder"),
        (f"{PLAIN}\nheaders = {{'a b' = 'c'}}", "headers.a b", "no name of metadata"),
        (f"{PLAIN}\nheaders = {{'grpc-timeout' = '1'}}", "headers.grpc-timeout", "leave it out"),
        (f"{PLAIN}\nheaders = {{TraceParent = '1'}}", "headers.TraceParent", "leave it out"),
        (f"{PLAIN}\nheaders = {{A = 'b', a = 'c'}}", "headers.a", "twice"),
        (f"{PLAIN}\nheaders = {{a = 'é'}}", "headers.a", "cannot carry"),
        (f'{PLAIN}\nheaders = {{a = "b\\nc"}}', "headers.a", "cannot carry"),
        (f"{PLAIN}\nheaders = {{a = ''}}", "headers.a", "cannot carry"),
        (f"{PLAIN}\nheaders = {{a-bin = '*'}}", "headers.a-bin", "base64"),
        (f"{PLAIN}\nheaders = {{a-bin = 'AAAAA'}}", "headers.a-bin", "base64"),
        (f"{PLAIN}\nheaders = {{Trailer = 'b'}}", "headers.Trailer", "leave it out"),
        (f"{PLAIN}\nheaders = {{a = '{'b' * MAX_BYTES}'}}", "headers.a", "8192 bytes"),
        ("url = 'https://h/'\nreflect = ['*']", "reflect", "is for a gRPC server"),
        ("url = 'https://h/'\ntls_ca = 'a'", "tls_ca", "is for a gRPC server"),
        ("command = ['c']\nbidi = true", "bidi", "is for a gRPC server"),
        ("url = 'grpcz://h:1'", "url", "grpc:// or grpcs://"),
    ],
)
def test_what_does_not_fit_together_is_refused_at_its_key(lines: str, key: str, said: str) -> None:
    message = refusal(lines)
    assert f"servers.x.{key}: " in message
    assert said in message


def test_every_misfit_is_told_at_once_and_the_other_servers_stay(tmp_path: Path) -> None:
    file = tmp_path / "gate.toml"
    wrong = f"[servers.x]\n{PLAIN}\nera = 'handshake'\ntls_ca = 'a'\nbidi = true\n"
    file.write_text(f"{wrong}[servers.good]\n{SECURE}\n", encoding="utf-8")
    surveyed = survey(file, {})
    keys = {fault.key for fault in surveyed.faults}
    assert keys == {"servers.x.era", "servers.x.tls_ca", "servers.x.bidi"}
    assert [server.name for server in servers_of(surveyed.loaded.settings)] == ["good"]


def test_a_file_whose_variable_is_not_set_is_a_fault() -> None:
    assert "variable CERTS is not set" in refusal(f"{SECURE}\ntls_ca = '${{CERTS}}/ca.pem'")
