"""The stage that records a call's SERVER span, by the MCP conventions.

Never waits for an exporter, and never holds content unless capture is on.
"""

from asyncio import CancelledError
from functools import lru_cache
from time import time_ns
from typing import NamedTuple

from thoughtgate.calls.altered import altered
from thoughtgate.calls.asked import KEPT, asked_for, name_asked, tool_asked
from thoughtgate.calls.outcome import INTERNAL_ERROR, Outcome, failed, finished
from thoughtgate.calls.snapshot import Snapshot
from thoughtgate.core.calls import Call, Result, Source, ToolName
from thoughtgate.core.errors import GateError
from thoughtgate.core.json import canonical
from thoughtgate.core.ports import Next, Recorder
from thoughtgate.core.tools import Item, Tool
from thoughtgate.core.traces import NOTHING_SHARED, Shared, SpanKind, SpanRecord
from thoughtgate.telemetry import names
from thoughtgate.telemetry.spans import child


async def traced(
    call: Call, call_next: Next, *, snapshot: Snapshot, recorder: Recorder, capture: int
) -> Result:
    """Record the span of a call with the outcome of everything below.

    An engine's call is no request of a client, so its span is INTERNAL; it hangs below the span
    of the Action. `capture` is how many bytes of arguments and result are kept, 0 for none.
    """
    meant = snapshot.found(call)
    context = child(call.trace)
    start, outcome, result = time_ns(), INTERNAL_ERROR, None
    try:
        result = await call_next(altered(call, trace=context, meant=meant))
        outcome = finished(result)
    except (GateError, CancelledError) as error:
        outcome = failed(error)
        raise
    finally:
        name, shared, own = _described(call, meant, snapshot.catalog.revision)
        _add_outcome(own, outcome, result)
        if capture:
            own.update(_content(call, result, capture))
        recorder.record(
            SpanRecord(
                name=name,
                kind=SpanKind.SERVER if call.source is Source.CLIENT else SpanKind.INTERNAL,
                context=context,
                parent_id=call.trace.span_id if call.trace else 0,
                start_ns=start,
                end_ns=time_ns(),
                attributes=own,
                error=outcome.reason if outcome.fault else None,
                cancelled=outcome.cancelled,
                shared=shared,
            )
        )
    return result


_GRPC = "grpc"
"""The origin of calls whose sessions name a package of protocols, not a version of MCP."""


class _Way(NamedTuple):
    """By which way a call came in; the same for very many calls."""

    domain: str
    version: str
    origin: str
    revision: str


def _described(
    call: Call, meant: Tool | Item | None, revision: str
) -> tuple[str, Shared, dict[str, object]]:
    """Return the span's name, the attributes that other calls have too, and its own."""
    way = _Way(call.domain, call.session.version, call.session.origin, revision)
    asked = name_asked(call)
    if isinstance(meant, Tool):
        name, shared = _of_tool(way, asked, meant.server, meant.digest, meant.effect.value)
        own: dict[str, object] = {names.GEN_AI_TOOL_CALL_ID: call.id}
    else:  # a URI, or a name that nothing has: there is no end of those
        name, own = asked_for(call, asked, known=meant is not None)
        own |= _of_way(way)
        shared = NOTHING_SHARED
        if meant is not None:
            own[names.SERVER] = meant.server
    own[names.PRINCIPAL] = call.principal.id
    if call.session.id:
        own[names.MCP_SESSION_ID] = call.session.label
    if call.run_id:
        own[names.RUN_ID] = call.run_id
    if call.depth:
        own[names.CALL_DEPTH] = call.depth
    if call.trace is not None and not call.trace.sampled:
        own[names.REMOTE_UNSAMPLED] = True
    return name, shared, own


@lru_cache(KEPT)
def _of_tool(way: _Way, name: str, server: str, digest: str, effect: str) -> tuple[str, Shared]:
    title, attributes = tool_asked(name, known=True)
    attributes |= _of_way(way)
    attributes |= {
        names.SERVER: server,
        names.TOOL_DIGEST: digest,
        names.TOOL_EFFECT: effect,
    }
    return title, Shared(attributes=attributes)


def _of_way(way: _Way) -> dict[str, object]:
    spoken: dict[str, object] = {names.MCP_PROTOCOL_VERSION: way.version}
    if way.origin == _GRPC:
        method = f"{way.version}.GatewayServer/CallTool"
        spoken = {names.RPC_SYSTEM: names.SYSTEM_GRPC, names.RPC_METHOD: method}
    return {
        **spoken,
        names.OPENINFERENCE_KIND: names.KIND_TOOL,
        names.ORIGIN: way.origin,
        names.DOMAIN: way.domain,
        names.CATALOGUE_REVISION: way.revision,
    }


def _add_outcome(found: dict[str, object], outcome: Outcome, result: Result | None) -> None:
    if outcome.error_type:
        found[names.ERROR_TYPE] = outcome.error_type
    if outcome.rpc_code is not None:
        found[names.RPC_STATUS_CODE] = str(outcome.rpc_code)
    if result is not None:
        found[names.RESULT_BYTES] = len(result.raw)
        if result.notes:
            found[names.NOTES] = list(result.notes)


def _content(call: Call, result: Result | None, limit: int) -> dict[str, object]:
    sent = canonical(call.arguments)[:limit].decode(errors="ignore")
    is_tool = isinstance(call.target, ToolName | Tool)
    found: dict[str, object] = {names.INPUT_VALUE: sent, names.INPUT_MIME_TYPE: names.MIME_JSON}
    if is_tool:
        found[names.GEN_AI_TOOL_ARGUMENTS] = sent
    if result is not None:
        came = result.raw[:limit].decode(errors="ignore")
        if is_tool:
            found[names.GEN_AI_TOOL_RESULT] = came
        found[names.OUTPUT_VALUE] = came
        found[names.OUTPUT_MIME_TYPE] = names.MIME_JSON
    return found
