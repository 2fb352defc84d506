"""The page on loopback to which a browser comes back from a login, once.

Never takes an answer with another state than the one that was sent, and never shows what came
in it unescaped.
"""

import asyncio
import html
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs

from thoughtgate.core.errors import ConfigError, UpstreamDenied

PATIENCE = 300.0
"""Seconds that a person may take to log in."""

_PATH = "/callback"
_HEAD_PATIENCE = 10.0
_LONGEST_HEAD = 32 * 1024
_STRANGERS = 50
"""Requests that are not the answer, after which something is wrong."""

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<body style="font-family: sans-serif; margin: 4em auto; max-width: 34em">
<h1>{title}</h1><p>{text}</p></body></html>
"""
_STATUS = {200: "OK", 400: "Bad Request", 404: "Not Found", 421: "Misdirected Request"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an authorization server sent along with the browser."""

    code: str = ""
    state: str = ""
    issuer: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Came:
    """An answer, and the browser that waits for a page."""

    answer: Answer
    browser: asyncio.StreamWriter


class Callback:
    """Listens on 127.0.0.1 for one answer."""

    def __init__(self, port: int) -> None:
        self._host = f"127.0.0.1:{port}"
        self._state = ""
        self._strangers = 0
        self._came: asyncio.Future[_Came] = asyncio.get_running_loop().create_future()

    @property
    def url(self) -> str:
        """Return where the browser shall be sent."""
        return f"http://{self._host}{_PATH}"

    def expect(self, state: str) -> None:
        """Take only an answer with this state from now on."""
        self._state = state

    async def answer(self, patience: float = PATIENCE) -> Answer:
        """Wait for the answer; the browser waits for its page until `finish`.

        Raises:
            UpstreamDenied: Nobody came in time, or too many came with something else.
        """
        try:
            async with asyncio.timeout(patience):
                return (await asyncio.shield(self._came)).answer
        except TimeoutError:
            raise UpstreamDenied(
                message=f"nobody finished the login within {patience:g} seconds; try again"
            ) from None

    async def finish(self, title: str, text: str) -> None:
        """Show the page at the end to the browser that brought the answer, if one did."""
        if self._came.done() and self._came.exception() is None:
            await _show(self._came.result().browser, 200, title, text)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            async with asyncio.timeout(_HEAD_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            writer.close()
            return
        line, *fields = head.decode("latin-1").split("\r\n")
        status, text, answer = self._judged(line, fields)
        if answer is not None:
            self._came.set_result(_Came(answer=answer, browser=writer))
            return
        self._strangers += 1
        if self._strangers > _STRANGERS and not self._came.done():
            self._came.set_exception(
                UpstreamDenied(message="too many answers came that are not to this login")
            )
        await _show(writer, status, "Not this login", text)

    def _judged(self, line: str, fields: list[str]) -> tuple[int, str, Answer | None]:
        """Return the answer in a request, or the status and what to say where it is none."""
        hosts = [f.partition(":")[2].strip() for f in fields if f.lower().startswith("host:")]
        if hosts != [self._host]:
            return 421, "This address answers to its own name only.", None
        method, _, target = line.partition(" ")
        path, _, query = target.partition(" ")[0].partition("#")[0].partition("?")
        if method != "GET" or path != _PATH:
            return 404, "There is nothing here.", None
        answer = _read(query)
        known = self._state and secrets.compare_digest(answer.state.encode(), self._state.encode())
        if not known or self._came.done():
            return 400, "This answer belongs to no login that waits for one.", None
        return 200, "", answer


@asynccontextmanager
async def listening(port: int = 0) -> AsyncIterator[Callback]:
    """Listen for one answer for the length of the block; port 0 takes a free one.

    Raises:
        ConfigError: The port is taken.
    """
    made: list[Callback] = []
    try:
        server = await asyncio.start_server(
            lambda reader, writer: made[0].serve(reader, writer),
            "127.0.0.1",
            port,
            limit=_LONGEST_HEAD,
        )
    except OSError:
        raise ConfigError(message=f"port {port} is taken; choose another --port") from None
    callback = Callback(server.sockets[0].getsockname()[1])
    made.append(callback)
    try:
        yield callback
    finally:
        server.close()
        await callback.finish("Not logged in", "The login was broken off. Close this page.")


def _read(query: str) -> Answer:
    given = parse_qs(query, keep_blank_values=True)
    one = {name: values[0] for name, values in given.items() if len(values) == 1}
    return Answer(
        code=one.get("code", ""),
        state=one.get("state", ""),
        issuer=one.get("iss"),
        error=one.get("error", ""),
    )


async def _show(writer: asyncio.StreamWriter, status: int, title: str, text: str) -> None:
    if writer.is_closing():
        return
    body = _PAGE.format(title=html.escape(title), text=html.escape(text)).encode()
    head = (
        f"HTTP/1.1 {status} {_STATUS[status]}\r\n"
        "Content-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
        "frame-ancestors 'none'\r\n"
        "Referrer-Policy: no-referrer\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    writer.write(head.encode("latin-1") + body)
    try:
        async with asyncio.timeout(_HEAD_PATIENCE):
            await writer.drain()
    except (TimeoutError, OSError):
        return  # the browser is gone, what it was to say is said on the terminal too
    finally:
        writer.close()
