"""Clients over grpc.aio: what a program pays that calls a gRPC server itself.

Never speaks MCP: the question is always the same, whatever a load has for other clients.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from grpc import aio

from benchmarks.clients import RequestFailed
from benchmarks.grpc_echo import PATH, TOOL, Text
from thoughtgate_proto.tools.v1.tool_server_pb2 import CallToolRequest
from thoughtgate_proto.tools.v1.tool_server_pb2_grpc import ToolServerStub

TEXT = "hello"
PATIENCE = 30.0
"""Seconds that a call may take."""

Ask = Callable[[], Awaitable[bytes]]
Asking = Callable[[aio.Channel], Ask]
"""Makes the question to be asked over a channel, as generated code does it."""


def natively(channel: aio.Channel) -> Ask:
    """Return what calls the tool of a native server, and takes the structured result."""
    stub = ToolServerStub(channel)

    async def ask() -> bytes:
        given = json.dumps({"text": TEXT}).encode()
        found = b""
        call = stub.CallTool(CallToolRequest(name=TOOL, arguments_json=given), timeout=PATIENCE)
        async for event in call:
            found = event.result.structured_content_json
        return found

    return ask


def by_method(channel: aio.Channel) -> Ask:
    """Return what calls the method, and takes the text of its answer."""
    say = channel.unary_unary(
        PATH, request_serializer=Text.SerializeToString, response_deserializer=Text.FromString
    )

    async def ask() -> bytes:
        answer = await say(Text(text=TEXT), timeout=PATIENCE)
        text: str = answer.text
        return text.encode()

    return ask


@dataclass(slots=True)
class KeptChannel:
    """Any number of sessions on one channel, which is kept."""

    target: str
    asking: Asking
    _opened: list[tuple[aio.Channel, Ask]] = field(default_factory=list)

    async def open(self) -> None:
        """Make the channel, once."""
        if not self._opened:
            channel = aio.insecure_channel(self.target)
            self._opened.append((channel, self.asking(channel)))

    async def request(self, method: str, params: bytes, name: str = "") -> bytes:
        """Ask once; return what came.

        Raises:
            RequestFailed: The call failed.
        """
        del method, params, name
        return await _answer(self._opened[0][1])

    async def end(self) -> None:
        """Close the channel."""
        while self._opened:
            await self._opened.pop()[0].close()


@dataclass(slots=True)
class ChannelPerCall:
    """Any number of sessions, and a new channel for each call, as some gateways do it."""

    target: str
    asking: Asking

    async def open(self) -> None:
        """Do nothing: nothing is kept."""

    async def request(self, method: str, params: bytes, name: str = "") -> bytes:
        """Ask once over a channel of its own; return what came.

        Raises:
            RequestFailed: The call failed.
        """
        del method, params, name
        async with aio.insecure_channel(self.target) as channel:
            return await _answer(self.asking(channel))

    async def end(self) -> None:
        """Do nothing: nothing was kept."""


async def _answer(ask: Ask) -> bytes:
    try:
        return await ask()
    except aio.AioRpcError as error:
        raise RequestFailed(repr(error)) from error
