"""The server behind every fake: it answers in both eras, over whatever carries its messages.

Never use it for anything but tests: its tools crash, hang, lie and flood.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.testing.fake_offers import OFFERED, OFFERS, Followed
from thoughtgate.testing.fake_tools import BEHAVIOURS, HINTS
from thoughtgate.testing.fake_turn import Out, Script, Turn
from thoughtgate.testing.fault_log import FaultLog
from thoughtgate.testing.fault_strikes import STRIKES
from thoughtgate.testing.faults import Faults
from thoughtgate.wire import codes, handshake, methods, stateless
from thoughtgate.wire.messages import (
    BadMessage,
    Failure,
    MessageId,
    Notification,
    Reply,
    Request,
    decode,
    encode_failure,
    encode_notification,
    encode_request,
)


class FakeServer:
    """The server behind any transport; `seen` keeps every message, as it came."""

    def __init__(
        self,
        script: Script | None = None,
        faults: Faults | None = None,
        log: FaultLog | None = None,
    ) -> None:
        self.script = script or Script()
        self.faults = faults or Faults()
        self.log = log or FaultLog()
        self.sessions: set[str] = set()
        self.seen: list[JsonObject] = []
        self.cancels: list[MessageId] = []
        self.extra_tools = 0
        self.listeners: set[Callable[[], Awaitable[None]]] = set()
        self.memory: dict[str, JsonObject] = {}
        self.greetings: dict[str, JsonObject] = {}
        self.later: list[JsonObject] = []
        self.background: set[asyncio.Task[None]] = set()
        self.followed = Followed()
        self._standing: dict[str, Out] = {}
        self._joined = asyncio.Event()
        self._turns: dict[tuple[str, MessageId], Turn] = {}
        self._asked: dict[MessageId, asyncio.Future[JsonObject]] = {}
        self._last_asked = 1000
        self._methods: Mapping[str, Callable[[Turn], Awaitable[None]]] = {
            methods.INITIALIZE: self._initialize,
            methods.DISCOVER: self._discover,
            methods.TOOLS_LIST: self._list,
            methods.TOOLS_CALL: self._call,
            methods.LISTEN: self._listen,
            methods.PING: self._nothing,
            methods.SET_LEVEL: self._nothing,
            methods.SUBSCRIBE: self._subscribe,
            methods.UNSUBSCRIBE: self._subscribe,
        }
        if self.script.offers:
            self._methods = {**self._methods, **OFFERS}

    @property
    def running(self) -> int:
        """Return how many requests are being served."""
        return len(self._turns)

    def tools(self) -> list[JsonObject]:
        """Return the tools that are offered now."""
        names = [*BEHAVIOURS, *(f"extra{number}" for number in range(self.extra_tools))]
        return [
            {
                "name": name,
                "description": (BEHAVIOURS[name].__doc__ or "") if name in BEHAVIOURS else "echo",
                "inputSchema": {"type": "object"},
                "x-unknown": {"kept": [1, None]},
                **HINTS.get(name, {}),
            }
            for name in names
        ]

    async def change(self) -> None:
        """Offer one more tool and say so."""
        self.extra_tools += 1
        await self.tell_changed()

    async def tell_changed(self) -> None:
        """Say that the tools changed."""
        for listener in list(self.listeners):
            await listener()

    async def strike(self, turn: Turn, serve: Callable[[Turn], Awaitable[None]]) -> None:
        """Serve a request, or let the fault that meets it strike."""
        method, name = turn.request.method, turn.tool
        fault = self.faults.pick(method, name)
        if fault is None:
            await serve(turn)
            return
        details = {"arguments": turn.arguments} if name else {}
        self.log.note("struck", fault=fault.name.value, on=name or method, **details)
        await STRIKES[fault.name](fault, turn, serve)

    async def take(
        self,
        data: bytes,
        out: Out,
        headers: Mapping[str, str] | None = None,
        cancelled: asyncio.Event | None = None,
    ) -> None:
        """Serve one message to its end; `cancelled` is set when its stream was closed."""
        try:
            message = decode(data)
        except BadMessage as error:
            await out.send(encode_failure(error.id, error.rpc_code, error.message))
            return
        self.seen.append(_shown(message, headers or {}))
        if isinstance(message, Reply | Failure):
            self._answered(message)
            return
        if isinstance(message, Notification):
            session = (headers or {}).get(handshake.SESSION_HEADER, "") or out.session
            self._told(message, session)
            return
        turn = Turn(
            server=self,
            request=message,
            era=_era_of(message),
            out=out,
            headers=headers or {},
            cancelled=cancelled or asyncio.Event(),
        )
        key = (turn.session, message.id)  # sessions count their requests alike
        self._turns[key] = turn
        try:
            await self._serve(turn)
        finally:
            self._turns.pop(key, None)

    async def ask(self, method: str, out: Out, params: JsonObject) -> JsonObject:
        """Send a request of the server's own and return what came back."""
        self._last_asked += 1
        future: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._asked[self._last_asked] = future
        await out.send(encode_request(self._last_asked, method, params))
        return await future

    async def ask_only(self, method: str, out: Out) -> MessageId:
        """Send a request of the server's own and return its id."""
        self._last_asked += 1
        await out.send(encode_request(self._last_asked, method, {}))
        return self._last_asked

    def joined(self, session: str, out: Out) -> None:
        """Learn where a session hears what belongs to no call."""
        self._standing[session] = out
        self._joined.set()

    def left(self, session: str) -> None:
        """Learn that a session listens no more."""
        self._standing.pop(session, None)

    def ended(self, session: str) -> None:
        """Forget a session that its client has ended, and give up what is served in it."""
        self.memory.pop(session, None)
        for (of, _), turn in self._turns.items():
            if of == session and turn.task is not None:
                turn.cancelled.set()
                turn.task.cancel()

    async def standing(self, session: str) -> Out:
        """Return where a session hears what belongs to no call, as soon as it listens."""
        while session not in self._standing:
            self._joined.clear()
            await self._joined.wait()
        return self._standing[session]

    async def announce(self, out: Out, method: str, params: JsonObject) -> None:
        """Send a notification that belongs to no call."""
        await out.send(encode_notification(method, params))

    async def update(self, uri: str, follows: str) -> None:
        """Tell of a changed resource whoever follows it, or `follows` when that is given."""
        for session in self.followed.sessions(follows or uri):
            if session in self._standing:
                await self.announce(self._standing[session], methods.RESOURCE_UPDATED, {"uri": uri})
        for turn in self.followed.turns(follows or uri):
            marked = {"_meta": {stateless.SUBSCRIPTION_KEY: turn.request.id}}
            await turn.notify(methods.RESOURCE_UPDATED, {"uri": uri, **marked})

    async def _serve(self, turn: Turn) -> None:
        method = turn.request.method
        if self.script.only_initialize and len(self.seen) == 1 and method != methods.INITIALIZE:
            turn.out.cut(3)
        silent = self.script.silent_probe and method == methods.DISCOVER
        if self.script.deaf or silent:
            await turn.cancelled.wait()
        elif turn.era not in self.script.eras and method != methods.PING:
            await self._wrong_era(turn)
        else:
            serve = self._methods.get(method)
            if serve is None:
                await turn.fail(codes.METHOD_NOT_FOUND, "method not found")
            else:
                if turn.tool:
                    self.log.note("came", tool=turn.tool, arguments=turn.arguments)
                await self.strike(turn, serve)

    async def _wrong_era(self, turn: Turn) -> None:
        if turn.era is Era.STATELESS:
            await turn.fail(codes.METHOD_NOT_FOUND, "method not found")
        else:
            supported = {"supported": list(stateless.VERSIONS)}
            await turn.fail(codes.UNSUPPORTED_VERSION, "unsupported protocol version", supported)

    async def _initialize(self, turn: Turn) -> None:
        await turn.reply({
            "protocolVersion": handshake.LATEST,
            "capabilities": self._capabilities(),
            "serverInfo": {"name": "fake", "version": "1"},
            "instructions": "break me",
        })
        self.greetings[turn.session] = turn.request.params
        if turn.out.lasting:
            self.joined(turn.session, turn.out)
            self.listeners.add(lambda: turn.notify(methods.TOOLS_CHANGED, {}))

    def _capabilities(self) -> JsonObject:
        tools = {"tools": {"listChanged": True}, "logging": {}}
        return {**tools, **OFFERED} if self.script.offers else tools

    async def _discover(self, turn: Turn) -> None:
        await turn.reply({
            "supportedVersions": list(stateless.VERSIONS),
            "capabilities": self._capabilities(),
            "instructions": "break me",
            "_meta": {stateless.SERVER_KEY: {"name": "fake", "version": "1"}},
        })

    async def _list(self, turn: Turn) -> None:
        tools, size = self.tools(), self.script.pages
        kept = {"ttlMs": 0, "cacheScope": "private"} if turn.era is Era.STATELESS else {}
        if not size:
            await turn.reply({"tools": tools, **kept})
            return
        start = int(turn.request.params.get("cursor") or 0)
        page: dict[str, Any] = {"tools": tools[start : start + size], **kept}
        if self.script.endless:
            page = {**page, "tools": tools[:size], "nextCursor": str(start + size)}
        elif self.script.loop:
            page["nextCursor"] = str(size)
        elif start + size < len(tools):
            page["nextCursor"] = str(start + size)
        await turn.reply(page)

    async def _call(self, turn: Turn) -> None:
        self._note(turn.tool)
        self.log.note("ran", tool=turn.tool, arguments=turn.arguments)
        behave = BEHAVIOURS.get(turn.tool, BEHAVIOURS["echo"])
        await behave(turn, turn.arguments)

    def _note(self, name: str) -> None:
        if self.script.journal:
            with Path(self.script.journal).open("a", encoding="utf-8") as journal:
                journal.write(f"{name}\n")

    async def _subscribe(self, turn: Turn) -> None:
        if self.script.no_following:
            await turn.fail(codes.METHOD_NOT_FOUND, "not here")
            return
        following = turn.request.method == methods.SUBSCRIBE
        self.followed.change(turn.session, str(turn.request.params["uri"]), following=following)
        await turn.reply({})

    async def _listen(self, turn: Turn) -> None:
        marked = {"_meta": {stateless.SUBSCRIPTION_KEY: turn.request.id}}
        wanted = dict(turn.request.params["notifications"])
        if self.script.no_following:
            wanted.pop("resourceSubscriptions", None)
        await turn.notify(methods.ACKNOWLEDGED, {"notifications": wanted, **marked})

        async def changed() -> None:
            await turn.notify(methods.TOOLS_CHANGED, marked)

        self.listeners.add(changed)
        self.followed.listening.append(turn)
        try:
            await turn.cancelled.wait()
        finally:
            self.listeners.discard(changed)
            self.followed.listening.remove(turn)

    async def _nothing(self, turn: Turn) -> None:
        await turn.reply({})

    def _told(self, message: Notification, session: str) -> None:
        if message.method == methods.CANCELLED:
            id_ = methods.read_cancelled(message.params)
            self.cancels.append(id_)
            turn = self._turns.get((session, id_))
            if turn is not None:
                self.log.note("cancelled", tool=turn.tool, arguments=turn.arguments)
                turn.cancelled.set()

    def _answered(self, message: Reply | Failure) -> None:
        future = None if message.id is None else self._asked.pop(message.id, None)
        if future is not None and not future.done():
            future.set_result(_shown(message, {}))


def _era_of(message: Request) -> Era:
    meta = message.params.get("_meta")
    enveloped = isinstance(meta, dict) and stateless.VERSION_KEY in meta
    return Era.STATELESS if enveloped else Era.HANDSHAKE


def _shown(message: object, headers: Mapping[str, str]) -> JsonObject:
    """Return a message as JSON, for tests that ask what was seen."""
    shown = {
        name: getattr(message, name)
        for name in ("id", "method", "params", "code")
        if hasattr(message, name)
    }
    if isinstance(message, Reply):
        shown["result"] = json.loads(message.result)
    if headers:
        shown["headers"] = dict(headers)
    return shown
