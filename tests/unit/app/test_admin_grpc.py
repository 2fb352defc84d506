"""gRPC servers over the admin API: what may be put, and that files stay with who sits there."""

from pathlib import Path

import pytest

from tests.support.admin_api import api
from thoughtgate.core.calls import LOCAL
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import GrpcTransport, Server, Streaming, Tls

URL = "grpcs://127.0.0.1:9"
SECRET = "hunter2-hunter2"


async def test_a_grpc_server_is_put_and_shown_without_its_secrets(tmp_path: Path) -> None:
    body: JsonObject = {
        "url": URL,
        "headers": {"Authorization": SECRET},
        "grpc": {"reflect": ["a.B"], "streaming": "last", "bidi": True, "tls_name": "a"},
        "start_timeout": 1,
    }
    async with api(tmp_path) as ours:
        entry = await ours.good("put_server", body, server="far", If_None_Match="*")
        again: JsonObject = {"url": URL, "headers": {"Authorization": None}, "trusted": True}
        await ours.good("put_server", again, server="far", If_Match="*")
        stored = ours.app.registry.server("far")
    assert (entry["kind"], entry["url"], entry["secrets"]) == ("grpc", URL, ["authorization"])
    assert entry["grpc"]["reflect"] == ["a.B"]
    assert stored is not None
    assert stored.trusted
    assert stored.transport == GrpcTransport(url=URL, headers={"authorization": SECRET})
    assert SECRET not in "".join(ours.replies)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"url": "grpc://h"}, "names no port"),
        ({"url": "grpc://h:1/x"}, "ends after the port"),
        ({"url": URL, "era": "handshake"}, "era: is for MCP"),
        ({"url": URL, "sse": True}, "sse: is for HTTP"),
        ({"url": URL, "sharing": "session"}, "everybody shares"),
        ({"url": URL, "grpc": {"bidi": True}}, "reflected services"),
        ({"url": URL, "grpc": {"reflect": ["a b"]}}, "no service"),
        ({"url": "grpc://h:1", "grpc": {"tls_name": "a"}}, "grpcs://"),
        ({"url": URL, "headers": {"te": "1"}}, "set by the gateway"),
        ({"url": "http://h/", "grpc": {}}, "grpc is for a URL"),
    ],
)
async def test_what_does_not_fit_together_is_refused(
    tmp_path: Path, more: JsonObject, said: str
) -> None:
    async with api(tmp_path) as ours:
        reply = await ours.ask("put_server", more, server="far", If_None_Match="*")
    assert (reply.status, reply.code) == (422, "config_error")
    assert said in reply.body["detail"]


@pytest.mark.parametrize("key", ["tls_ca", "tls_cert", "TLS-Key", "descriptor_set", "ca", "cert"])
async def test_nobody_far_away_names_a_file_of_the_gateway_s_machine(
    tmp_path: Path, key: str
) -> None:
    async with api(tmp_path) as ours:
        for body in ({"url": URL, "grpc": {key: "/etc/passwd"}}, {"url": URL, key: "/etc/passwd"}):
            reply = await ours.ask("put_server", body, server="far", If_None_Match="*")
            assert (reply.status, reply.code) == (403, "refused")
            assert "local command line" in reply.body["detail"]


async def test_files_chosen_on_the_machine_stay_with_their_url_and_follow_nowhere(
    tmp_path: Path,
) -> None:
    tls = Tls(ca="/srv/ca.pem", cert="/srv/me.pem", key="/srv/me.key")
    here = GrpcTransport(url=URL, tls=tls, reflect=("a.B",), descriptor_set="/srv/a.binpb")
    async with api(tmp_path) as ours:
        ours.app.registry.put_server(Server(name="far", transport=here), LOCAL)
        body: JsonObject = {"url": URL, "grpc": {"reflect": ["*"], "streaming": "last"}}
        entry = await ours.good("put_server", body, server="far", If_Match="*")
        elsewhere: JsonObject = {"url": "grpcs://elsewhere.example"}
        reply = await ours.ask("put_server", elsewhere, server="far", If_Match="*")
        stored = ours.app.registry.server("far")
    assert (reply.status, reply.code) == (403, "refused")
    assert entry["grpc"]["tls_key"] == "/srv/me.key"
    assert stored is not None
    assert isinstance(stored.transport, GrpcTransport)
    assert stored.transport == GrpcTransport(
        url=URL,
        tls=tls,
        reflect=("*",),
        descriptor_set="/srv/a.binpb",
        streaming=Streaming.LAST,
    )
