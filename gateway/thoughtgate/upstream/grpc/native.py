"""A link to a server that speaks `thoughtgate.tools.v1`: each request is an RPC on one channel.

Never sends a call twice, and cancels what nobody waits for.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace

from google.protobuf.message import DecodeError

from thoughtgate.core.calls import Call
from thoughtgate.core.errors import (
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamReplied,
)
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.servers import Era
from thoughtgate.core.tools import Tool
from thoughtgate.upstream.grpc.channel import Connection
from thoughtgate.upstream.grpc.health import check_health
from thoughtgate.upstream.grpc.native_call import CALL_TOOL, reply_of, request_of
from thoughtgate.upstream.grpc.native_list import read_tools
from thoughtgate.upstream.grpc.sending import seconds_for, trace_metadata
from thoughtgate.upstream.ports import Changed, Counts, Identity, Peer
from thoughtgate.wire import codes, methods
from thoughtgate.wire.messages import Reply
from thoughtgate_proto.tools.v1 import tool_server_pb2

VERSION = "thoughtgate.tools.v1"
SERVICE = f"{VERSION}.ToolServer"

_GET_INFO = f"/{SERVICE}/GetServerInfo"
_WATCH = f"/{SERVICE}/WatchTools"

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds between two attempts to watch a server that ends the stream."""

MOST_TOLD = 100
"""Revisions that one stream may tell; more of them come, after a pause, in another."""

SHORTEST_TTL = 5.0
"""Seconds for which a list is taken for the present one at least, whatever the server says."""


