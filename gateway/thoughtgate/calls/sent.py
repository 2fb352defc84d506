"""The end of the path: the call goes to its server, with a CLIENT span around it.

Never sends twice: whether a call may be repeated is for others to decide.
"""

from asyncio import CancelledError
from functools import lru_cache
from time import time_ns
from urllib.parse import urlsplit

from thoughtgate.calls.altered import altered
from thoughtgate.calls.asked import KEPT, asked_for, tool_asked
from thoughtgate.calls.outcome import INTERNAL_ERROR, failed, finished
from thoughtgate.calls.snapshot import Attributes, Snapshot
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import GateError
from thoughtgate.core.ports import Recorder, Sender
from thoughtgate.core.servers import GrpcTransport, HttpTransport, LocalTransport, Server
from thoughtgate.core.tools import Tool
from thoughtgate.core.traces import NOTHING_SHARED, Shared, SpanKind, SpanRecord
from thoughtgate.telemetry import names
from thoughtgate.telemetry.spans import child

_PORTS = {"http": 80, "https": 443, "grpcs": 443}
_CALL_TOOL = "thoughtgate.tools.v1.ToolServer/CallTool"


async def sent_traced(
    call: Call, *, sender: Sender, snapshot: Snapshot, recorder: Recorder
) -> Result:
    """Send the call under a CLIENT span, whose id the server gets as its parent."""
    context = child(call.trace)
    start, outcome = time_ns(), INTERNAL_ERROR
    try:
        result = await sender.send(altered(call, trace=context))
        outcome = finished(result)
    except (GateError, CancelledError) as error:
        outcome = failed(error)
        raise
    finally:
        server = call.found.server
        name, shared, attributes = _described(call, snapshot.peers.get(server, {}))
        if outcome.error_type:
            attributes[names.ERROR_TYPE] = outcome.error_type
            if outcome.rpc_code is not None:
                attributes[names.RPC_STATUS_CODE] = str(outcome.rpc_code)
        span = SpanRecord(
            name=name,
            kind=SpanKind.CLIENT,
            context=context,
            parent_id=call.trace.span_id if call.trace else 0,
            start_ns=start,
            end_ns=time_ns(),
            attributes=attributes,
            error=outcome.reason if outcome.error_type else None,
            cancelled=outcome.cancelled,
            shared=shared,
        )
        recorder.record(span)
    return result


def peer(server: Server) -> Attributes:
    """Return the span attributes that say where a server is reached."""
    transport = server.transport
    if isinstance(transport, LocalTransport):
        return {}
    if not isinstance(transport, HttpTransport | GrpcTransport):
        return {names.NETWORK_TRANSPORT: names.TRANSPORT_PIPE}
    rpc: Attributes = {}
    if isinstance(transport, GrpcTransport):
        rpc = {names.RPC_SYSTEM: names.SYSTEM_GRPC}
        if not transport.reflect and not transport.descriptor_set:
            rpc = {**rpc, names.RPC_METHOD: _CALL_TOOL}
    address = urlsplit(transport.url)
    return {
        **rpc,
        names.NETWORK_TRANSPORT: names.TRANSPORT_TCP,
        names.SERVER_ADDRESS: address.hostname or "",
        names.SERVER_PORT: address.port or _PORTS.get(address.scheme, 0),
    }


def _described(call: Call, at: Attributes) -> tuple[str, Shared, dict[str, object]]:
    """Return the span's name, the attributes that other calls have too, and its own."""
    found = call.found
    if isinstance(found, Tool):
        name, shared = _of_tool(found.name, found.server, call.advertised, tuple(at.items()))
        return name, shared, {names.GEN_AI_TOOL_CALL_ID: call.id}
    name, own = asked_for(call, found.name, known=True)
    own |= {names.SERVER: found.server, names.TOOL_ADVERTISED: call.advertised, **at}
    return name, NOTHING_SHARED, own


@lru_cache(KEPT)
def _of_tool(
    name: str, server: str, advertised: str, at: tuple[tuple[str, object], ...]
) -> tuple[str, Shared]:
    title, attributes = tool_asked(name, known=True)
    attributes |= {names.SERVER: server, names.TOOL_ADVERTISED: advertised, **dict(at)}
    return title, Shared(attributes=attributes)
