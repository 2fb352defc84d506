"""The doctor and gRPC servers: what is wrong with the port, TLS, the files or the protocol."""

import datetime
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
import trustme

from tests.support.grpc_orders import LEDGER, ORDERS, Shop, files_of, orders_set, serving
from tests.support.grpc_reflector import Reflector
from tests.support.patient import Patient
from tests.support.raw_http import Wire, raw_http
from thoughtgate.testing.faults import read_plan
from thoughtgate.testing.grpc_host import fake_grpc


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient(tmp_path)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def lines(url: str, **more: object) -> str:
    told = "".join(f"{key} = {value!r}\n" for key, value in more.items())
    return f"[servers.far]\nurl = {url!r}\nstart_timeout = 3\n{told}"


@asynccontextmanager
async def answering(
    certificate: trustme.LeafCert | None = None, wanted: trustme.CA | None = None
) -> AsyncIterator[str]:
    """Serve gRPC without any service, by TLS where there is a certificate; yield its port."""
    server = grpc.aio.server()
    if certificate is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        chain = b"".join(pem.bytes() for pem in certificate.cert_chain_pems)
        pair = (certificate.private_key_pem.bytes(), chain)
        root = wanted.cert_pem.bytes() if wanted else None
        proof = grpc.ssl_server_credentials([pair], root, wanted is not None)
        port = server.add_secure_port("127.0.0.1:0", proof)
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def saved(folder: Path, name: str, pem: trustme.Blob) -> str:
    path = folder / name
    pem.write_to_path(str(path))
    return str(path)


