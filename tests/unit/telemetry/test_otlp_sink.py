"""Posting to an endpoint: what is tried again, what is given up, and how long either may take."""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import trustme

from tests.support.waiting import GUARD
from thoughtgate.telemetry.environment import OtlpSettings, otlp_settings
from thoughtgate.telemetry.otlp_sink import OtlpSink, retry_after


class Endpoint(HTTPServer):
    """Answers with the given statuses in turn, then with 200; drops the connection at 0."""

    def __init__(self, *statuses: int, wait: str = "0", tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.statuses = list(statuses)
        self.wait = wait
        self.bodies: list[bytes] = []
        self.asked = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/v1/traces"
        if tls is not None:
            self.url = self.url.replace("http:", "https:")
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent: a client that does not trust us hangs up."""


class Answer(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.set()
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status:
            self.send_response(status)
            self.send_header("retry-after", self.server.wait)
            self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


@contextmanager
def serving(endpoint: Endpoint) -> Iterator[OtlpSettings]:
    thread = threading.Thread(target=endpoint.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield otlp_settings({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint.url})
    finally:
        endpoint.shutdown()
        thread.join(GUARD)
        endpoint.server_close()


@pytest.mark.parametrize(
    ("statuses", "arrived", "posts"),
    [
        ([200], True, 1),
        ([202], True, 1),
        ([503, 429, 200], True, 3),
        ([0, 200], True, 2),
        ([400, 200], False, 1),
        ([500, 200], False, 1),
        ([302, 200], False, 1),
        ([502] * 9, False, 6),
    ],
)
def test_only_what_may_be_sent_again_is(statuses: list[int], arrived: bool, posts: int) -> None:
    endpoint = Endpoint(*statuses)
    with serving(endpoint) as settings:
        sink = OtlpSink(settings)
        assert sink.send(b"spans") is arrived
        sink.close()
    assert endpoint.bodies == [b"spans"] * posts


def test_a_pause_that_goes_beyond_the_timeout_is_not_made() -> None:
    endpoint = Endpoint(503, wait="3600")
    with serving(endpoint) as settings:
        sink = OtlpSink(settings)
        assert sink.send(b"spans") is False
        sink.close()


def test_closing_ends_a_pause() -> None:
    endpoint = Endpoint(503, wait="50")
    with serving(endpoint) as settings:
        sink = OtlpSink(replace(settings, timeout=60.0))
        sent: list[bool] = []
        thread = threading.Thread(target=lambda: sent.append(sink.send(b"spans")))
        thread.start()
        assert endpoint.asked.wait(GUARD)
        sink.close()
        thread.join(GUARD)
        assert sent == [False]


def test_a_target_speaks_tls_and_must_be_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate that was named for it wins over one for whatever uses the HTTP client."""
    authority = trustme.CA()
    certificate, others = tmp_path / "authority.pem", tmp_path / "others.pem"
    authority.cert_pem.write_to_path(str(certificate))
    trustme.CA().cert_pem.write_to_path(str(others))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(others))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    endpoint = Endpoint(tls=tls)
    with serving(endpoint) as settings:
        trusting = OtlpSink(replace(settings, certificate=str(certificate)))
        assert trusting.send(b"spans")
        trusting.close()
        wary = OtlpSink(replace(settings, timeout=0.2))
        assert not wary.send(b"secret")
        wary.close()
    assert endpoint.bodies == [b"spans"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", None), ("soon", None), ("inf", None), ("nan", None), ("7", 7), ("-1", 0), ("0.5", 0.5)],
)
def test_a_time_to_wait_is_a_number_or_nothing(text: str, seconds: float | None) -> None:
    assert retry_after(text) == seconds


def test_a_time_to_wait_may_be_a_date() -> None:
    assert retry_after(formatdate(0, usegmt=True)) == 0
    later = retry_after(formatdate(time.time() + 3600, usegmt=True))
    assert later is not None
    assert 3000 < later <= 3600
