"""The answers to a batch: its requests run side by side, each as if it had come alone.

Never answers a notification or an answer, and never lets one request take another's id.
"""

import asyncio

from thoughtgate.sessions import Connected
from thoughtgate.surface.clients import Live, Running
from thoughtgate.surface.errors import Failed, answered, refusal
from thoughtgate.surface.handshake import HandshakeMethods
from thoughtgate.surface.relay import Line
from thoughtgate.wire import codes
from thoughtgate.wire.ids import InFlight
from thoughtgate.wire.messages import BadMessage, Message, Request


class Batch:
    """Answers batches; `line` is how their sender is reached, `running` what it has in flight."""

    def __init__(
        self,
        answers: HandshakeMethods,
        client: Connected,
        live: Live,
        line: Line,
        running: InFlight[Running],
    ) -> None:
        self._answers = answers
        self._client = client
        self._live = live
        self._line = line
        self._running = running

    async def run(self, messages: list[Message | BadMessage]) -> list[bytes]:
        """Return the answers in the order of the requests, without those that were given up."""
        tasks: list[asyncio.Task[bytes]] = []
        for message in messages:
            if isinstance(message, BadMessage):
                failed = Failed(message.rpc_code, message.message)
                tasks.append(asyncio.create_task(_said(refusal(message.id, failed).body)))
            elif isinstance(message, Request):
                tasks.append(self._begin(message))
            else:
                self._answers.take(self._client, self._live, message)
        try:
            done = await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            for task in tasks:
                task.cancel()
        return [answer for answer in done if isinstance(answer, bytes)]

    def _begin(self, request: Request) -> asyncio.Task[bytes]:
        if self._running.get(request.id) is not None:
            failed = Failed(codes.INVALID_REQUEST, "a request with this id is in flight")
            return asyncio.create_task(_said(refusal(request.id, failed).body))
        task = asyncio.create_task(self._one(request))
        self._running.add(request.id, Running(task))
        task.add_done_callback(lambda _: self._running.discard(request.id))
        return task

    async def _one(self, request: Request) -> bytes:
        work = self._answers.result(self._client, self._live, request, self._line)
        return (await answered(request.id, work)).body


async def _said(body: bytes) -> bytes:
    return body
