"""What each kind of fault does to one request.

Never picks: which fault meets which request is the matter of `faults`.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final, TypeAlias

from thoughtgate.core.servers import Era
from thoughtgate.testing.fake_turn import Out, Turn, reply_of
from thoughtgate.testing.faults import Fault, Kind, When
from thoughtgate.wire import codes, methods
from thoughtgate.wire.messages import Reply, encode_notification, encode_reply
from thoughtgate.wire.strict import dumps

Serve: TypeAlias = Callable[[Turn], Awaitable[None]]

LETTERS: Final = "é漢😀"
NOISE: Final = (
    b"Server listening on port 3000\n", b"\x1b[32mready\x1b[0m\n", b"\n", b"\r\n",
    b'{"jsonrpc":"2.0","id":\n', b"\xff\xfe\n", b"\xef\xbb\xbf",
)  # fmt: skip
EMPTY: Final = (b": still here\n\n", b"data:\n\n", b"id: 7\n\n", b"event: odd\n\n", b"\n")
BROKEN: Final[Mapping[str, bytes]] = {
    "nan": b'{"content":[],"structuredContent":NaN}',
    "duplicate": b'{"content":[],"content":[]}',
    "deep": b'{"content":' + b"[" * 3000 + b"]" * 3000 + b"}",
    "utf8": b'{"content":[{"type":"text","text":"\xff"}]}',
    "surrogate": b'{"content":[{"type":"text","text":"\\ud800"}]}',
    "digits": b'{"content":[],"structuredContent":' + b"9" * 5000 + b"}",
    "list": b"[1]",
    "nothing": b"null",
}
"""Results that are none, by what is wrong with them."""

_NOBODY: Final = 987_654_321
"""An id that no request has."""


def leave(code: int) -> None:
    """End this process at once, by a signal when `code` is below zero."""
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


class _Held:
    """An `Out` that keeps the reply back and lets everything else through."""

    def __init__(self, out: Out) -> None:
        self.lasting = out.lasting
        self.session = out.session
        self.reply = b""
        self._out = out

    async def send(self, data: bytes) -> None:
        if reply_of(data) is None:
            await self._out.send(data)
        else:
            self.reply = data

    def framed(self, data: bytes) -> bytes:
        return self._out.framed(data)

    async def raw(self, *parts: bytes) -> None:
        await self._out.raw(*parts)

    async def refuse(self, status: int, location: str = "") -> bool:
        return await self._out.refuse(status, location)

    async def freeze(self) -> None:
        await self._out.freeze()

    async def end(self, code: int | None = None) -> bool:
        return await self._out.end(code)

    async def event(self, event: bytes) -> None:
        await self._out.event(event)

    def cut(self, code: int) -> None:
        self._out.cut(code)


async def _reply(turn: Turn, serve: Serve) -> bytes:
    """Serve a request and return its reply, which was not sent."""
    held = _Held(turn.out)
    await serve(replace(turn, out=held))
    return held.reply


async def _crash(fault: Fault, turn: Turn, serve: Serve) -> None:
    await _some(fault, turn, serve)
    turn.out.cut(fault.code or 1)


async def _exit(fault: Fault, turn: Turn, serve: Serve) -> None:
    await _some(fault, turn, serve)
    leave(fault.code or 1)


async def _some(fault: Fault, turn: Turn, serve: Serve) -> None:
    """Send nothing, half of the reply, or all of it."""
    if fault.when is not When.BEFORE:
        whole = turn.out.framed(await _reply(turn, serve))
        await turn.out.raw(whole[: len(whole) // 2] if fault.when is When.DURING else whole)


async def _hang(fault: Fault, turn: Turn, serve: Serve) -> None:
    if fault.when is When.AFTER:
        await _reply(turn, serve)
    await turn.cancelled.wait()


async def _half_open(fault: Fault, turn: Turn, serve: Serve) -> None:
    if fault.when is When.AFTER:
        await _reply(turn, serve)
    for _ in range(fault.count):
        await turn.out.event(EMPTY[0])
        await asyncio.sleep(fault.seconds)
    await turn.out.freeze()


async def _slow(fault: Fault, turn: Turn, serve: Serve) -> None:
    if fault.when is When.AFTER:
        reply = await _reply(turn, serve)
        await asyncio.sleep(fault.seconds)
        await turn.out.send(reply)
    else:
        await asyncio.sleep(fault.seconds)
        await serve(turn)


async def _late(fault: Fault, turn: Turn, serve: Serve) -> None:
    reply = await _reply(turn, serve)
    await turn.cancelled.wait()
    await asyncio.sleep(fault.seconds)
    await turn.out.send(reply)


async def _dribble(fault: Fault, turn: Turn, serve: Serve) -> None:
    whole = turn.out.framed(await _reply(turn, serve))
    await turn.out.raw(*(whole[at : at + 1] for at in range(len(whole))))


async def _split(fault: Fault, turn: Turn, serve: Serve) -> None:
    whole = turn.out.framed(_with_meta(await _reply(turn, serve), LETTERS * 20))
    cuts = [0, *(at for at in range(len(whole)) if whole[at] & 0xC0 == 0x80), len(whole)]
    await turn.out.raw(*(whole[a:b] for a, b in pairwise(cuts)))


async def _together(fault: Fault, turn: Turn, serve: Serve) -> None:
    reply = await _reply(turn, serve)
    frames = [turn.out.framed(data) for data in (_news(turn), _news(turn), reply)]
    await turn.out.raw(b"".join(frames))


async def _huge(fault: Fault, turn: Turn, serve: Serve) -> None:
    reply = await _reply(turn, serve)
    await turn.out.send(_with_meta(reply, "x" * (fault.count or 8 << 20)))


async def _noise(fault: Fault, turn: Turn, serve: Serve) -> None:
    if turn.out.lasting:
        await turn.out.raw(fault.text.encode() or b"".join(NOISE))
    else:
        await turn.out.event(b"data: Server listening on port 3000\n\n")
    await serve(turn)


async def _empty_events(fault: Fault, turn: Turn, serve: Serve) -> None:
    for event in EMPTY:
        await turn.out.event(event)
    await serve(turn)


async def _stderr(fault: Fault, turn: Turn, serve: Serve) -> None:
    for _ in range((fault.count or 1 << 20) // 1000):
        sys.stderr.write("e" * 999 + "\n")
    sys.stderr.flush()
    await serve(turn)


async def _duplicate(fault: Fault, turn: Turn, serve: Serve) -> None:
    reply = await _reply(turn, serve)
    await turn.out.send(_news(turn))  # so that there is a stream that can hold two
    await turn.out.raw(turn.out.framed(reply), turn.out.framed(reply))


async def _stray(fault: Fault, turn: Turn, serve: Serve) -> None:
    reply = await _reply(turn, serve)
    await turn.out.send(_news(turn))
    await turn.out.raw(turn.out.framed(_renamed(reply)), turn.out.framed(reply))


async def _wrong(fault: Fault, turn: Turn, serve: Serve) -> None:
    await turn.out.send(_renamed(await _reply(turn, serve)))


async def _error(fault: Fault, turn: Turn, serve: Serve) -> None:
    said = {"retryAfter": fault.seconds, "trailers": fault.count}
    data = {name: value for name, value in said.items() if value} or None
    await turn.fail(fault.code or codes.INTERNAL_ERROR, fault.text or "it failed", data)


async def _progress(fault: Fault, turn: Turn, serve: Serve) -> None:
    step = 0
    while not turn.cancelled.is_set() and (step < fault.count or not fault.count):
        step += 1
        token = turn.meta.get("progressToken")
        await turn.notify(methods.PROGRESS, {"progressToken": token, "progress": step})
        await asyncio.sleep(fault.seconds or 0.001)
    if not turn.cancelled.is_set():
        await serve(turn)


async def _storm(fault: Fault, turn: Turn, serve: Serve) -> None:
    for _ in range(fault.count or 100):
        await turn.server.tell_changed()
    await serve(turn)


async def _loop(fault: Fault, turn: Turn, serve: Serve) -> None:
    reply = json.loads(await _reply(turn, serve))
    page = {**reply.get("result", {}), "nextCursor": "1"}
    await turn.out.send(encode_reply(turn.request.id, dumps(page)))


async def _inherit(fault: Fault, turn: Turn, serve: Serve) -> None:
    words = "import sys; sys.stdin.read(0); sys.stdout.write('')"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", words)
    await process.wait()
    await serve(turn)


async def _status(fault: Fault, turn: Turn, serve: Serve) -> None:
    if not await turn.out.refuse(fault.code or 503):
        await serve(turn)


async def _redirect(fault: Fault, turn: Turn, serve: Serve) -> None:
    if not await turn.out.refuse(fault.code or 307, fault.text or "http://127.0.0.1:9/mcp"):
        await serve(turn)


async def _broken(fault: Fault, turn: Turn, serve: Serve) -> None:
    await turn.out.send(encode_reply(turn.request.id, BROKEN[fault.text or "nan"]))


async def _nothing(fault: Fault, turn: Turn, serve: Serve) -> None:
    if not await turn.out.end():
        await serve(turn)


async def _goaway(fault: Fault, turn: Turn, serve: Serve) -> None:
    await turn.out.end(fault.code)
    await serve(turn)


async def _expire(fault: Fault, turn: Turn, serve: Serve) -> None:
    known = turn.session in turn.server.sessions
    turn.server.sessions.discard(turn.session)
    if turn.era is Era.STATELESS or not known or not await turn.out.refuse(404):
        await serve(turn)


STRIKES: Mapping[Kind, Callable[[Fault, Turn, Serve], Awaitable[None]]] = {
    Kind.CRASH: _crash,
    Kind.EXIT: _exit,
    Kind.HANG: _hang,
    Kind.HALF_OPEN: _half_open,
    Kind.SLOW: _slow,
    Kind.LATE: _late,
    Kind.DRIBBLE: _dribble,
    Kind.SPLIT: _split,
    Kind.TOGETHER: _together,
    Kind.HUGE: _huge,
    Kind.NOISE: _noise,
    Kind.EMPTY_EVENTS: _empty_events,
    Kind.STDERR: _stderr,
    Kind.DUPLICATE: _duplicate,
    Kind.STRAY: _stray,
    Kind.WRONG: _wrong,
    Kind.ERROR: _error,
    Kind.PROGRESS: _progress,
    Kind.STORM: _storm,
    Kind.LOOP: _loop,
    Kind.INHERIT: _inherit,
    Kind.STATUS: _status,
    Kind.REDIRECT: _redirect,
    Kind.BROKEN: _broken,
    Kind.NOTHING: _nothing,
    Kind.GOAWAY: _goaway,
    Kind.EXPIRE: _expire,
}
"""How each kind of fault strikes: it serves the request its own way."""


def _news(turn: Turn) -> bytes:
    """Return a message that belongs before a reply and changes nothing."""
    if "progressToken" in turn.meta:
        params = {"progressToken": turn.meta["progressToken"], "progress": 1}
        return encode_notification(methods.PROGRESS, params)
    return encode_notification(methods.LOG, {"level": "debug", "data": "news"})


def _with_meta(reply: bytes, text: str) -> bytes:
    whole = json.loads(reply)
    if "result" in whole:
        whole["result"]["_meta"] = {**whole["result"].get("_meta", {}), "example.org/text": text}
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def _renamed(reply: bytes) -> bytes:
    known = reply_of(reply)
    result = known.result if isinstance(known, Reply) else b"{}"
    return encode_reply(_NOBODY, result)
