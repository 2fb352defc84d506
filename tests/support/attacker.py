"""A client without manners: raw sockets, requests as bytes, hang-ups in the middle.

Never waits for longer than the guard of `waiting`.
"""

import json
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tests.support.waiting import GUARD

NEW = "2026-07-28"
OLD = "2025-11-25"


def request(
    body: bytes, headers: Mapping[str, str] | None = None, *, line: str = "POST /mcp HTTP/1.1"
) -> bytes:
    """Return a request as bytes; a header of the usual ones can be replaced."""
    usual = {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in usual.items() if value)
    return f"{line}\r\n{head}\r\n".encode("latin-1") + body


def stateless(method: str, params: dict[str, Any], headers: Mapping[str, str]) -> bytes:
    """Return a request of the stateless era."""
    key = "io.modelcontextprotocol/"
    meta = {
        f"{key}protocolVersion": NEW,
        f"{key}clientInfo": {"name": "attacker", "version": "1"},
        f"{key}clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    told = {"MCP-Protocol-Version": NEW, "Mcp-Method": method}
    if "name" in params:
        told["Mcp-Name"] = params["name"]
    return request(json.dumps(body).encode(), {**told, **headers})


def connected(url: str) -> socket.socket:
    """Return a connection to a gateway."""
    where = urlsplit(url)
    return socket.create_connection((where.hostname, where.port), timeout=GUARD)


def refuses(url: str) -> bool:
    """Tell whether nobody listens there any more."""
    try:
        connected(url).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # the listener closed with this one still in its queue
    return False


def asked(url: str, data: bytes) -> bytes:
    """Send bytes and return everything that comes back until the connection ends."""
    with connected(url) as line:
        line.sendall(data)
        parts = []
        while part := line.recv(65536):
            parts.append(part)
    return b"".join(parts)


def hung_up(url: str, data: bytes) -> None:
    """Send bytes and close the connection without reading an answer."""
    with connected(url) as line:
        line.sendall(data)


def alive(url: str) -> bool:
    """Tell whether a gateway answers."""
    data = request(b"", {"Connection": "close"}, line="GET /healthz HTTP/1.1")
    return asked(url, data).startswith(b"HTTP/1.1 200 ")
