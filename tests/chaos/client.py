"""One client among many: it calls at random, gives up, hangs up, reads slowly, and answers.

Never judges what it hears; it writes all of it into the history.
"""

import asyncio
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from tests.chaos.history import Event, What, struck
from tests.chaos.pace import rest
from tests.chaos.pipe import PipeExchange, PipeLines
from tests.chaos.wire import Broken, Lines
from tests.chaos.wire import Exchange as HttpExchange

OLD, NEW = "2025-11-25", "2026-07-28"
REPLIED = -32050
"""The code of the errors that the fault plans make servers answer with."""

PATIENCE = 90.0
"""Seconds after which a call that has brought nothing counts as one without an outcome."""

Exchange = HttpExchange | PipeExchange

_RESERVED = "io.modelcontextprotocol/"
_TOKEN = re.compile(r"tok-\d+-\d+")
_FORM = {"message": "well?", "requestedSchema": {"type": "object", "properties": {}}}
_CAN: Mapping[str, Any] = {"elicitation": {}}


class Manner(Enum):
    """How a client goes about a call."""

    PLAIN = 75
    CANCEL = 10
    LEAVE = 7
    SLOW = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A tool that may be called, and how often."""

    server: str
    tool: str
    weight: int
    calm: bool = False


@dataclass(slots=True, kw_only=True)
class Diary:
    """Where clients write; `now` is seconds since the begin, `odd` what no call can show.

    `kills` are the times when a worker was killed.
    """

    now: Callable[[], float]
    events: list[Event] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    kills: list[float] = field(default_factory=list)

    def wonder(self, text: str) -> None:
        """Write what should not be, unless the end of a worker explains it."""
        if not struck(self.kills, self.now(), self.now()):
            self.odd.append(text)

    def note(self, what: What, call: Event, **fields: Any) -> None:
        """Write what has happened to a round."""
        self.events.append(replace(call, at=self.now(), what=what, **fields))


class Client:
    """A client of one era; its calls go over connections to the gateway, or over a pipe."""

    def __init__(
        self,
        number: int,
        lines: Lines | PipeLines,
        diary: Diary,
        targets: Sequence[Target],
        seed: str,
    ) -> None:
        self.path = "/mcp/side" if number % 8 in {6, 7} else "/mcp"
        self.name = f"client-{number}"
        self.old = number % 2 == 0
        self._number = number
        self._random = random.Random(f"{seed}/{number}")
        self._lines: Any = lines
        self._diary = diary
        self._targets = targets
        self._weights = [target.weight for target in targets]
        self._calls = 0
        self._ids = 0
        self._session = ""
        self._gone: set[str] = set()
        self._side: set[asyncio.Task[None]] = set()

    async def run(self, over: asyncio.Event, pause: float) -> None:
        """Call until it is over, then end the session."""
        await self._hello()
        if self._number % 8 < 2:
            self._aside(self._listen())
        while not over.is_set():
            at_once = self._random.choice((1, 1, 1, 1, 2, 4))
            await asyncio.gather(*(self._call() for _ in range(at_once)))
            if self._random.random() < 0.03:
                await self._list()
            if self._random.random() < 0.01:
                await self._leave()
                await self._hello()
            await rest(self._random.random() * pause * 2)
        await self._leave()
        await self._lines.close()

    async def reaches(self, server: str) -> bool:
        """Tell whether a server answers a call of `echo`, apart from the history."""
        if not self._session:
            await self._hello()
        params = {"name": f"{server}__echo", "arguments": {"token": "none"}}
        message, headers = self._dressed("tools/call", params, trace="")
        try:
            exchange = await self._lines.send("POST", self.path, headers, message)
            await exchange.head()
            got = [one async for one in exchange.messages()]
        except Broken:
            return False
        self._lines.give_back(exchange)
        result = got[-1].get("result", {}) if got else {}
        return bool(result.get("structuredContent", {}).get("token"))

    async def end(self) -> None:
        """End the session and hang up."""
        await self._leave()
        await self._lines.close()

    async def _call(self) -> None:
        [target] = self._random.choices(self._targets, self._weights)
        self._calls += 1
        token = f"tok-{self._number}-{self._calls}"
        params: dict[str, Any] = {
            "name": f"{target.server}__{target.tool}",
            "arguments": _arguments(target.tool, token),
        }
        call = Event(
            at=0.0,
            what=What.INVOKE,
            token=token,
            trace="",
            client=self.name,
            server=target.server,
            tool=target.tool,
        )
        [manner] = self._random.choices(list(Manner), [one.value for one in Manner])
        for _ in range(3):
            call = replace(call, trace=f"{self._random.getrandbits(128):032x}")
            asked = await self._round(call, params, manner)
            if asked is None:
                return
            answers = {name: _answer(token) for name in asked.get("inputRequests", {})}
            params = {**params, "inputResponses": answers}
            if "requestState" in asked:
                params["requestState"] = asked["requestState"]

    async def _round(self, call: Event, params: dict[str, Any], manner: Manner) -> Any | None:
        """Send one request and follow it to its end; returns a reply that asks for more."""
        self._ids += 1
        id_ = self._ids
        message, headers = self._dressed("tools/call", params, call.trace, id_)
        self._diary.note(What.INVOKE, call)
        begun: list[Exchange] = []
        try:
            async with asyncio.timeout(PATIENCE):
                exchange = await self._lines.send("POST", self.path, headers, message)
                begun.append(exchange)
                giving_up = self._give_up(call, id_, exchange, manner)
                try:
                    return await self._follow(call, id_, exchange, manner)
                finally:
                    if giving_up is not None:
                        giving_up.cancel()
                        await asyncio.wait([giving_up])
        except Broken as error:
            if call.trace not in self._gone:
                self._diary.note(What.BROKEN, call, text=str(error))
        except TimeoutError:
            pass  # the checker sees that it has no outcome
        for exchange in begun:
            self._lines.drop(exchange)
        return None

    async def _follow(
        self, call: Event, id_: int, exchange: Exchange, manner: Manner
    ) -> Any | None:
        await exchange.head()
        if manner is Manner.SLOW:
            await rest(self._random.random() * 1.5)
        asked, ended, tokens = None, False, set[str]()
        async for message in exchange.messages():
            tokens |= set(_TOKEN.findall(json.dumps(message)))
            if "method" in message:
                if "id" in message:
                    self._aside(self._tell({"id": message["id"], "result": _answer(call.token)}))
                continue
            ended = True
            if message.get("id") != id_:
                text = f"status {exchange.status}: {json.dumps(message)[:300]}"
                self._diary.note(What.BROKEN, call, text=text)
                if exchange.status == 404:
                    self._session = ""
                continue
            asked = self._heard(call, message, tuple(sorted(tokens)))
        if not ended:
            self._diary.note(What.ENDED, call)
        self._lines.give_back(exchange)
        if not self._session and self.old:
            await self._hello()
        return asked

    def _heard(self, call: Event, message: Any, tokens: tuple[str, ...]) -> Any | None:
        """Write an answer into the history; returns it when it asks for more."""
        if "error" in message:
            failed = message["error"]
            data = failed.get("data") if isinstance(failed.get("data"), dict) else {}
            told = {**data, "error": _code(failed), "message": failed.get("message")}
            self._diary.note(What.ERROR, call, tokens=tokens, **_error(told))
            return None
        result = message["result"]
        if result.get("isError"):
            told = result.get("structuredContent") or {}
            self._diary.note(What.ERROR, call, tokens=tokens, **_error(told))
            return None
        if result.get("resultType") == "input_required":
            self._diary.note(What.ASKED, call, tokens=tokens)
            return result
        self._diary.note(What.REPLY, call, tokens=tokens)
        return None

    def _give_up(
        self, call: Event, id_: int, exchange: Exchange, manner: Manner
    ) -> "asyncio.Task[None] | None":
        """Begin to cancel the call, or to hang up, after a moment; None when it goes its way."""
        if manner in {Manner.PLAIN, Manner.SLOW}:
            return None
        after = self._random.random() ** 2 * 1.5

        async def cancel() -> None:
            await rest(after)
            if manner is Manner.LEAVE or not self.old:
                self._diary.note(What.LEFT, call)
                self._gone.add(call.trace)
                exchange.hang_up()
                return
            self._diary.note(What.CANCEL, call)
            params = {"requestId": id_, "reason": "chaos"}
            if await self._tell({"method": "notifications/cancelled", "params": params}):
                self._diary.note(What.CANCELLED, call)

        return asyncio.get_running_loop().create_task(cancel())

    async def _hello(self) -> None:
        if not self.old:
            return
        info = {"name": self.name, "version": "0"}
        params = {"protocolVersion": OLD, "capabilities": _CAN, "clientInfo": info}
        body = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        with suppress(Broken):
            exchange = await self._lines.send("POST", self.path, {}, body.encode())
            await exchange.head()
            async for _ in exchange.messages():
                self._session = exchange.headers.get("mcp-session-id", "")
            self._lines.give_back(exchange)
            await self._tell({"method": "notifications/initialized"})

    async def _listen(self) -> None:
        """Hold the stream of what belongs to no call: the session's own, or a subscription's."""
        body, headers = b"", self._own
        if not self.old:
            wanted = {"notifications": {"toolsListChanged": True}}
            body, headers = self._dressed("subscriptions/listen", wanted, "")
        with suppress(Broken):
            verb = "GET" if self.old else "POST"
            exchange = await self._lines.send(verb, self.path, headers, body)
            await exchange.head()
            async for message in exchange.messages():
                if _TOKEN.search(json.dumps(message)):
                    self._diary.wonder(f"{self.name}: a stream of its own told of a call")

    async def _list(self) -> None:
        """List all tools; those of the healthy servers are always there."""
        names: set[str] = set()
        params: dict[str, Any] = {}
        for _ in range(30):
            body, headers = self._dressed("tools/list", params, "")
            try:
                exchange = await self._lines.send("POST", self.path, headers, body)
                await exchange.head()
                got = [message async for message in exchange.messages()]
            except Broken as error:
                self._diary.wonder(f"{self.name}: a list broke off: {error}")
                return
            self._lines.give_back(exchange)
            result = got[-1].get("result") if got else None
            if result is None:  # the list has changed between two pages
                names, params = set(), {}
                continue
            names |= {tool["name"] for tool in result["tools"]}
            if "nextCursor" not in result:
                break
            params = {"cursor": result["nextCursor"]}
        else:
            return
        missing = {f"{one.server}__{one.tool}" for one in self._targets if one.calm} - names
        if missing:
            self._diary.wonder(f"{self.name}: a list without {', '.join(sorted(missing))}")

    async def _leave(self) -> None:
        for task in self._side:
            task.cancel()
        if self._session:
            with suppress(Broken):
                exchange = await self._lines.send("DELETE", self.path, self._own)
                await exchange.head()
                async for _ in exchange.messages():
                    pass
                self._lines.drop(exchange)
        self._session = ""

    async def _tell(self, message: dict[str, Any]) -> bool:
        """Post a notification or an answer; tells whether the gateway took it."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        try:
            exchange = await self._lines.send("POST", self.path, self._own, body)
            await exchange.head()
            async for _ in exchange.messages():
                pass
        except Broken:
            return False
        self._lines.give_back(exchange)
        return bool(exchange.status == 202)

    @property
    def _own(self) -> dict[str, str]:
        if not self._session:
            return {}
        return {"mcp-session-id": self._session, "mcp-protocol-version": OLD}

    def _dressed(
        self, method: str, params: dict[str, Any], trace: str, id_: int = 0
    ) -> tuple[bytes, dict[str, str]]:
        """Return a request and its headers, as the era wants them."""
        meta: dict[str, Any] = {}
        if "arguments" in params:
            meta["progressToken"] = params["arguments"]["token"]
        if trace:
            meta["traceparent"] = f"00-{trace}-{trace[:16]}-01"
        headers = self._own
        if not self.old:
            meta[_RESERVED + "protocolVersion"] = NEW
            meta[_RESERVED + "clientCapabilities"] = _CAN
            meta[_RESERVED + "clientInfo"] = {"name": self.name, "version": "0"}
            headers = {"mcp-protocol-version": NEW, "mcp-method": method}
            if "name" in params:
                headers["mcp-name"] = str(params["name"])
        body = {"jsonrpc": "2.0", "id": id_, "method": method}
        return json.dumps({**body, "params": {**params, "_meta": meta}}).encode(), headers

    def _aside(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._side.add(task)
        task.add_done_callback(self._side.discard)


def _arguments(tool: str, token: str) -> dict[str, Any]:
    if tool == "ask":
        return {"token": token, "method": "elicitation/create", "params": _FORM}
    if tool == "want_input":
        asked = {"method": "elicitation/create", "params": _FORM}
        return {"token": token, "requests": {"q": asked}}
    return {"token": token}


def _answer(token: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"token": token}}


def _error(told: Mapping[str, Any]) -> dict[str, str]:
    """Return what an error says of itself."""
    words = {"code": "error", "text": "message", "outcome": "outcome"}
    return {field: str(told.get(name, "")) for field, name in words.items()}


def _code(error: Mapping[str, Any]) -> str:
    """Return the gateway's code of an error, or that a server's own was relayed."""
    if error.get("code") == REPLIED:
        return "upstream_replied"
    data = error.get("data")
    return str(data["error"]) if isinstance(data, dict) and "error" in data else "none"
