"""A real HTTP receiver on loopback that keeps what it gets and answers as told.

Never outlives its `with`.
"""

import json
import threading
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One request as it came; header names are lower case."""

    path: str
    headers: dict[str, str]
    body: Any


class WebhookReceiver(ThreadingHTTPServer):
    """Answers with `status`; while `hold` is set it reads a request and leaves it unanswered.

    `location` is sent with redirects; `hang_up` closes the connection instead of answering.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.deliveries: list[Delivery] = []
        self.status = 200
        self.location = ""
        self.hang_up = False
        self.released = threading.Event()
        self.released.set()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,))

    def __enter__(self) -> "WebhookReceiver":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    @property
    def url(self) -> str:
        """The address to post to."""
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: WebhookReceiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.deliveries.append(Delivery(path=self.path, headers=headers, body=body))
        self.server.released.wait()
        if self.server.hang_up:
            self.close_connection = True
            return
        with suppress(ConnectionError):  # the sender may have gone while it was held
            self._answer()

    def _answer(self) -> None:
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()
        self.wfile.write(b"noted\n\x1b[31m")

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""
