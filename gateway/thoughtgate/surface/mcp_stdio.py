"""The MCP face over standard input and output: one client, both eras on one pipe.

Never writes anything but protocol. Calls run side by side; a cancellation overtakes them.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, Protocol

from thoughtgate.core.calls import LOCAL
from thoughtgate.core.errors import GateError
from thoughtgate.sessions import Connected, Sessions
from thoughtgate.surface.batches import Batch
from thoughtgate.surface.clients import Clients, Live, Running
from thoughtgate.surface.comebacks import Comebacks
from thoughtgate.surface.desk import Desk
from thoughtgate.surface.errors import Answer, Failed, answered, failed_by, refusal
from thoughtgate.surface.handshake import HandshakeMethods
from thoughtgate.surface.listening import Listening
from thoughtgate.surface.mailbox import Changes, Mailbox
from thoughtgate.surface.ports import Gateway
from thoughtgate.surface.relay import Line
from thoughtgate.surface.rounds import Rounds
from thoughtgate.surface.settings import FaceSettings
from thoughtgate.surface.stateless import StatelessMethods, asker_of
from thoughtgate.wire import batches, codes, handshake, methods, stateless
from thoughtgate.wire.ids import InFlight
from thoughtgate.wire.lines import SkippingSplitter, TooLong
from thoughtgate.wire.messages import (
    BadMessage,
    Message,
    Notification,
    Request,
    decode,
    encode_reply,
)
from thoughtgate.wire.salvage import asked_id

_CHUNK: Final = 65536
_TOO_MANY: Final = "too many requests are in flight; try later"


class Reader(Protocol):
    """Where a client's bytes come from; `asyncio.StreamReader` is one."""

    async def read(self, n: int, /) -> bytes:
        """Return at most `n` bytes, none at the end."""
        ...


class Writer(Protocol):
    """Where our bytes go; `asyncio.StreamWriter` is one."""

    def write(self, data: bytes, /) -> None:
        """Take bytes."""
        ...

    async def drain(self) -> None:
        """Return when there is room for more."""
        ...


async def serve_stdio(
    gateway: Gateway,
    sessions: Sessions,
    domain: str,
    pipe: tuple[Reader, Writer],
    settings: FaceSettings,
    grace: float = 2.0,
) -> None:
    """Serve one client until its end of the pipe closes.

    Calls that run then have `grace` seconds to finish and be answered: who pipes a file of requests
    in wants the answers.

    Raises:
        UnknownTarget: No such domain.
    """
    gateway.view(domain)
    face = _StdioFace(gateway, sessions, domain, pipe[1], settings)
    try:
        await face.read(pipe[0])
        await face.finish(grace)
    except (BrokenPipeError, ConnectionResetError):  # the client is gone: there is nobody to tell
        pass
    finally:
        await face.close()


