"""A client of the admin API for tests: any method, any header, and replies held to the document.

Never follows, retries or mends anything: what was answered is what a test sees.
"""

import http.client
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from thoughtgate.surface.admin_route import BASE


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One reply."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def code(self) -> str:
        """Return the error code of a problem."""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.body["status"] == self.status
        return str(self.body["code"])

    @property
    def tag(self) -> str:
        """Return the ETag."""
        return self.headers["etag"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminClient:
    """Asks the gateway at `url`, which may be that of its MCP endpoint; `token` may be none."""

    url: str
    token: str = field(default="", repr=False)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Send a request; `If_Match="*"` stands for the header If-Match."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        data = None
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)
        try:
            connection.request(method, BASE + quote(path, safe="/?&=%*"), data, sent)
            reply = connection.getresponse()
            answer = reply.read()
        finally:
            connection.close()
        return Answer(
            status=reply.status,
            headers={name.lower(): value for name, value in reply.getheaders()},
            body=json.loads(answer) if answer else None,
        )

    def get(self, path: str) -> Any:
        """Return the body of a reply that must be a good one."""
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return answer.body

    def do(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        """Change something that must be changed, whatever was there, and return the body."""
        answer = self.ask(method, path, body, **headers)
        assert answer.status == 200, answer
        return answer.body


async def asked(
    app: Callable[..., Awaitable[None]],
    method: str,
    path: str,
    body: object = None,
    *,
    token: str,
    query: str = "",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Ask a face in memory."""
    sent: list[Any] = []
    data = b"" if body is None else json.dumps(body).encode()
    given = {"Host": "127.0.0.1", "Authorization": f"Bearer {token}", **(headers or {})}
    if data:
        given.setdefault("Content-Type", "application/json")
    scope = {
        "type": "http",
        "method": method,
        "path": BASE + path,
        "raw_path": (BASE + quote(path)).encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": data, "more_body": False}

    async def send(event: Any) -> None:
        sent.append(event)

    await app(scope, receive, send)
    start, end = sent
    told = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(status=start["status"], headers=told, body=json.loads(end["body"]))
