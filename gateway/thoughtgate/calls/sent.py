"""The end of the path: the call goes to its server, with a CLIENT span around it.

Never sends twice: whether a call may be repeated is for others to decide.
"""

from asyncio import CancelledError
from time import time_ns
from urllib.parse import urlsplit

from thoughtgate.calls.altered import altered
from thoughtgate.calls.asked import asked_for
from thoughtgate.calls.outcome import INTERNAL_ERROR, Outcome, failed, finished
from thoughtgate.calls.snapshot import Attributes, Snapshot
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import GateError
from thoughtgate.core.ports import Recorder, Sender
from thoughtgate.core.servers import HttpTransport, LocalTransport, Server
from thoughtgate.core.traces import SpanKind, SpanRecord
from thoughtgate.telemetry import names
from thoughtgate.telemetry.spans import child

_PORTS = {"http": 80, "https": 443}


async def sent(call: Call, *, sender: Sender) -> Result:
    """Send the call and record nothing: the end of a path that nobody traces."""
    return await sender.send(call)


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
        name, attributes = _attributes(call, outcome, snapshot.peers.get(server, {}))
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
        )
        recorder.record(span)
    return result


def peer(server: Server) -> Attributes:
    """Return the span attributes that say where a server is reached."""
    transport = server.transport
    if isinstance(transport, LocalTransport):
        return {}
    if not isinstance(transport, HttpTransport):
        return {names.NETWORK_TRANSPORT: names.TRANSPORT_PIPE}
    address = urlsplit(transport.url)
    return {
        names.NETWORK_TRANSPORT: names.TRANSPORT_TCP,
        names.SERVER_ADDRESS: address.hostname or "",
        names.SERVER_PORT: address.port or _PORTS.get(address.scheme, 0),
    }


def _attributes(call: Call, outcome: Outcome, at: Attributes) -> tuple[str, dict[str, object]]:
    """Return the span's name and attributes."""
    name, found = asked_for(call, call.found.name, known=True)
    found |= {
        names.SERVER: call.found.server,
        names.TOOL_ADVERTISED: call.advertised,
        **at,
    }
    if outcome.error_type:
        found[names.ERROR_TYPE] = outcome.error_type
        if outcome.rpc_code is not None:
            found[names.RPC_STATUS_CODE] = str(outcome.rpc_code)
    return name, found
