"""A gateway on the pipe of one client: a process of its own over the registry of the run.

Never reads a message for meaning beyond whose it is, and sends nothing twice.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from tests.chaos.wire import Broken
from tests.support.gate import STOP, Home, command
from tests.support.waiting import within

_LIMIT = 2**26


class PipeExchange:
    """One request on a pipe, and what comes for it."""

    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, pipe: "PipeLines", id_: int | None) -> None:
        self.id = id_
        self.came: asyncio.Queue[Any] = asyncio.Queue()
        self._pipe = pipe

    async def head(self) -> None:
        """Return at once: on a pipe a reply has none."""

    async def messages(self) -> AsyncIterator[Any]:
        """Give each message as it comes, the reply last.

        Raises:
            Broken: There is no reply.
        """
        over = self.id is None
        while not over:
            message = await self.came.get()
            if message is None:
                raise Broken(what="no reply", why=EOFError())
            over = "method" not in message
            yield message

    def hang_up(self) -> None:
        """Cancel the request, unless it is over."""
        self._pipe.cancel(self)


class PipeLines:
    """The one pipe of a client, in place of connections."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._begun: dict[int, PipeExchange] = {}
        self._tokens: dict[str, PipeExchange] = {}

    async def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> PipeExchange:
        """Send a message; what comes for a request is still to be read."""
        message = json.loads(body)
        exchange = PipeExchange(self, message["id"] if "method" in message else None)
        if exchange.id is not None:
            self._begun[exchange.id] = exchange
            token = message.get("params", {}).get("_meta", {}).get("progressToken")
            self._tokens[str(token)] = exchange
        if self._process is None:
            await self._start()
        self._write(message)
        return exchange

    def cancel(self, exchange: PipeExchange) -> None:
        """Say that nobody waits for a request any more."""
        if exchange.id is not None and self._begun.pop(exchange.id, None) is not None:
            params = {"requestId": exchange.id, "reason": "chaos"}
            told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            self._write(told)
            exchange.came.put_nowait(None)

    def give_back(self, exchange: PipeExchange) -> None:
        """Do nothing: there is one pipe."""

    def drop(self, exchange: PipeExchange) -> None:
        """Wait for an exchange no more."""
        exchange.hang_up()

    async def close(self) -> None:
        """Close the pipe; the gateway ends by that.

        Raises:
            TimeoutError: It does not; it is killed.
        """
        if self._process is None or self._reading is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        try:
            await within(self._process.wait(), STOP)
        finally:
            if self._process.returncode is None:
                self._process.kill()
            await within(self._reading, STOP)

    async def _start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *command("serve", "--stdio"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=self._home.environment,
            limit=_LIMIT,
        )
        self._reading = asyncio.create_task(self._read(self._process))

    def _write(self, message: Any) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            message = json.loads(line)
            params = message.get("params", {})
            if "method" in message:
                exchange = self._tokens.get(str(params.get("progressToken")))
            else:
                exchange = self._begun.pop(message["id"], None)
            if exchange is not None:
                exchange.came.put_nowait(message)
        for exchange in self._begun.values():
            exchange.came.put_nowait(None)
