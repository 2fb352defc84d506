"""The stage that makes a call's intent durable before it is sent, where audit is required.

Never lets a call leave that no row tells of: what happens after it may be lost, that it was to
happen may not.
"""

from time import time_ns

from thoughtgate.core.audit import AuditRow
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import Refused, StoreError
from thoughtgate.core.json import digest
from thoughtgate.core.ports import AuditLog, Next

ACTION = "tool.intent"


async def intended(call: Call, call_next: Next, *, log: AuditLog) -> Result:
    """Send the call once its intent is on disk.

    Raises:
        Refused: The row could not be written; nothing was sent.
    """
    try:
        log.append(_row(call))
        await log.flush()
    except StoreError:
        raise Refused(
            message="the audit log cannot be written, and calls must be audited; nothing was sent",
            data={"policy": "audit"},
        ) from None
    return await call_next(call)


def _row(call: Call) -> AuditRow:
    return AuditRow(
        at_ns=time_ns(),
        action=ACTION,
        principal=call.principal.id,
        domain=call.domain,
        server=call.found.server,
        tool=call.found.name,
        outcome="",
        tool_digest=call.found.digest,
        effect=call.found.effect.value,
        arguments_digest=digest(call.arguments),
        call_id=call.id,
        run_id=call.run_id,
        trace_id=f"{call.trace.trace_id:032x}" if call.trace else "",
        session_id=call.session.label,
        origin=call.session.origin,
    )
