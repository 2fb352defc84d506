"""One row of the audit log: who decided what about which call.

Never holds an argument value: arguments and results appear as digests only.
"""

from typing import NamedTuple


class AuditRow(NamedTuple):
    """One decision.

    `at_ns` is `time.time_ns()`, information only: order is the chain's. `action` is a name such as
    `tool.call`, or `tool.intent` for what is about to be sent; `outcome` is `ok`, `tool_error`,
    `cancelled` or an error code, empty for an intent; `effect` the tool's effect class; `origin`
    the face that the call came through; the digests are `sha256:…` or empty; ids are hex or empty.
    """

    at_ns: int
    action: str
    principal: str
    domain: str
    server: str
    tool: str
    outcome: str
    reason: str = ""
    tool_digest: str = ""
    effect: str = ""
    arguments_digest: str = ""
    result_digest: str = ""
    policy: str = ""
    call_id: str = ""
    run_id: str = ""
    trace_id: str = ""
    session_id: str = ""
    duration_us: int = 0
    notes: tuple[str, ...] = ()
    origin: str = ""
