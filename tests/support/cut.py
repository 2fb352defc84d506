"""A TCP proxy on loopback that can cut what goes through it.

Never outlives its `with`.
"""

import socket
import threading
from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer


class CuttingProxy(ThreadingTCPServer):
    """Passes bytes on to `port` of loopback; connections made after a cut pass again."""

    daemon_threads = False  # so that closing joins them

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = ("127.0.0.1", port)
        self.open: set[socket.socket] = set()
        self.guard = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), name="proxy")

    def __enter__(self) -> "CuttingProxy":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.cut()
        self.server_close()

    @property
    def port(self) -> int:
        """The port to connect to."""
        return int(self.server_address[1])

    def cut(self) -> None:
        """End every connection that is open now."""
        with self.guard:
            for one in self.open:
                _end(one)


class _Handler(BaseRequestHandler):
    server: CuttingProxy

    def handle(self) -> None:
        near: socket.socket = self.request
        with socket.create_connection(self.server.target) as far:
            with self.server.guard:
                self.server.open |= {near, far}
            back = threading.Thread(target=_pump, args=(far, near))
            back.start()
            _pump(near, far)
            back.join()
            with self.server.guard:
                self.server.open -= {near, far}


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    _end(source)
    _end(sink)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