class NativeLink:
    """One server's channel, kept for as long as the server can be reached."""

    def __init__(self, connection: Connection, identity: Identity) -> None:
        self.peer = Peer(era=Era.STATELESS, version=VERSION, server_info={}, capabilities={})
        self.counts = Counts()
        self._connection = connection
        self._identity = identity
        self._chance = random.Random()
        self._revision = ""
        self._ttl: float | None = None
        self._max_arguments: int | None = None
        self._changed: Changed | None = None

    @property
    def lost(self) -> bool:
        """Tell whether the server cannot be reached any more."""
        return self._connection.lost

    @property
    def questions(self) -> int:
        """Return 0: in this protocol a server asks nothing."""
        return 0

    async def greet(self) -> None:
        """Ask who is there, and whether it serves.

        Raises:
            UpstreamError: Nobody, or one who does not speak this protocol, or does not serve now.
        """
        asked = tool_server_pb2.GetServerInfoRequest(
            client_name=self._identity.name, client_version=self._identity.version
        )
        try:
            raw = await self._connection.answer(_GET_INFO, asked.SerializeToString())
            info = tool_server_pb2.GetServerInfoResponse.FromString(raw)
        except UpstreamRefused as error:
            if error.data.get("grpcStatus") != "UNIMPLEMENTED":
                raise
            raise UpstreamGarbled(
                message=f"it does not speak {VERSION}; to make its own methods tools, name its"
                " services (reflect)"
            ) from None
        except DecodeError:
            raise UpstreamGarbled(message="what it says of itself cannot be read") from None
        await check_health(self._connection, SERVICE)
        if info.HasField("max_arguments_bytes"):
            self._max_arguments = info.max_arguments_bytes
        self.peer = Peer(
            era=Era.STATELESS,
            version=VERSION,
            server_info=_server_info(info),
            capabilities={"tools": {"listChanged": True}},
            instructions=info.instructions,
        )

    async def request(self, method: str, params: JsonObject) -> bytes:
        """Return the tools; a native server has nothing else. See `Link.request`."""
        if method != methods.TOOLS_LIST:
            raise _unknown(method)
        cursor = params.get("cursor")
        listed = await read_tools(self._connection, cursor if isinstance(cursor, str) else "")
        self._revision, self._ttl = listed.revision, listed.ttl
        return listed.page

    async def call(self, call: Call) -> Reply:
        """Send a call and return its result as MCP has it; see `Link.call`."""
        tool = call.found
        if not isinstance(tool, Tool):
            raise _unknown(tool.name)
        request = request_of(call, tool, self._max_arguments)
        seconds = seconds_for(call, asyncio.get_running_loop().time())
        try:
            with self._connection.answers(
                CALL_TOOL, request, seconds=seconds, more=trace_metadata(call)
            ) as answers:
                return await reply_of(answers, call, self.counts)
        except UpstreamRefused as error:
            raise self._refused(error, tool) from None

    async def subscribe(self, uri: str) -> None:
        """Refuse: a native server has no resources; see `Link.subscribe`."""
        raise _unknown(methods.SUBSCRIBE)

    async def unsubscribe(self, uris: Sequence[str]) -> None:
        """Do nothing: nothing is followed; see `Link.unsubscribe`."""

    def tell(self, method: str, params: JsonObject) -> None:
        """Do nothing: in this protocol a client has nothing to tell."""

    async def watch(self, changed: Changed) -> str:
        """Follow the revision of the tools until the server cannot be reached; see `Link.watch`.

        Behind a new connection may be another server, which numbers its revisions anew.
        """
        self._changed = changed
        following = asyncio.get_running_loop().create_task(self._follow(changed))
        over = asyncio.get_running_loop().create_task(
            self._connection.over(lambda: changed("tools"))
        )
        try:
            await asyncio.wait((following, over), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (following, over):
                task.cancel()
            await asyncio.wait((following, over))
        if not following.cancelled():
            following.result()  # raises when it ended by a bug
        return over.result()

    async def aclose(self) -> None:
        """Close the channel; calls that still wait get UpstreamLost."""
        await self._connection.aclose()

    async def _follow(self, changed: Changed) -> None:
        """Watch the revision, again whenever the stream ends, until cancelled."""
        pause = FIRST_PAUSE
        while True:
            try:
                if await self._watch_once(changed):
                    pause = FIRST_PAUSE
            except UpstreamRefused as error:
                if error.data.get("grpcStatus") == "UNIMPLEMENTED":
                    return await self._go_by_ttl(changed)
            except UpstreamError:
                pass  # the next stream tells what this one did not
            await asyncio.sleep(pause * (0.5 + self._chance.random() / 2))
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _watch_once(self, changed: Changed) -> bool:
        """Hold one stream to its end; tell whether it said anything."""
        asked = tool_server_pb2.WatchToolsRequest(known_revision=self._revision)
        told = 0
        with self._connection.answers(_WATCH, asked.SerializeToString()) as answers:
            while told < MOST_TOLD and (raw := await answers.next()) is not None:
                told += 1
                if _revision(raw) != self._revision:
                    changed("tools")
        return told > 0

    async def _go_by_ttl(self, changed: Changed) -> None:
        """Have the list read again when its time is over; where it has none, the lister does."""
        self.peer = replace(self.peer, capabilities={"tools": {}})
        changed("tools")
        while True:
            await asyncio.sleep(max(self._ttl or 0.0, SHORTEST_TTL))
            if self._ttl is not None:
                changed("tools")

    def _refused(self, error: UpstreamRefused, tool: Tool) -> UpstreamError:
        """Return what a refusal means here: some say that our list of tools is old."""
        status, reason = error.data.get("grpcStatus"), error.data.get("reason")
        if status == "NOT_FOUND" or reason == "REVISION_STALE":
            if self._changed is not None:
                self._changed("tools")
            if status == "NOT_FOUND":
                return UpstreamReplied(
                    rpc_code=codes.INVALID_PARAMS,
                    rpc_message=f"unknown tool: {tool.name[:120]}; list the tools again",
                )
        return error


def _server_info(info: tool_server_pb2.GetServerInfoResponse) -> dict[str, JsonValue]:
    said = {"name": info.name, "title": info.title, "version": info.version}
    return {name: value for name, value in said.items() if value or name == "name"}


def _revision(raw: bytes) -> str:
    try:
        return tool_server_pb2.WatchToolsResponse.FromString(raw).revision
    except DecodeError:
        raise UpstreamGarbled(message="a change of its tools cannot be read") from None


def _unknown(method: str) -> UpstreamReplied:
    return UpstreamReplied(
        rpc_code=codes.METHOD_NOT_FOUND,
        rpc_message=f"method not found: {method[:120]}; a native server has tools only",
    )
