"""Calls to gRPC servers as traces and audit rows tell of them."""

from dataclasses import replace

from tests.support.native_peer import grpc_server
from thoughtgate.calls.outcome import failed
from thoughtgate.calls.sent import peer
from thoughtgate.core.errors import UpstreamFailed, UpstreamRefused
from thoughtgate.core.servers import GrpcTransport


def test_a_span_says_where_a_native_server_is_and_what_is_called_there() -> None:
    assert peer(grpc_server("grpc://tools.example:50051")) == {
        "rpc.system.name": "grpc",
        "rpc.method": "thoughtgate.tools.v1.ToolServer/CallTool",
        "network.transport": "tcp",
        "server.address": "tools.example",
        "server.port": 50051,
    }


def test_a_reflected_server_has_methods_of_its_own() -> None:
    transport = GrpcTransport(url="grpcs://tools.example", reflect=("*",))
    server = replace(grpc_server("grpc://x:1"), transport=transport)
    attributes = peer(server)
    assert "rpc.method" not in attributes
    assert attributes["server.port"] == 443


def test_a_row_has_the_status_but_not_the_server_s_words() -> None:
    data = {"grpcStatus": "FAILED_PRECONDITION"}
    outcome = failed(UpstreamRefused(message="server x: the value 42 is s3cret", data=data))
    assert outcome.code == outcome.error_type == "upstream_refused"
    assert outcome.rpc_code == "FAILED_PRECONDITION"
    assert "s3cret" not in outcome.reason
    assert outcome.fault
    assert failed(UpstreamFailed(message="it failed", data={"grpcStatus": "UNKNOWN"})).rpc_code
