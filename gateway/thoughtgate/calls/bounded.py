"""The stage that bounds a call: its deadline, its slot, and how deep calls may nest.

Never gives a slot to a call inside another one: a run would wait for itself.
"""

import asyncio

from thoughtgate.calls.altered import altered
from thoughtgate.calls.slots import Slots
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import Refused, UpstreamTimeout
from thoughtgate.core.ports import Next
from thoughtgate.upstream.limit import Limit
from thoughtgate.upstream.patience import Patient

GRACE = 1.0
"""Seconds that the sender gets beyond the deadline to report the timeout itself."""


async def bounded(
    call: Call, call_next: Next, *, slots: Slots, max_depth: int, grace: float = GRACE
) -> Result:
    """Run the call within its deadline and the limits of this gateway.

    Raises:
        Refused: Calls nest too deep.
        Overloaded: No slot is free, and none came free in time.
        UpstreamTimeout: Everything below hung beyond the deadline.
    """
    if call.depth > max_depth:
        raise Refused(message=f"calls are nested deeper than {max_depth}")
    latest = asyncio.get_running_loop().time() + call.found.call_timeout
    if latest < call.deadline:
        call = altered(call, deadline=latest)
    if not call.depth:
        await slots.take(call.principal.id, call.deadline)
    limit = Limit(call.deadline + grace)
    try:
        with limit:
            return await call_next(patient(call, limit))
    except TimeoutError:
        if not limit.expired:
            raise
        raise UpstreamTimeout(
            message=f"server {call.found.server}: it did not answer in time"
        ) from None
    finally:
        if not call.depth:
            slots.give(call.principal.id)


def patient(call: Call, limit: Limit) -> Call:
    """Return a call whose time stands still while its caller is asked something."""
    if not call.session.capabilities:
        return call
    return altered(call, listener=Patient(call.listener, limit))
