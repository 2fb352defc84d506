"""The line to a running gateway's admin API: one HTTP request at a time, and what came back.

Never sends the token in the clear beyond this machine, and never follows a redirect with it.
"""

import http.client
import os
import ssl
from collections.abc import Mapping
from typing import NamedTuple, TypeVar
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import msgspec

from thoughtgate.app.admin_token import TOKEN_FILE, read_token
from thoughtgate.cli.target import Target
from thoughtgate.config.files import state_folder
from thoughtgate.core import errors
from thoughtgate.core.errors import ConfigError, GateError, UpstreamGarbled, UpstreamUnreachable
from thoughtgate.core.hosts import is_loopback
from thoughtgate.surface.admin_route import BASE
from thoughtgate.surface.admin_values import Problem

PATIENCE = 600.0
"""Seconds without a byte after which a gateway is given up: checking a long log takes time."""

BRIEF = 10.0
"""The same where the answer takes no work: `status` asks nobody for longer."""

_MOST = 256 * 2**20

S = TypeVar("S", bound=msgspec.Struct)


class Reply(NamedTuple):
    """The body of a good reply, and its ETag; empty when it has none."""

    body: bytes
    tag: str


class Line:
    """Asks one gateway; `target` says which, and where its token is.

    It is given up after `patience` seconds without a byte.
    """

    def __init__(self, target: Target, patience: float = PATIENCE) -> None:
        parts = _parts(target.url)
        self._host, self._port = parts.hostname or "", parts.port
        self._secure = parts.scheme == "https"
        self._where = f"{parts.scheme}://{parts.netloc}"
        if not self._secure and not is_loopback(self._host):
            raise ConfigError(
                message=f"--server: {self._host} is another machine, and http would show it and "
                "everybody between the token; use https, or a tunnel to a port of this machine"
            )
        file = target.token_file or state_folder(os.environ) / TOKEN_FILE
        self._token = read_token(file)
        self._patience = patience

    def get(self, kind: type[S], *path: str, query: Mapping[str, str | int] | None = None) -> S:
        """Return what there is.

        Raises:
            GateError: What the gateway answered, or that it did not.
        """
        return self._decoded(kind, self.ask("GET", path, query=query).body)

    def tagged(self, kind: type[S], *path: str) -> tuple[S, str]:
        """Return what there is, with the ETag that a change of it may be bound to."""
        reply = self.ask("GET", path)
        return self._decoded(kind, reply.body), reply.tag

    def do(
        self,
        kind: type[S],
        method: str,
        *path: str,
        body: msgspec.Struct | None = None,
        match: Mapping[str, str] | None = None,
    ) -> S:
        """Change something and return what it is now; `match` holds the precondition's header."""
        return self._decoded(kind, self.ask(method, path, body=body, headers=match).body)

    def ask(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        query: Mapping[str, str | int] | None = None,
        body: msgspec.Struct | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request and return its good reply.

        Raises:
            GateError: What the gateway answered, or that it did not.
        """
        where = "/".join((BASE, *(quote(part, safe="") for part in path)))
        where += f"?{urlencode(query)}" if query else ""
        sent = {"Authorization": f"Bearer {self._token}", **(headers or {})}
        data = None if body is None else msgspec.json.encode(body)
        if data is not None:
            sent["Content-Type"] = "application/json"
        connection = self._connection()
        try:
            connection.request(method, where, data, sent)
            reply = connection.getresponse()
            answer = reply.read(_MOST)
        except (OSError, http.client.HTTPException, UnicodeError) as error:  # no name of a host
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise UpstreamUnreachable(
                message=f"no gateway answers at {self._where}: {why}; is one running there?"
            ) from None
        finally:
            connection.close()
        if reply.status != 200:
            raise self._error(reply.status, answer)
        return Reply(answer, reply.getheader("ETag", ""))

    def _connection(self) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._patience, context=context
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._patience)

    def _decoded(self, kind: type[S], body: bytes) -> S:
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.MsgspecError:
            raise self._garbled() from None

    def _error(self, status: int, body: bytes) -> GateError:
        """Return the error that the gateway tells of, as if it had happened here."""
        try:
            told = msgspec.json.decode(body, type=Problem)
        except msgspec.MsgspecError:
            return self._garbled(f" (HTTP {status})")
        kinds = [one for one in vars(errors).values() if isinstance(one, type)]
        codes = {one.code: one for one in kinds if issubclass(one, GateError)}
        kind = codes.get(told.code, GateError)
        error = kind.__new__(kind)  # some have arguments of their own, which nobody told us
        GateError.__init__(error, message=told.detail, data=told.data)
        return error

    def _garbled(self, more: str = "") -> UpstreamGarbled:
        return UpstreamGarbled(
            message=f"what answers at {self._where} is no admin API of thoughtgate{more}; "
            "see the URL, and gateway.admin in its configuration"
        )


def _parts(url: str) -> SplitResult:
    """Return the parts of a URL of a gateway.

    Raises:
        ConfigError: It is none.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        usable = parts.port != 0 and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        usable = False
    if not usable or parts.scheme not in {"http", "https"}:
        raise ConfigError(message="--server takes a URL such as http://127.0.0.1:8765")
    return parts
