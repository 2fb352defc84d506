"""What goes with the RPC of every call, native or reflected: deadline, parent span, and key.

Never the server's own headers: those are the connection's.
"""

from thoughtgate.core.calls import Call
from thoughtgate.core.traces import format_traceparent
from thoughtgate.upstream.grpc.metadata import Metadata
from thoughtgate.wire.methods import IDEMPOTENCY_KEY

MAX_KEY = 255
"""Characters of the longest key that a client may give; a longer one stands in `_meta` only."""

_SHARE = 20
_MARGIN = 0.05


def trace_metadata(call: Call) -> Metadata:
    """Return the metadata that tells a server which span is its parent."""
    if call.trace is None:
        return ()
    parent = ("traceparent", format_traceparent(call.trace))
    state = call.trace.state
    if not state or not (state.isascii() and state.isprintable()):
        return (parent,)
    return (parent, ("tracestate", state.strip()))


def seconds_for(call: Call, now: float) -> float:
    """Return the deadline for a call's RPC: a little before our own, so that the server knows it.

    The margin is small where there is little time.
    """
    seconds = min(call.deadline - now, call.found.call_timeout)
    return max(seconds - min(_MARGIN, seconds / _SHARE), 0.001)


def key_of(call: Call) -> str:
    """Return the key under which a run or a client wants a call done once, empty without one."""
    if call.idempotency_key:
        return call.idempotency_key
    key = call.meta.get(IDEMPOTENCY_KEY)
    if not isinstance(key, str) or len(key) > MAX_KEY:
        return ""
    return key if key.isascii() and key.isprintable() and key == key.strip() else ""
