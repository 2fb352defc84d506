"""The one thing that model clients need of HTTP: a POST whose reply is read piece by piece.

Never opens a connection; `app` passes in the gateway's HTTP client.
"""

from collections.abc import Mapping
from typing import Protocol


class Body(Protocol):
    """The body of one reply, read by one reader."""

    async def chunk(self) -> bytes:
        """Return the next bytes, `b""` at the end.

        Raises:
            UpstreamError: The connection broke before the body was complete.
        """
        ...

    def close(self) -> None:
        """Drop the connection unless the body is complete; any number of calls."""
        ...


class Posted(Protocol):
    """An HTTP reply whose head has come. Header names are lower case."""

    @property
    def status(self) -> int:
        """The status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        ...

    @property
    def body(self) -> Body:
        """The body, not yet read."""
        ...


class Post(Protocol):
    """Sends one POST."""

    async def __call__(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Posted:
        """Return the reply, whatever its status, once its head has come.

        Raises:
            UpstreamError: There was none; unreachable or lost.
            OSError: The same, from a transport that does not translate.
        """
        ...