class _StdioFace:
    def __init__(
        self,
        gateway: Gateway,
        sessions: Sessions,
        domain: str,
        writer: Writer,
        settings: FaceSettings,
    ) -> None:
        self._domain = domain
        self._writer = writer
        self._settings = settings
        self._order = asyncio.Lock()
        self._too_long = BadMessage(
            message=f"a line is longer than {settings.max_body} bytes",
            rpc_code=codes.PARSE_ERROR,
        )
        desk = Desk(gateway, page_size=settings.page_size, call_timeout=settings.call_timeout)
        self._changes = Changes(gateway)
        self._clients = Clients(gateway, sessions, self._changes, Comebacks(settings.seal_key))
        self._listening = Listening(gateway, desk, self._changes)
        self._old = HandshakeMethods(desk, self._clients, settings.info)
        self._rounds = Rounds(desk, settings.seal_key)
        self._new = StatelessMethods(desk, self._rounds, settings.info)
        self._session_id = ""
        self._running: InFlight[Running] = InFlight()
        self._tasks: set[asyncio.Task[None]] = set()
        self._standing: set[asyncio.Task[None]] = set()

    async def read(self, reader: Reader) -> None:
        """Take messages until the end; a line that is too long is refused and read past."""
        splitter = SkippingSplitter(cap=self._settings.max_body)
        while data := await reader.read(_CHUNK):
            for line in splitter.feed(data):
                if isinstance(line, TooLong):
                    await self._refuse(line.head, self._too_long)
                else:
                    await self._take(line)

    async def finish(self, grace: float) -> None:
        """Let running calls end, for a while."""
        calls = self._tasks - self._standing
        if calls:
            await asyncio.wait(calls, timeout=grace)

    async def close(self) -> None:
        """Give up what still runs and forget the client."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session_id:
            self._clients.sessions.close(self._session_id, LOCAL)
        self._changes.close()
        self._rounds.close()
        self._clients.close()

    async def _take(self, line: bytes) -> None:
        try:
            if batches.is_batch(line):
                self._batch(line)
                return
            message = decode(line)
        except BadMessage as error:
            await self._refuse(line, error)
            return
        if isinstance(message, Request):
            await self._request(message)
        else:
            self._note(message)

    async def _refuse(self, line: bytes, error: BadMessage) -> None:
        failed = Failed(error.rpc_code, error.message)
        await self._write(refusal(asked_id(line, error), failed).body)

    def _note(self, message: Message) -> None:
        client = self._client()
        if isinstance(message, Notification) and message.method == methods.CANCELLED:
            running = self._running.get(methods.read_cancelled(message.params))
            if running is not None:
                running.give_up()
                return
        if client is None:
            return
        if isinstance(message, Notification) and message.method == methods.INITIALIZED:
            self._start(self._tell(client[1].mailbox), standing=True)
        self._old.take(*client, message)

    def _batch(self, line: bytes) -> None:
        client = self._client()
        messages = batches.read_batch(line, client[0].version if client else "")
        if client is None:
            return
        if len(self._running) + len(messages) > self._settings.max_running:
            raise BadMessage(message=_TOO_MANY, rpc_code=codes.INTERNAL_ERROR)
        reach = Line(emit=self._write, asks=client[1].asks)
        batch = Batch(self._old, *client, reach, self._running)
        self._start(self._answer_batch(batch, messages), standing=False)

    async def _answer_batch(self, batch: Batch, messages: list[Message | BadMessage]) -> None:
        await batch.run(messages)
        if batch.answers:
            await self._write(b"[%b]" % b",".join(batch.answers))

    async def _request(self, request: Request) -> None:
        """Start a request. What needs no waiting, such as `initialize`, is answered at once."""
        if request.method == methods.INITIALIZE:
            await self._write(self._hello(request).body)
            return
        if len(self._running) >= self._settings.max_running:
            failed = Failed(codes.INTERNAL_ERROR, _TOO_MANY)
            await self._write(refusal(request.id, failed).body)
            return
        if self._running.get(request.id) is not None:
            failed = Failed(codes.INVALID_REQUEST, "a request with this id is in flight")
            await self._write(refusal(request.id, failed).body)
            return
        listens = request.method == methods.LISTEN
        task = self._start(self._answer(request), standing=listens)
        self._running.add(request.id, Running(task))
        task.add_done_callback(lambda _: self._running.discard(request.id))

    async def _answer(self, request: Request) -> None:
        answer = await answered(request.id, self._work(request))
        self._running.discard(request.id)
        await self._write(answer.body)

    async def _work(self, request: Request) -> bytes:
        meta = request.params.get("_meta")
        if type(meta) is dict and stateless.VERSION_KEY in meta:
            return await self._stateless(request)
        client = self._client()
        if client is not None:
            line = Line(emit=self._write, asks=client[1].asks)
            return await self._old.result(*client, request, line)
        if request.method == methods.PING:
            return b"{}"
        raise BadMessage(message="send initialize first", rpc_code=codes.INVALID_REQUEST)

    async def _stateless(self, request: Request) -> bytes:
        envelope = stateless.read_envelope(request.method, request.params)
        if request.method == methods.LISTEN:
            return await self._listen(request, envelope)
        line = Line(emit=self._write)
        return await self._new.result(request, envelope, self._domain, LOCAL, line)

    async def _listen(self, request: Request, envelope: stateless.Envelope) -> bytes:
        asker = asker_of(envelope, self._domain, LOCAL)
        async with self._listening.opened(request, asker) as (mailbox, first):
            await self._write(first)
            await self._tell(mailbox)
        return stateless.listen_result(request.id)

    async def _tell(self, mailbox: Mailbox) -> None:
        """Write what comes into a mailbox until that closes."""
        reader = mailbox.attach()
        try:
            while (frames := await reader.take(None)) is not None:
                for frame in frames:
                    await self._write(frame)
        finally:
            reader.end()

    def _hello(self, request: Request) -> Answer:
        try:
            if self._session_id:
                raise _again()
            said = handshake.read_hello(request.params)
            result = self._old.welcome(said.version, self._domain)
            self._session_id = self._clients.open(said, LOCAL, self._domain).id
        except GateError as error:
            return refusal(request.id, failed_by(error))
        return Answer(encode_reply(request.id, result))

    def _client(self) -> tuple[Connected, Live] | None:
        return self._clients.find(self._session_id, LOCAL, self._domain)

    def _start(self, work: Coroutine[Any, Any, None], *, standing: bool) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        if standing:
            self._standing.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Forget a task. Only writing to a client that is gone can have failed in it."""
        self._tasks.discard(task)
        self._standing.discard(task)
        if not task.cancelled():
            task.exception()

    async def _write(self, message: bytes) -> None:
        """Write one line; white space inside a relayed result may hold line ends."""
        if b"\n" in message or b"\r" in message:
            message = message.replace(b"\n", b" ").replace(b"\r", b" ")
        async with self._order:
            self._writer.write(message + b"\n")
            await self._writer.drain()


def _again() -> BadMessage:
    return BadMessage(message="initialize came twice", rpc_code=codes.INVALID_REQUEST)
