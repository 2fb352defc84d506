"""The answers to a batch: its requests run side by side, each as if it had come alone.

Never answers a notification or an answer, and never lets one request take another's id.
"""

import asyncio

from thoughtgate.sessions import Connected
from thoughtgate.surface.clients import Live, Running
from thoughtgate.surface.errors import STOPPING, Failed, answered, refusal
from thoughtgate.surface.handshake import HandshakeMethods
from thoughtgate.surface.relay import Line
from thoughtgate.wire import codes
from thoughtgate.wire.ids import InFlight
from thoughtgate.wire.messages import BadMessage, Message, Request


class Batch:
    """Answers batches; `line` is how their sender is reached, `running` what it has in flight."""

    def __init__(
        self,
        methods: HandshakeMethods,
        client: Connected,
        live: Live,
        line: Line,
        running: InFlight[Running],
    ) -> None:
        self._methods = methods
        self._client = client
        self._live = live
        self._line = line
        self._running = running
        self._tasks: list[asyncio.Task[bytes]] = []

    @property
    def answers(self) -> list[bytes]:
        """Return the answers in the order of the requests, without those that were given up.

        When the batch was cancelled, what had no answer yet is told that the gateway stops.
        """
        done = [task for task in self._tasks if task.done() and not task.cancelled()]
        return [task.result() for task in done if task.exception() is None]

    async def run(self, messages: list[Message | BadMessage]) -> None:
        """Return when every request has its answer; cancelled, when every one was given up."""
        tasks = self._tasks
        for message in messages:
            if isinstance(message, BadMessage):
                failed = Failed(message.rpc_code, message.message)
                tasks.append(asyncio.create_task(_said(refusal(message.id, failed).body)))
            elif isinstance(message, Request):
                tasks.append(self._begin(message))
            else:
                self._methods.take(self._client, self._live, message)
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            for task in tasks:
                task.cancel()

    def _begin(self, request: Request) -> asyncio.Task[bytes]:
        if self._running.get(request.id) is not None:
            failed = Failed(codes.INVALID_REQUEST, "a request with this id is in flight")
            return asyncio.create_task(_said(refusal(request.id, failed).body))
        task = asyncio.create_task(self._one(request))
        self._running.add(request.id, Running(task))
        task.add_done_callback(lambda _: self._running.discard(request.id))
        return task

    async def _one(self, request: Request) -> bytes:
        work = self._methods.result(self._client, self._live, request, self._line)
        try:
            return (await answered(request.id, work)).body
        except asyncio.CancelledError:
            running = self._running.get(request.id)
            if running is None or running.given_up:
                raise
            return refusal(request.id, STOPPING).body


async def _said(body: bytes) -> bytes:
    return body
