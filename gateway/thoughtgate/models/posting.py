"""The one thing that model clients need of HTTP: a POST that returns the whole reply.

Never opens a connection; `app` passes in the gateway's HTTP client.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """An HTTP reply. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Post(Protocol):
    """Sends one POST."""

    async def __call__(
        self, url: str, *, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> Posted:
        """Return the reply, whatever its status.

        Raises:
            UpstreamError: There was none; unreachable, lost or timed out.
            OSError: The same, from a transport that does not translate.
            TimeoutError: No whole reply within `seconds`.
        """
        ...
