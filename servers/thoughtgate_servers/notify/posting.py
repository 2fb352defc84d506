"""One HTTP POST with nothing left to chance: no redirects, no proxy unasked, bounded, once.

Never retries; what it cannot know about the outcome it says.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

MAX_REPLY = 4_096
"""Bytes of the reply that are read."""

_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The other side answered; `excerpt` is the start of what it said."""

    status: int
    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSent:
    """The request provably never left this machine."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """It may have arrived: no answer came back."""

    reason: str


Posted = Answered | NotSent | Unknown


class Poster:
    """Sends bodies; one connection each, since webhooks are rare and stale connections lie."""

    def __init__(self, *, timeout: float, proxy: str | None) -> None:
        self._timeout = timeout
        self._proxy = proxy

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Posted:
        """Send `body` once."""
        async with httpx2.AsyncClient(
            timeout=self._timeout, proxy=self._proxy, trust_env=False, follow_redirects=False
        ) as client:
            try:
                async with client.stream("POST", url, content=body, headers=headers) as response:
                    excerpt = await _start(response)
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol):
                return NotSent(reason="nobody answers at that address")
            except httpx2.TimeoutException:
                return Unknown(reason=f"no answer within {self._timeout:g} s")
            except httpx2.TransportError:
                return Unknown(reason="the connection broke before the answer")
        return Answered(status=response.status_code, excerpt=excerpt)


async def _start(response: httpx2.Response) -> str:
    read = b""
    try:
        async for chunk in response.aiter_bytes():
            read += chunk
            if len(read) >= MAX_REPLY:
                break
    except (httpx2.TransportError, httpx2.DecodingError):
        # the status is there, and that is what counts
        return ""
    text = read[:MAX_REPLY].decode(errors="replace")
    return "".join(c if c.isprintable() else " " for c in text).strip()[:_SHOWN]
