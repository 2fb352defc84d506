"""The stage that records a call's SERVER span, by the MCP conventions.

Never waits for an exporter, and never holds content unless capture is on.
"""

from asyncio import CancelledError
from time import time_ns

from thoughtgate.calls.altered import altered
from thoughtgate.calls.asked import asked_for, name_asked
from thoughtgate.calls.outcome import INTERNAL_ERROR, Outcome, failed, finished
from thoughtgate.calls.snapshot import Snapshot
from thoughtgate.core.calls import Call, Result, Source, ToolName
from thoughtgate.core.errors import GateError
from thoughtgate.core.json import canonical
from thoughtgate.core.ports import Next, Recorder
from thoughtgate.core.tools import Tool
from thoughtgate.core.traces import SpanContext, SpanKind, SpanRecord
from thoughtgate.telemetry import names
from thoughtgate.telemetry.spans import child


async def traced(
    call: Call, call_next: Next, *, snapshot: Snapshot, recorder: Recorder, capture: int
) -> Result:
    """Record the span of a call with the outcome of everything below.

    An engine's call is no request of a client, so its span is INTERNAL; it hangs below the span
    of the Action. `capture` is how many bytes of arguments and result are kept, 0 for none.
    """
    context = child(call.trace)
    start, outcome = time_ns(), INTERNAL_ERROR
    try:
        result = await call_next(altered(call, trace=context))
        outcome = finished(result)
    except (GateError, CancelledError) as error:
        outcome = failed(error)
        raise
    finally:
        name, attributes = _attributes(call, outcome, snapshot)
        if capture:
            attributes.update(_content(call, outcome, capture))
        recorder.record(_span(call, (name, context), start, outcome, attributes))
    return result


def _span(
    call: Call,
    who: tuple[str, SpanContext],
    start_ns: int,
    outcome: Outcome,
    attributes: dict[str, object],
) -> SpanRecord:
    return SpanRecord(
        name=who[0],
        kind=SpanKind.SERVER if call.source is Source.CLIENT else SpanKind.INTERNAL,
        context=who[1],
        parent_id=call.trace.span_id if call.trace else 0,
        start_ns=start_ns,
        end_ns=time_ns(),
        attributes=attributes,
        error=outcome.reason if outcome.fault else None,
        cancelled=outcome.cancelled,
    )


def _attributes(call: Call, outcome: Outcome, snapshot: Snapshot) -> tuple[str, dict[str, object]]:
    """Return the span's name and attributes."""
    meant = snapshot.found(call)
    name, found = asked_for(call, name_asked(call), known=meant is not None)
    found |= {
        names.OPENINFERENCE_KIND: names.KIND_TOOL,
        names.MCP_PROTOCOL_VERSION: call.session.version,
        names.ORIGIN: call.session.origin,
        names.PRINCIPAL: call.principal.id,
        names.DOMAIN: call.domain,
        names.CATALOGUE_REVISION: snapshot.catalog.revision,
    }
    if meant is not None:
        found[names.SERVER] = meant.server
        if isinstance(meant, Tool):
            found[names.TOOL_DIGEST] = meant.digest
            found[names.TOOL_EFFECT] = meant.effect.value
    if call.session.id:
        found[names.MCP_SESSION_ID] = call.session.label
    if call.run_id:
        found[names.RUN_ID] = call.run_id
    if call.depth:
        found[names.CALL_DEPTH] = call.depth
    if call.trace is not None and not call.trace.sampled:
        found[names.REMOTE_UNSAMPLED] = True
    _add_outcome(found, outcome)
    return name, found


def _add_outcome(found: dict[str, object], outcome: Outcome) -> None:
    if outcome.error_type:
        found[names.ERROR_TYPE] = outcome.error_type
    if outcome.rpc_code is not None:
        found[names.RPC_STATUS_CODE] = str(outcome.rpc_code)
    if outcome.result is not None:
        found[names.RESULT_BYTES] = len(outcome.result.raw)
        if outcome.result.notes:
            found[names.NOTES] = list(outcome.result.notes)


def _content(call: Call, outcome: Outcome, limit: int) -> dict[str, object]:
    sent = canonical(call.arguments)[:limit].decode(errors="ignore")
    is_tool = isinstance(call.target, ToolName | Tool)
    found: dict[str, object] = {names.INPUT_VALUE: sent, names.INPUT_MIME_TYPE: names.MIME_JSON}
    if is_tool:
        found[names.GEN_AI_TOOL_ARGUMENTS] = sent
    if outcome.result is not None:
        came = outcome.result.raw[:limit].decode(errors="ignore")
        if is_tool:
            found[names.GEN_AI_TOOL_RESULT] = came
        found[names.OUTPUT_VALUE] = came
        found[names.OUTPUT_MIME_TYPE] = names.MIME_JSON
    return found