async def test_a_port_where_nobody_listens_is_told(patient: Patient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closing:
        port = closing.getsockname()[1]
    patient.write(lines(f"grpc://127.0.0.1:{port}"))
    found = await patient.finding("far")
    assert found.code == "url_refused"
    assert f"127.0.0.1:{port}" in found.what


async def test_a_host_without_an_address_is_told(patient: Patient) -> None:
    patient.write(lines("grpcs://nowhere.invalid"))
    assert (await patient.finding("far")).code == "url_unresolved"


async def test_a_server_that_wants_tls_is_told_from_one_that_has_none(
    patient: Patient, authority: trustme.CA
) -> None:
    async with answering(authority.issue_cert("127.0.0.1")) as secure, answering() as plain:
        patient.write(lines(f"grpc://{secure}"))
        wanting = await patient.finding("far")
        patient.write(lines(f"grpcs://{plain}"))
        lacking = await patient.finding("far")
    assert (wanting.code, lacking.code) == ("url_protocol", "url_protocol")
    assert "write grpcs://" in wanting.mend
    assert "write grpc://" in lacking.mend


async def test_a_certificate_is_told_by_what_is_wrong_with_it(
    patient: Patient, authority: trustme.CA
) -> None:
    long_ago = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
    expired = authority.issue_cert("127.0.0.1", not_before=long_ago, not_after=long_ago)
    ca = saved(patient.folder, "ca.pem", authority.cert_pem)
    async with (
        answering(trustme.CA().issue_cert("127.0.0.1")) as unknown,
        answering(expired) as old,
        answering(authority.issue_cert("orders.internal")) as other,
    ):
        found = {}
        for name, port in {"unknown": unknown, "old": old, "other": other}.items():
            patient.write(lines(f"grpcs://{port}", tls_ca=ca))
            found[name] = await patient.finding("far")
    assert {one.code for one in found.values()} == {"url_tls"}
    assert "--ca" in found["unknown"].mend
    assert "expired" in found["old"].what
    assert "--server-name" in found["other"].mend


async def test_a_server_that_wants_a_certificate_of_ours_is_told(
    patient: Patient, authority: trustme.CA
) -> None:
    ca = saved(patient.folder, "ca.pem", authority.cert_pem)
    async with answering(authority.issue_cert("127.0.0.1"), wanted=authority) as port:
        patient.write(lines(f"grpcs://{port}", tls_ca=ca))
        found = await patient.finding("far")
    assert found.code == "login_needed"
    assert "--cert" in found.mend


async def test_a_file_that_is_missing_or_does_not_fit_is_told(
    patient: Patient, authority: trustme.CA
) -> None:
    leaf, other = authority.issue_cert("127.0.0.1"), authority.issue_cert("127.0.0.1")
    cert = saved(patient.folder, "me.pem", leaf.cert_chain_pems[0])
    wrong = saved(patient.folder, "other.key", other.private_key_pem)
    async with answering(leaf) as port:
        patient.write(lines(f"grpcs://{port}", tls_ca="no.pem"))
        missing = await patient.finding("far")
        patient.write(lines(f"grpcs://{port}", tls_cert=cert, tls_key=wrong))
        misfit = await patient.finding("far")
    assert (missing.code, misfit.code) == ("tls_file", "tls_file")
    assert str(patient.folder / "no.pem") in missing.what
    assert "mismatch" in misfit.what


async def test_a_port_of_another_protocol_is_told(patient: Patient) -> None:
    async def refuse(wire: Wire) -> None:
        await wire.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with raw_http(refuse) as server:
        port = server.url.rpartition("/")[0].removeprefix("http://")
        patient.write(lines(f"grpc://{port}"))
        found = await patient.finding("far")
    assert found.code == "url_protocol"
    assert "HTTP/1" in found.what


async def test_tls_without_http_2_is_told(patient: Patient, authority: trustme.CA) -> None:
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(serving)

    async def refuse(wire: Wire) -> None:
        await wire.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    ca = saved(patient.folder, "ca.pem", authority.cert_pem)
    async with raw_http(refuse, tls=serving) as server:
        port = server.url.rpartition("/")[0].removeprefix("https://")
        patient.write(lines(f"grpcs://{port}", tls_ca=ca))
        assert (await patient.finding("far")).code == "url_protocol"


async def test_a_server_of_other_services_is_told_how_to_make_tools_of_them(
    patient: Patient,
) -> None:
    reflector = Reflector(files_of(orders_set()), [ORDERS, LEDGER])
    async with serving(Shop().handler(), reflector.handler()) as port:
        patient.write(lines(f"grpc://127.0.0.1:{port}"))
        other = await patient.finding("far")
        patient.write(lines(f"grpc://127.0.0.1:{port}", reflect=["shop.v1.Nothing"]))
        unknown = await patient.finding("far")
        patient.write(lines(f"grpc://127.0.0.1:{port}", reflect=[ORDERS]))
        assert await patient.findings("far") == []
    assert (other.code, unknown.code) == ("nothing_offered", "nothing_offered")
    assert "--reflect" in other.mend
    assert f"thoughtgate grpc describe grpc://127.0.0.1:{port}" in unknown.mend
    assert ORDERS in unknown.what


async def test_a_server_without_reflection_is_told(patient: Patient) -> None:
    async with serving(Shop().handler()) as port:
        patient.write(lines(f"grpc://127.0.0.1:{port}", reflect=[ORDERS]))
        found = await patient.finding("far")
    assert found.code == "nothing_offered"
    assert "reflection" in found.what
    assert "--descriptor-set FILE" in found.mend


@pytest.mark.parametrize(
    ("status", "code"), [(16, "login_needed"), (7, "nothing_offered"), (13, "server_failed")]
)
async def test_a_status_at_opening_is_told_by_what_mends_it(
    patient: Patient, status: int, code: str
) -> None:
    async with fake_grpc() as fake:
        plan = [{"name": "error", "on": "initialize", "code": status, "text": "hunter2"}]
        fake.server.faults.put(read_plan(plan))
        patient.write(lines(fake.url))
        found = await patient.finding("far")
    assert found.code == code
    assert "hunter2" not in found.what


async def test_a_grpc_server_at_an_http_url_is_told_how_its_url_begins(patient: Patient) -> None:
    async with answering() as place:
        patient.write(lines(f"http://{place}/mcp"))
        found = await patient.finding("far")
    assert "perhaps a gRPC server, whose URL begins with grpc://" in found.what


async def test_a_healthy_grpc_server_has_no_finding(patient: Patient) -> None:
    async with fake_grpc() as fake:
        patient.write(lines(fake.url))
        assert await patient.findings("far") == []
