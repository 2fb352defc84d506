"""The sink that posts requests to an OTLP endpoint, and tries again where the protocol says so.

Never imported unless an endpoint is set: the HTTP client takes long to import. Never logs: the
exporter tells of a change from working to failing and back, not of each request.
"""

import gzip
import random
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Final

import requests
from opentelemetry.util.re import parse_env_headers

from thoughtgate.telemetry.environment import OtlpSettings

TRIES: Final = 6
_BUSY: Final = frozenset({429, 502, 503, 504})
"""Answers after which the same request may be sent again (OTLP, "retryable response codes")."""

_COMPRESS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}


class OtlpSink:
    """Posts to one endpoint; a compression that it does not know is none.

    All tries of one request together take no longer than the timeout, about.
    """

    def __init__(self, settings: OtlpSettings) -> None:
        self._endpoint = settings.endpoint
        self._timeout = settings.timeout
        self._compress = _COMPRESS.get(settings.compression)
        self._closed = threading.Event()
        self._session = requests.Session()
        self._trusted = settings.certificate
        if settings.client_certificate and settings.client_key:
            self._session.cert = (settings.client_certificate, settings.client_key)
        elif settings.client_certificate:
            self._session.cert = settings.client_certificate
        self._headers = {"content-type": "application/x-protobuf", "user-agent": "thoughtgate"}
        if self._compress is not None:
            self._headers["content-encoding"] = settings.compression
        self._headers.update(parse_env_headers(settings.headers, liberal=True))

    def send(self, request: bytes) -> bool:
        """Post one request; True when it was accepted."""
        body = request if self._compress is None else self._compress(request)
        deadline = time.monotonic() + self._timeout
        for number in range(TRIES):
            answer = self._post(body, deadline)
            if answer is not None and answer.status_code not in _BUSY:
                return 200 <= answer.status_code < 300
            pause = _pause(number, answer)
            if number + 1 == TRIES or time.monotonic() + pause > deadline:
                break
            if self._closed.wait(pause):
                break
        return False

    def close(self) -> None:
        """End a pause between two tries, and the connection."""
        self._closed.set()
        self._session.close()

    def _post(self, body: bytes, deadline: float) -> requests.Response | None:
        """Return the answer, None when nobody answers; a kept connection may have gone stale."""
        for _ in range(2):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            try:
                return self._session.post(
                    self._endpoint,
                    data=body,
                    headers=self._headers,
                    timeout=left,
                    allow_redirects=False,
                    verify=self._trusted,  # the session's would be weaker than REQUESTS_CA_BUNDLE
                )
            except (requests.ConnectionError, requests.Timeout):
                continue
        return None


def _pause(number: int, answer: requests.Response | None) -> float:
    """Return the seconds before the next try: what the endpoint asks for, or ever longer ones."""
    asked = None if answer is None else retry_after(answer.headers.get("retry-after", ""))
    return 2**number * random.uniform(0.8, 1.2) if asked is None else asked


def retry_after(text: str) -> float | None:
    """Return the seconds of a `Retry-After` header: a number, or the time until a date."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except ValueError:
            return None
    return max(seconds, 0.0) if isfinite(seconds) else None
