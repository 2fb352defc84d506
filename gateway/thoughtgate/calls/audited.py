"""The stage that writes one audit row per call, whatever became of it.

Never holds an argument or a result, only their digests.
"""

import hashlib
import logging
from asyncio import CancelledError
from time import perf_counter_ns, time_ns

from thoughtgate.calls.altered import altered
from thoughtgate.calls.asked import name_asked
from thoughtgate.calls.outcome import INTERNAL_ERROR, Outcome, failed, finished
from thoughtgate.calls.snapshot import ITEMS, Snapshot
from thoughtgate.core.audit import AuditRow
from thoughtgate.core.calls import Call, ItemName, Result
from thoughtgate.core.errors import GateError, StoreError
from thoughtgate.core.json import digest
from thoughtgate.core.ports import AuditLog, Next
from thoughtgate.core.tools import Item, Kind, Tool

ACTION = "tool.call"
ACTIONS = {
    Kind.PROMPT: "prompt.get",
    Kind.RESOURCE: "resource.read",
    Kind.SUBSCRIBE: "resource.subscribe",
    Kind.UNSUBSCRIBE: "resource.unsubscribe",
    Kind.PROMPT_COMPLETION: "prompt.complete",
    Kind.RESOURCE_COMPLETION: "resource.complete",
    Kind.METHOD: "method.call",
}
_MAX_NAME = 512
_log = logging.getLogger(__name__)


async def audited(call: Call, call_next: Next, *, snapshot: Snapshot, log: AuditLog) -> Result:
    """Append one row for the call: success, refusal, failure and cancellation alike.

    What has happened stands, also when its row cannot be taken: a caller that was told of a failure
    would try again. Where that must not be, `intended` has refused before.
    """
    at_ns, start = time_ns(), perf_counter_ns()
    meant = snapshot.found(call)
    if meant is not call.meant and isinstance(call.target, ItemName):
        call = altered(call, meant=meant)  # a URI is long to look up
    outcome, result = INTERNAL_ERROR, None
    try:
        result = await call_next(call)
        outcome = finished(result)
    except (GateError, CancelledError) as error:
        outcome = failed(error)
        raise
    finally:
        took_us = (perf_counter_ns() - start) // 1000
        try:
            log.append(_row(call, (meant, outcome, result), at_ns=at_ns, took_us=took_us))
        except StoreError as error:
            _log.error("call %s has no row in the audit log: %s", call.id, error.message)
    return result


def action_of(call: Call) -> str:
    """Return what the call does, as rows name it."""
    if isinstance(call.target, ITEMS):
        return ACTIONS[call.target.kind]
    return ACTION


def _row(
    call: Call,
    came: tuple[Tool | Item | None, Outcome, Result | None],
    *,
    at_ns: int,
    took_us: int,
) -> AuditRow:
    found, outcome, result = came
    return AuditRow(
        at_ns=at_ns,
        action=action_of(call),
        principal=call.principal.id,
        domain=call.domain,
        server=found.server if found else "",
        tool=(found.name if found else name_asked(call))[:_MAX_NAME],
        outcome=outcome.code,
        reason=outcome.reason,
        tool_digest=found.digest if found else "",
        effect=found.effect.value if found else "",
        arguments_digest=digest(call.arguments),
        result_digest="sha256:" + hashlib.sha256(result.raw).hexdigest() if result else "",
        policy=outcome.policy,
        call_id=call.id,
        run_id=call.run_id,
        trace_id=f"{call.trace.trace_id:032x}" if call.trace else "",
        session_id=call.session.label,
        duration_us=took_us,
        notes=result.notes if result else (),
        origin=call.session.origin,
    )
