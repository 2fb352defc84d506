"""OpenAI-compatible chat completions: OpenAI, Ollama, vLLM, llama.cpp, LM Studio and others.

Never shows the key: not in an error, not in a repr, not in what it passes on of a server's text.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from thoughtgate.core.errors import Malformed, ModelError, UpstreamError, UpstreamUnreachable
from thoughtgate.core.models import ModelRequest, ModelResponse
from thoughtgate.models.openai_shapes import request_body, response
from thoughtgate.models.posting import Post, Posted
from thoughtgate.wire.strict import parse

_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_OVERFLOW = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_TOO_LARGE = 413
_MAX_NAME = 80
_UNREACHED = "cannot be reached; is it running?"

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """Which server and model, and how patiently.

    `base_url` ends before `/chat/completions`, often in `/v1`; `timeout` bounds one try in
    seconds; `tries` counts all of them; waits between tries double from `backoff` up to
    `longest_wait`, which also bounds what a server may ask for by `Retry-After`.
    """

    base_url: str
    model: str
    key: str = field(default="", repr=False)
    timeout: float = 120.0
    tries: int = 4
    backoff: float = 0.5
    longest_wait: float = 30.0


class OpenAIChat:
    """Asks one model of one server."""

    def __init__(
        self,
        settings: ChatSettings,
        *,
        post: Post,
        sleep: Sleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._post = post
        self._sleep = sleep
        self._now = now
        self._name = f"model {settings.model[:_MAX_NAME]} at {_shown(settings.base_url)}"
        self._url = settings.base_url.rstrip("/") + "/chat/completions"

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Return one complete reply; what may be mended by waiting is tried again, bounded.

        Raises:
            ModelError: No usable reply. `data["kind"]` is `context_overflow` when the request
                was too long for the model.
        """
        body = request_body(request, self._settings.model)
        tries = 1
        while True:
            try:
                return await self._once(body)
            except _Later as later:
                if tries >= self._settings.tries:
                    raise later.error from None
                wait = self._settings.backoff * 2 ** (tries - 1)
                asked = wait if later.after is None else later.after
            await self._sleep(min(max(wait, asked), self._settings.longest_wait))
            tries += 1

    async def _once(self, body: bytes) -> ModelResponse:
        settings = self._settings
        headers = {"content-type": "application/json", "accept": "application/json"}
        if settings.key:
            headers["authorization"] = f"Bearer {settings.key}"
        try:
            posted = await self._post(
                self._url, headers=headers, body=body, seconds=settings.timeout
            )
        except TimeoutError:
            raise self._later(what=f"gave no reply within {settings.timeout:g} seconds") from None
        except UpstreamUnreachable:
            raise self._later(what=_UNREACHED) from None
        except UpstreamError as error:
            raise self._later(what=f"gave no reply: {error.code}") from None
        except OSError as error:
            raise self._later(what=f"{_UNREACHED} ({type(error).__name__})") from None
        return self._read(posted)

    def _read(self, posted: Posted) -> ModelResponse:
        if posted.status == 429 or posted.status >= 500:
            after = _retry_after(posted.headers, self._now())
            raise self._later(what=f"answered {posted.status}", after=after)
        if posted.status != 200:
            raise self._refused(posted)
        try:
            return response(parse(posted.body))
        except Malformed as error:
            raise self._later(what=f"sent broken JSON: {error.message}") from None
        except ModelError as error:
            raise _Later(error=error) from None

    def _later(self, *, what: str, after: float | None = None) -> "_Later":
        error = ModelError(message=f"{self._name} {what}", retriable=True)
        return _Later(error=error, after=after)

    def _refused(self, posted: Posted) -> ModelError:
        """Return the error of a refusal; the server's prose stays out, it may quote the key."""
        code = _error_code(posted.body)
        overflow = code in _OVERFLOW or posted.status == _TOO_LARGE
        said = f" ({code})" if code else ""
        return ModelError(
            message=f"{self._name} refused the request: {posted.status}{said}",
            data={"kind": "context_overflow"} if overflow else {"status": posted.status},
        )


class _Later(Exception):
    """A try that failed in a way that waiting may mend; `after` is what the server asked for."""

    def __init__(self, *, error: ModelError, after: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.after = after


def _shown(url: str) -> str:
    """Return the address without what may be secret in it: user, password and query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _error_code(body: bytes) -> str:
    try:
        value = parse(body)
    except Malformed:
        return ""
    error = value.get("error") if isinstance(value, Mapping) else None
    if not isinstance(error, Mapping):
        return ""
    for key in ("code", "type"):
        code = error.get(key)
        if isinstance(code, str) and _CODE.fullmatch(code):
            return code
    return ""


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
