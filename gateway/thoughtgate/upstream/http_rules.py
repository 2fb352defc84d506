"""What both HTTP clients send and accept, so that they cannot differ in it.

Never touches a socket.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urljoin, urlsplit

from thoughtgate.core.errors import UpstreamGarbled, UpstreamUnreachable
from thoughtgate.upstream.ports import HttpRequest

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}
_HOP = frozenset({
    "accept-encoding", "connection", "content-length", "host", "te", "transfer-encoding", "upgrade",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a URL points: the origin's parts, and the path with its query."""

    secure: bool
    host: str
    port: int
    path: str
    authority: str

    @property
    def origin(self) -> str:
        """Return the origin as text, with its port."""
        return origin_text(secure=self.secure, host=self.host, port=self.port)


@lru_cache(maxsize=1024)
def target(url: str) -> Target:
    """Return where `url` points.

    Raises:
        UpstreamUnreachable: Not an absolute http or https URL, or one that carries a password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UpstreamUnreachable(
            message="the url cannot be read; check its host and port"
        ) from None
    if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None:
        raise UpstreamUnreachable(
            message="the url must be http or https with a host and without a password"
        )
    path = parts.path or "/"
    if parts.query:
        path = f"{path}?{parts.query}"
    if not (path.isascii() and path.isprintable()) or " " in path:
        raise UpstreamUnreachable(message="the url's path must be percent-encoded")
    if not (parts.netloc.isascii() and parts.netloc.isprintable()):
        raise UpstreamUnreachable(message="the url's host must be ASCII; write it as xn--…")
    return Target(
        secure=parts.scheme == "https",
        host=parts.hostname,
        port=port or _PORTS[parts.scheme],
        path=path,
        authority=parts.netloc,
    )


def request_bytes(request: HttpRequest, where: Target) -> bytes:
    """Return head and body of a request, for one write.

    Raises:
        UpstreamUnreachable: A header cannot be sent as it is; nothing was sent.
    """
    body = request.body
    length = f"Content-Length: {len(body)}\r\n" if body or request.method == "POST" else ""
    lines = header_lines(request.headers)
    head = (
        f"{request.method} {where.path} HTTP/1.1\r\nHost: {where.authority}\r\n"
        f"{lines}{length}Accept-Encoding: identity\r\n\r\n"
    )
    return head.encode("latin-1") + body


def header_lines(headers: Mapping[str, str]) -> str:
    """Return one line per header, checked.

    Raises:
        UpstreamUnreachable: A name or value holds a line end, or letters beyond Latin-1.
    """
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    ends = len(headers)
    if lines.count("\r") != ends or lines.count("\n") != ends or "\0" in lines or not _latin(lines):
        raise UpstreamUnreachable(
            message="a header cannot be sent: it holds a line end or letters beyond latin-1"
        )
    return lines


def server_headers(configured: Mapping[str, str]) -> dict[str, str]:
    """Return a server's own headers in lower case, without those that belong to the connection."""
    lower = {name.lower(): value for name, value in configured.items()}
    kept = {name: value for name, value in lower.items() if name not in _HOP}
    return {"user-agent": "thoughtgate"} | kept


def check_head(status: int, headers: Mapping[str, str], url: str) -> None:
    """Refuse redirects and compression.

    Raises:
        UpstreamGarbled: The reply is one of them; the error names the origin it points to.
    """
    if status in _REDIRECTS:
        place = _redirect_origin(url, headers.get("location", ""))
        raise UpstreamGarbled(
            message=f"status {status} redirects to {place}, which is not followed;"
            " register that address if it is the intended server"
        )
    encoding = headers.get("content-encoding", "identity").lower()
    if encoding not in {"", "identity"}:
        raise UpstreamGarbled(message="the answer is compressed, which was not asked for")


def origin_text(*, secure: bool, host: str, port: int) -> str:
    """Return an origin as text, with its port."""
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if secure else 'http'}://{shown}:{port}"


def _redirect_origin(url: str, location: str) -> str:
    try:
        return target(urljoin(url, location)).origin
    except (UpstreamUnreachable, ValueError):
        return "a place that is no url"


def _latin(text: str) -> bool:
    return text.isascii() or all(ord(letter) < 256 for letter in text)
