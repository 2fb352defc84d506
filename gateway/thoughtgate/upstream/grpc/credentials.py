"""The files of a TLS connection, read and checked before anything is sent.

Never says what stands in a key.
"""

import datetime
import ssl
from collections.abc import Iterable
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from thoughtgate.core.errors import UpstreamUnreachable
from thoughtgate.core.servers import Tls

MAX_FILE = 1_048_576
"""Bytes of the largest file that is read; a system's bundle of authorities has about 200 kB."""

_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")


def credentials(tls: Tls) -> grpc.ChannelCredentials:
    """Return what a channel proves itself and its server by.

    Raises:
        UpstreamUnreachable: A file is missing, is not what it should be, or does not fit.
    """
    if bool(tls.cert) != bool(tls.key):
        given, missing = ("certificate", "key") if tls.cert else ("key", "certificate")
        raise UpstreamUnreachable(
            message=f"a client {given} was given without its {missing}; give both or neither"
        )
    authorities = _read_authorities(tls.ca) if tls.ca else _of_the_system()
    if not tls.cert:
        return grpc.ssl_channel_credentials(authorities)
    chain, key = _read(tls.cert, "client certificate"), _read(tls.key, "client key")
    _check_fit(tls, _certificates(chain, tls.cert, "client certificate"), key)
    return grpc.ssl_channel_credentials(authorities, key, chain)


def _read_authorities(path: str) -> bytes:
    authorities = _read(path, "CA")
    _certificates(authorities, path, "CA")
    return authorities


def _of_the_system() -> bytes | None:
    """Return the system's authorities; None leaves it to those that grpcio brings along."""
    paths = ssl.get_default_verify_paths()
    for place in _files((paths.cafile, paths.openssl_cafile, *_BUNDLES)):
        return _read(str(place), "CA")
    return None


def _files(places: Iterable[str | None]) -> Iterable[Path]:
    return (Path(place) for place in places if place and Path(place).is_file())


def _read(path: str, what: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise UpstreamUnreachable(
            message=f"the {what} file {path} cannot be read: {reason}"
        ) from None
    if len(data) > MAX_FILE:
        raise UpstreamUnreachable(message=f"the {what} file {path} is longer than {MAX_FILE} bytes")
    return data


def _certificates(data: bytes, path: str, what: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError:
        raise UpstreamUnreachable(
            message=f"the {what} file {path} holds no certificate in PEM form"
        ) from None


def _check_fit(tls: Tls, chain: list[x509.Certificate], key: bytes) -> None:
    """Hold a certificate against its key and against the calendar."""
    own = _public(chain[0])
    if own != _public_of(key, tls.key):
        if any(_public(other) == _public_of(key, tls.key) for other in chain[1:]):
            raise UpstreamUnreachable(
                message=f"the client certificate must come first in {tls.cert}"
            )
        raise UpstreamUnreachable(
            message=f"the client key {tls.key} does not belong to the certificate {tls.cert}"
        )
    if chain[0].not_valid_after_utc < datetime.datetime.now(datetime.UTC):
        raise UpstreamUnreachable(
            message=f"the client certificate {tls.cert} has expired; get a new one"
        )


def _public_of(key: bytes, path: str) -> bytes:
    try:
        private = serialization.load_pem_private_key(key, password=None)
    except TypeError:
        raise UpstreamUnreachable(
            message=f"the client key file {path} is protected by a passphrase; give one without"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise UpstreamUnreachable(
            message=f"the client key file {path} holds no private key in PEM form"
        ) from None
    return private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _public(certificate: x509.Certificate) -> bytes:
    return certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
