"""gRPC servers in a file to import: under our own keys, or refused with what is wrong."""

import json

import pytest

from tests.support.imports import only_one, problems, read
from thoughtgate.core.servers import GrpcTransport, Streaming, Tls

URL = "grpcs://shop.example:8443"


def file(**table: object) -> str:
    return json.dumps({"mcpServers": {"s": table}})


def test_a_grpc_server_is_known_by_its_url_and_its_files_by_the_project() -> None:
    entry = only_one(
        file(
            url=URL,
            headers={"Authorization": "Bearer ${TOKEN}"},
            reflect=["shop.v1.Orders"],
            descriptor_set="shop.binpb",
            streaming="last",
            bidi=True,
            tls_ca="~/ca.pem",
        )
    )
    assert entry.found.transport == GrpcTransport(
        url=URL,
        headers={"authorization": "Bearer t0k-hush"},
        reflect=("shop.v1.Orders",),
        descriptor_set="/people/ada/atlas/shop.binpb",
        streaming=Streaming.LAST,
        bidi=True,
        tls=Tls(ca="/people/ada/ca.pem"),
    )
    assert only_one(file(type="grpc", url=URL)).found.transport == GrpcTransport(url=URL)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"url": "grpc://h"}, "/mcpServers/s/url: the URL names no port"),
        ({"serverUrl": "grpc://h"}, "/mcpServers/s/serverUrl: the URL names no port"),
        ({"url": URL, "streaming": "all"}, "/mcpServers/s/streaming: must be array or last"),
        ({"url": URL, "bidi": True}, "/mcpServers/s/bidi: is for reflected services"),
        ({"url": URL, "headers": {"te": "1"}}, "/mcpServers/s/headers/te: is set by the gateway"),
        ({"type": "grpc", "command": "x"}, "/mcpServers/s/type: grpc needs a URL"),
        ({"type": "grpc", "url": "http://h/"}, "/mcpServers/s/url: a gRPC server's URL is"),
    ],
)
def test_what_does_not_fit_is_told_at_its_key(table: dict[str, object], said: str) -> None:
    assert any(said in problem for problem in problems(file(**table)))


@pytest.mark.parametrize("table", [{"command": "x"}, {"url": "https://h.example/mcp"}])
def test_keys_of_grpc_mean_nothing_to_another_server(table: dict[str, str]) -> None:
    (note,) = read(file(**table, reflect=["*"])).notes
    assert str(note).endswith("/reflect: is for a gRPC server; left out")
