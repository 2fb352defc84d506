"""Connections by TLS: who proves what to whom, and what is said when it does not fit."""

import datetime
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from tests.support.native_peer import NativePeer, grpc_server, serving
from tests.support.upstreams import rig
from tests.support.waiting import within
from thoughtgate.core.errors import UpstreamUnreachable
from thoughtgate.core.servers import Tls
from thoughtgate.upstream.grpc.credentials import credentials

CA = trustme.CA()
OTHER = trustme.CA()
SERVER = CA.issue_cert("localhost", "tools.example")
INNER = CA.create_child_ca()
CLIENT = INNER.issue_cert("gateway")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    CA.cert_pem.write_to_path(tmp_path / "ca.pem")
    OTHER.cert_pem.write_to_path(tmp_path / "other.pem")
    CLIENT.private_key_pem.write_to_path(tmp_path / "key.pem")
    chain = b"".join(part.bytes() for part in CLIENT.cert_chain_pems)
    (tmp_path / "cert.pem").write_bytes(chain)
    (tmp_path / "backwards.pem").write_bytes(
        b"".join(part.bytes() for part in reversed(CLIENT.cert_chain_pems))
    )
    SERVER.private_key_pem.write_to_path(tmp_path / "wrong.pem")
    (tmp_path / "text.pem").write_text("no PEM at all", encoding="utf-8")
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    old = CA.issue_cert("gateway", not_after=past)
    old.private_key_and_cert_chain_pem.write_to_path(tmp_path / "old.pem")
    key = serialization.load_pem_private_key(CLIENT.private_key_pem.bytes(), None)
    (tmp_path / "locked.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"pass"),
        )
    )
    return tmp_path


def proof(*, client: bool = False) -> grpc.ServerCredentials:
    chain = b"".join(part.bytes() for part in SERVER.cert_chain_pems)
    pairs = [(SERVER.private_key_pem.bytes(), chain)]
    if not client:
        return grpc.ssl_server_credentials(pairs)
    return grpc.ssl_server_credentials(pairs, CA.cert_pem.bytes(), require_client_auth=True)


async def reason(url: str, tls: Tls) -> str:
    """Return why a server cannot be reached, empty when it can."""
    async with rig(grpc_server(url, tls=tls)) as made:
        try:
            await within(made.upstreams.discover("peer"))
        except UpstreamUnreachable as error:
            return error.message
    return ""


async def test_a_server_whose_authority_is_named_is_trusted(files: Path) -> None:
    async with serving(NativePeer(), address="localhost:0", proof=proof()) as port:
        assert await reason(f"grpcs://localhost:{port}", Tls(ca=str(files / "ca.pem"))) == ""


async def test_a_server_proves_the_name_that_was_given_for_it(files: Path) -> None:
    ca = str(files / "ca.pem")
    async with serving(NativePeer(), proof=proof()) as port:
        url = f"grpcs://127.0.0.1:{port}"
        assert "another name" in await reason(url, Tls(ca=ca))
        assert await reason(url, Tls(ca=ca, name="tools.example")) == ""


async def test_a_server_of_an_unknown_authority_is_not_trusted(files: Path) -> None:
    async with serving(NativePeer(), address="localhost:0", proof=proof()) as port:
        url = f"grpcs://localhost:{port}"
        assert "no authority" in await reason(url, Tls(ca=str(files / "other.pem")))
        assert "no authority" in await reason(url, Tls())


async def test_a_client_proves_itself_by_a_certificate_with_its_chain(files: Path) -> None:
    tls = Tls(ca=str(files / "ca.pem"), cert=str(files / "cert.pem"), key=str(files / "key.pem"))
    async with serving(NativePeer(), address="localhost:0", proof=proof(client=True)) as port:
        url = f"grpcs://localhost:{port}"
        assert await reason(url, tls) == ""
        assert "client certificate" in await reason(url, Tls(ca=tls.ca))


async def test_tls_and_none_that_meet_say_so(files: Path) -> None:
    tls = Tls(ca=str(files / "ca.pem"))
    async with serving(NativePeer(), address="localhost:0", proof=proof()) as port:
        assert "grpcs://" in await reason(f"grpc://localhost:{port}", Tls())
    async with serving(NativePeer()) as port:
        assert "does not speak TLS" in await reason(f"grpcs://localhost:{port}", tls)
        assert "write grpcs://" in await reason(f"grpc://127.0.0.1:{port}", tls)


MISFITS: list[tuple[Callable[[Path], Tls], str]] = [
    (lambda at: Tls(ca=str(at / "absent.pem")), "no such file"),
    (lambda at: Tls(ca=str(at)), "is a directory"),
    (lambda at: Tls(ca=str(at / "text.pem")), "no certificate in PEM"),
    (lambda at: Tls(cert=str(at / "cert.pem")), "without its key"),
    (lambda at: Tls(key=str(at / "key.pem")), "without its certificate"),
    (lambda at: Tls(cert=str(at / "cert.pem"), key=str(at / "absent.pem")), "no such file"),
    (lambda at: Tls(cert=str(at / "cert.pem"), key=str(at / "text.pem")), "no private key"),
    (lambda at: Tls(cert=str(at / "cert.pem"), key=str(at / "wrong.pem")), "does not belong"),
    (lambda at: Tls(cert=str(at / "cert.pem"), key=str(at / "locked.pem")), "passphrase"),
    (lambda at: Tls(cert=str(at / "text.pem"), key=str(at / "key.pem")), "no certificate in PEM"),
    (lambda at: Tls(cert=str(at / "backwards.pem"), key=str(at / "key.pem")), "come first"),
    (lambda at: Tls(cert=str(at / "old.pem"), key=str(at / "old.pem")), "expired"),
]


@pytest.mark.parametrize(("make", "words"), MISFITS)
def test_files_that_do_not_fit_are_named(
    make: Callable[[Path], Tls], words: str, files: Path
) -> None:
    with pytest.raises(UpstreamUnreachable, match=words):
        credentials(make(files))
