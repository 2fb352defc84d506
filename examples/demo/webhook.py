"""A small webhook receiver: keeps what it gets as files, one per message.

Never answers before the message is on disk.

    python webhook.py STORE --port 9000
"""

import argparse
import itertools
import json
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MAX_BODY = 4_000_000


class Receiver(ThreadingHTTPServer):
    """The listening side; `store` is the folder of the messages."""

    def __init__(self, store: Path, port: int) -> None:
        store.mkdir(parents=True, exist_ok=True)
        self.store = store
        self.numbers = itertools.count(1)
        super().__init__(("127.0.0.1", port), Handler)


class Handler(BaseHTTPRequestHandler):
    """One message."""

    server: Receiver

    def do_POST(self) -> None:
        """Keep a JSON message and say so."""
        length = int(self.headers.get("content-length", "0"))
        if not 0 < length <= MAX_BODY:
            self.send_error(413)
            return
        try:
            body = json.loads(self.rfile.read(length))
        except ValueError:
            self.send_error(400, "not JSON")
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        message = {"path": self.path, "headers": headers, "body": body}
        number = next(self.server.numbers)
        text = json.dumps(message, ensure_ascii=False, indent=1)
        (self.server.store / f"{number:04d}.json").write_text(text, encoding="utf-8")
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing per request."""


def main() -> None:
    """Run as a command until told to stop."""
    parser = argparse.ArgumentParser(description="Receive webhooks and keep them as files.")
    parser.add_argument("store", type=Path)
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    # the default action of SIGTERM, but through `with`, so that the socket is closed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Receiver(given.store, given.port) as receiver:
        host, port = receiver.server_address[:2]
        print(f"webhook: listening on http://{host!s}:{port}/hook", file=sys.stderr, flush=True)
        receiver.serve_forever()


if __name__ == "__main__":
    main()
