"""What the connections of this room meet through: an HTTP client, and a link to one server.

Never an implementation; tests/contract holds each promise against every implementation.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from thoughtgate.core.calls import Call
from thoughtgate.core.errors import UpstreamGarbled, UpstreamUnreachable
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.upstream.auth import Account
from thoughtgate.wire.messages import Reply
from thoughtgate.wire.strict import MAX_RESULT


class SentTwice(UpstreamUnreachable):
    """It was refused before anything was done, twice: whoever asks once more asks too often."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `headers` are sent as they stand, beside Host and Content-Length."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""


class Body(Protocol):
    """The body of one reply, read by one reader."""

    async def chunk(self) -> bytes:
        """Return the next bytes, `b""` at the end; reading slowly slows the server down.

        Raises:
            UpstreamLost: The connection broke before the body was complete.
            UpstreamGarbled: What came is not HTTP.
        """
        ...

    def release(self) -> None:
        """Need no more: what comes is thrown away, and the connection kept if it ends soon."""
        ...

    def close(self) -> None:
        """Drop the connection unless the body is complete or released; any number of calls."""
        ...


class HttpReply(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a reply and its body; header names are lower case, values stripped."""

    status: int
    headers: Mapping[str, str]
    body: Body

    async def read(self, limit: int = MAX_RESULT) -> bytes:
        """Return the whole body, and close it.

        Raises:
            UpstreamLost: The connection broke before the body was complete.
            UpstreamGarbled: The body is longer than `limit` bytes, or is not HTTP.
        """
        parts: list[bytes] = []
        size = 0
        try:
            while part := await self.body.chunk():
                size += len(part)
                if size > limit:
                    raise UpstreamGarbled(message=f"the answer is longer than {limit} bytes")
                parts.append(part)
        finally:
            self.body.close()
        return parts[0] if len(parts) == 1 else b"".join(parts)


class HttpClient(Protocol):
    """Sends HTTP/1.1 requests over pooled connections."""

    async def send(self, request: HttpRequest) -> HttpReply:
        """Send once and return when the head of the reply has come.

        Cancelling the awaiting task drops the connection. Redirects are not followed and
        compressed replies are refused. There is no time limit but the one on connecting.

        Raises:
            UpstreamUnreachable: Not one byte of the request was sent.
            UpstreamLost: The connection broke before the head of the reply; outcome unknown.
            UpstreamGarbled: The reply is a redirect, is compressed, or is not HTTP.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection; whoever still waits for a reply gets UpstreamLost."""
        ...


class Credentials(Protocol):
    """Knows the logins at servers."""

    def headers(self, account: Account) -> Mapping[str, str] | None:
        """Return what to send now: nothing without a login, None when it must be renewed first."""
        ...

    def scope(self, account: Account) -> str:
        """Return the scope that the login has, empty when there is none."""
        ...

    async def renewed(
        self, account: Account, refused: Mapping[str, str] | None
    ) -> Mapping[str, str]:
        """Return headers that the server has not `refused`; None says that it was not asked.

        Raises:
            UpstreamDenied: A person has to log in.
            UpstreamUnreachable: It cannot be renewed just now.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Who answered when a link opened. `capabilities` are the server's own."""

    era: Era
    version: str
    server_info: JsonObject
    capabilities: JsonObject
    instructions: str = ""


@dataclass(slots=True, kw_only=True)
class Counts:
    """What a link dropped, for operators; only ever counted up.

    `noise` are lines that are no messages; `late` replies that nobody waits for (answered before,
    cancelled or timed out); `unplaced` notifications that belong to no call, or to no single
    one; `overflow` notifications that a slow caller had no room for; `refused` server requests that
    nobody was asked; `unsent` answers and notifications that the server did not take.
    """

    noise: int = 0
    late: int = 0
    unplaced: int = 0
    overflow: int = 0
    refused: int = 0
    unsent: int = 0


class Pipe(Protocol):
    """Carries whole messages both ways for everybody at once; `ended` says why it is over."""

    ended: asyncio.Future[str]

    async def room(self) -> None:
        """Return when the server takes what it is sent."""
        ...

    def send(self, message: bytes, id_: int | None = None) -> bool:
        """Send a message, which is the request `id_`; False when it was not sent.

        What is no request is not sent either when much of that waits already.
        """
        ...

    async def stop(self) -> None:
        """End it within a bound, and return when it is over."""
        ...


Changed = Callable[[str], None]
"""Takes which list has changed: `tools`, `prompts` or `resources`; empty for any of them."""


class Standing(Protocol):
    """What a link does for its clients outside of their calls."""

    async def subscribe(self, uri: str) -> None:
        """Have the server tell of changes of a resource, which its home already follows.

        Raises:
            UpstreamError: It will not, or could not be asked.
        """
        ...

    async def unsubscribe(self, uris: Sequence[str]) -> None:
        """Have the server tell no more of resources, which its home has ceased to follow.

        Raises:
            UpstreamError: It could not be told.
        """
        ...

    def tell(self, method: str, params: JsonObject) -> None:
        """Send a notification of a client's; nobody waits for it, and it may be lost."""
        ...


class Link(Standing, Protocol):
    """One open connection to one server, in one era."""

    peer: Peer
    counts: Counts

    @property
    def lost(self) -> bool:
        """Tell whether the connection is over; always False where each request has its own."""
        ...

    @property
    def questions(self) -> int:
        """Return how many questions of the server's wait for somebody's answer."""
        ...

    async def request(self, method: str, params: JsonObject) -> bytes:
        """Send a request of our own, dressed for the era, and return its result, strictly checked.

        Raises:
            UpstreamError: What went wrong, and whether the outcome is known.
        """
        ...

    async def call(self, call: Call) -> Reply:
        """Send a call and return the reply as the server sent it, strictly checked.

        In the stateless era that may be a result which asks for input.

        Raises:
            UpstreamError: What went wrong, and whether the outcome is known.
        """
        ...

    async def watch(self, changed: Changed) -> str:
        """Follow the server's own notifications; `changed` runs when its lists did, or may have.

        Returns:
            Why the connection is over. A connection that cannot end never returns.
        """
        ...

    async def aclose(self) -> None:
        """End the connection within a bound; calls that still wait get UpstreamLost."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What we say about ourselves: the `clientInfo` object."""

    name: str = "thoughtgate"
    version: str = "0"

    def as_json(self) -> JsonObject:
        """Return the `clientInfo` object."""
        return {"name": self.name, "version": self.version}
