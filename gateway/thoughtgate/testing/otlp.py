"""A small, real OTLP/HTTP receiver on loopback, for tests, benchmarks and the demo.

Never a collector: it keeps what it gets in memory, and can be told to refuse or to hang.
"""

import socket
import threading
import zlib
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from thoughtgate.core.errors import Malformed
from thoughtgate.telemetry.otlp import SeenSpan, from_json, from_protobuf

BODY_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One request as it arrived; header names are lower case."""

    path: str
    headers: dict[str, str]
    spans: tuple[SeenSpan, ...]


class OtlpReceiver:
    """Listens on a free port from the moment it is entered until it is left.

    ```python
    with OtlpReceiver() as receiver:
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    ```
    """

    def __init__(self) -> None:
        self._server = _Server(self)
        self._changed = threading.Condition()
        self._posts: list[Post] = []
        self._refused = 0
        self._status = 200
        self._released = threading.Event()
        self._released.set()
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="otlp-receiver"
        )

    def __enter__(self) -> Self:
        """Start to answer."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop, ending connections that are still open."""
        self._released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The base URL, for `OTEL_EXPORTER_OTLP_ENDPOINT`."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def posts(self) -> tuple[Post, ...]:
        """The accepted requests, in order of arrival."""
        with self._changed:
            return tuple(self._posts)

    @property
    def refused(self) -> int:
        """How many requests were answered with an error."""
        with self._changed:
            return self._refused

    def spans(self) -> tuple[SeenSpan, ...]:
        """Return all spans received so far, in order of arrival."""
        return tuple(span for post in self.posts for span in post.spans)

    def wait_for(self, count: int, seconds: float = 5.0) -> tuple[SeenSpan, ...]:
        """Return all spans as soon as there are `count`; blocks its thread.

        Raises:
            TimeoutError: Fewer came in time.
        """
        with self._changed:
            if self._changed.wait_for(lambda: len(self.spans()) >= count, seconds):
                return self.spans()
        missing = f"{len(self.spans())} of {count} spans came"
        raise TimeoutError(missing)

    def answer(self, status: int) -> None:
        """Answer requests with `status` from now on; 200 accepts."""
        self._status = status

    def stall(self) -> None:
        """Read requests but leave them unanswered until `resume` or the end."""
        self._released.clear()

    def resume(self) -> None:
        """Answer again, the waiting requests too."""
        self._released.set()

    def take(self, post: Post) -> int:
        """Keep one decoded request and return the status to answer with."""
        self._released.wait()
        with self._changed:
            if self._status == 200:
                self._posts.append(post)
            else:
                self._refused += 1
            self._changed.notify_all()
            return self._status


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing joins them
    request_queue_size = 64

    def __init__(self, receiver: OtlpReceiver) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.receiver = receiver
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()

    def opened(self, connection: socket.socket) -> None:
        with self._guard:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._guard:
            self._open.discard(connection)

    def hang_up(self) -> None:
        """End connections that clients keep open."""
        with self._guard:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:  # already gone
                    continue


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.opened(self.connection)

    def finish(self) -> None:
        self.server.closed(self.connection)
        try:
            super().finish()
        except OSError:  # the client left before its answer
            self.close_connection = True

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        if not 0 <= length <= BODY_LIMIT:
            self._reply(413)
            return
        body = self.rfile.read(length)
        try:
            spans = self._decode(body)
        except (Malformed, zlib.error):
            self._reply(400)
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._reply(self.server.receiver.take(Post(path=self.path, headers=headers, spans=spans)))

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""

    def _decode(self, body: bytes) -> tuple[SeenSpan, ...]:
        if self.headers.get("content-encoding", "identity").lower() in {"gzip", "deflate"}:
            body = zlib.decompress(body, wbits=47)  # either of the two, by its header
        if "json" in self.headers.get("content-type", ""):
            return from_json(body)
        return from_protobuf(body)

    def _reply(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()
