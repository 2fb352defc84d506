"""How patiently a model server is asked: tries, waits between them, and what ends a try.

Never tries again what waiting cannot mend, and never passes on a server's prose: it may quote a
key.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from thoughtgate.core.errors import Malformed, ModelError, UpstreamError, UpstreamUnreachable
from thoughtgate.core.models import ModelResponse
from thoughtgate.models.posting import Body, Post, Posted
from thoughtgate.models.refusals import refusal

_MAX_REPLY = 8 * 2**20
_UNREACHED = "cannot be reached; is it running?"
_TOO_MANY, _TIMED_OUT, _CONFLICT = 429, 408, 409

Sleep = Callable[[float], Awaitable[None]]
Now = Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Bounds, in seconds. `timeout` bounds one try, `stall` the silence within a reply.

    `tries` counts all of them; waits between tries double from `backoff` up to `longest_wait`,
    which also bounds what a server may ask for by `Retry-After`.
    """

    timeout: float = 120.0
    stall: float = 60.0
    tries: int = 4
    backoff: float = 0.5
    longest_wait: float = 30.0


class Reader:
    """The body of a reply; every piece must come before the server counts as stalled."""

    def __init__(self, body: Body, stall: float) -> None:
        self._body = body
        self._stall = stall
        self._size = 0

    async def chunk(self) -> bytes:
        """Return the next bytes, `b""` at the end.

        Raises:
            Later: None came in time, or too many in all.
            UpstreamError: The connection broke.
        """
        try:
            async with asyncio.timeout(self._stall):
                data = await self._body.chunk()
        except TimeoutError:
            raise Later(what=f"fell silent for {self._stall:g} seconds within its reply") from None
        self._size += len(data)
        if self._size > _MAX_REPLY:
            raise Later(what=f"sent a reply of more than {_MAX_REPLY} bytes")
        return data

    async def whole(self) -> bytes:
        """Return all that comes until the end."""
        parts = []
        while part := await self.chunk():
            parts.append(part)
        return b"".join(parts)


Read = Callable[[Reader], Awaitable[ModelResponse]]
"""Reads the body of a reply of status 200; raises Later, Malformed or a ModelError."""


class Later(Exception):
    """A try that failed in a way that waiting may mend; `after` is what the server asked for."""

    def __init__(self, *, what: str, after: float | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.after = after


@contextmanager
def usable() -> Iterator[None]:
    """Turn an error of the reply's shape, which asking again may mend, into Later."""
    try:
        yield
    except ModelError as error:
        if not error.retriable:
            raise
        raise Later(what=f"sent what is no reply: {error.message}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What a client is given to reach a server with: how to send, to wait, and to tell the time."""

    post: Post
    sleep: Sleep
    now: Now = field(default=lambda: datetime.now(UTC))


class Asking:
    """Asks one URL. `name` stands for it in errors; `headers` hold the key."""

    def __init__(
        self, door: Door, patience: Patience, *, name: str, url: str, headers: Mapping[str, str]
    ) -> None:
        self._door = door
        self._patience = patience
        self._name = name
        self._url = url
        self._headers = {"content-type": "application/json", **headers}

    async def ask(self, body: bytes, read: Read) -> ModelResponse:
        """Return what `read` makes of the reply; tries again, bounded, what may mend itself.

        Raises:
            ModelError: No usable reply.
        """
        patience = self._patience
        for attempt in range(patience.tries):
            try:
                return await self._once(body, read)
            except Later as later:
                if attempt + 1 >= patience.tries:
                    raise ModelError(message=f"{self._name} {later.what}", retriable=True) from None
                least = patience.backoff * 2**attempt
                wait = max(least, least if later.after is None else later.after)
            await self._door.sleep(min(wait, patience.longest_wait))
        raise ModelError(message=f"{self._name} was not asked: no tries are allowed")

    async def _once(self, body: bytes, read: Read) -> ModelResponse:
        seconds = self._patience.timeout
        try:
            async with asyncio.timeout(seconds):
                return await self._sent(body, read)
        except TimeoutError:
            raise Later(what=f"gave no reply within {seconds:g} seconds") from None
        except UpstreamUnreachable:
            raise Later(what=_UNREACHED) from None
        except UpstreamError as error:
            raise Later(what=f"gave no reply: {error.code}") from None
        except OSError as error:
            raise Later(what=f"{_UNREACHED} ({type(error).__name__})") from None

    async def _sent(self, body: bytes, read: Read) -> ModelResponse:
        posted = await self._door.post(self._url, headers=self._headers, body=body)
        try:
            reader = Reader(posted.body, self._patience.stall)
            if posted.status != 200:
                await self._refuse(posted, reader)
            return await read(reader)
        except Malformed as error:
            raise Later(what=f"sent broken JSON: {error.message}") from None
        finally:
            posted.body.close()

    async def _refuse(self, posted: Posted, reader: Reader) -> None:
        status = posted.status
        found = refusal(status, await reader.whole())
        passing = status in {_TOO_MANY, _TIMED_OUT, _CONFLICT} or status >= 500
        if passing and not found.lasting:
            after = _retry_after(posted.headers, self._door.now())
            raise Later(what=f"answered {found.said}", after=after)
        raise ModelError(message=f"{self._name} refused the request: {found.said}", data=found.data)


def _retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds of a `Retry-After` header, which holds a number or a date."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        when = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max((when - now).total_seconds(), 0.0)
