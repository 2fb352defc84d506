"""The error tree: one class per decision that a caller can take.

Never carries a secret or an argument value; `data` is JSON and may reach a client.

    GateError
    ├── CallerError                who called was wrong; the same request fails again
    │   ├── Malformed              not a well-formed request
    │   ├── UnknownTarget          no such tool here (hidden and missing look the same)
    │   ├── InvalidArguments       the arguments break the input schema; carries problems
    │   ├── CallerReplied          a caller that was asked answered with an error, relayed as it is
    │   ├── NotAsked               this caller cannot be asked, or did not answer in time
    │   ├── Refused                policy or identity says no
    │   ├── Missing                what an operator names is not there
    │   ├── Conflict               somebody else changed it in between; look again
    │   └── Overloaded             a limit of ours is reached; later may work
    ├── UpstreamError              the tool server was wrong
    │   ├── UpstreamReplied        it answered with a JSON-RPC error, relayed as it is
    │   ├── UpstreamUnreachable    the request provably never left; safe to send again
    │   ├── UpstreamLost           it broke off after sending: outcome unknown
    │   ├── UpstreamTimeout        no answer within the deadline: outcome unknown
    │   ├── UpstreamGarbled        it spoke, but not the protocol
    │   ├── UpstreamDenied         it refuses our credentials; an operator must act
    │   ├── UpstreamRefused        it will not carry out this call, and says why
    │   ├── UpstreamFailed         it failed while carrying it out: outcome unknown
    │   └── InvalidResult          its result breaks its own output schema; carries problems
    ├── SchemaRejected             a schema that may not be registered
    ├── StoreError                 the registry's database
    │   ├── StoreLocked            somebody else holds it
    │   ├── StoreFull              no space is left
    │   ├── StoreOlder             written by an older version; an upgrade is needed
    │   ├── StoreNewer             written by a newer version
    │   ├── StoreCorrupt           not a readable database
    │   ├── StoreSealed            its secrets cannot be opened with the key at hand
    │   └── RunTaken               another drives the run now; stop
    ├── ConfigError                settings, a plan or a command line that cannot be used
    ├── ModelError                 a model client failed
    └── OutOfOrder                 an event that cannot happen in this state: our own bug
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.problems import Problem


class GateError(Exception):
    """Everything that the gateway raises on purpose.

    `code` is a stable snake_case name that clients and audit rows see; `message` says what, which
    and what to do; `data` is JSON for machines.
    """

    code: ClassVar[str] = "gate_error"

    def __init__(self, *, message: str, data: JsonObject | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.data: JsonObject = {} if data is None else data


class CallerError(GateError):
    """Who called was wrong: the same request fails again."""

    code = "caller_error"


class Malformed(CallerError):
    """Not a well-formed request."""

    code = "malformed"


class UnknownTarget(CallerError):
    """No such tool in this domain; hidden and missing look the same.

    `kind` says what was looked for, where that is not a tool; `hint` what the caller may do, such
    as to list again when the tool was there before; `nearest` are similar names that it may see.
    """

    code = "unknown_tool"

    def __init__(
        self, *, name: str, kind: str = "tool", hint: str = "", nearest: Sequence[str] = ()
    ) -> None:
        advice = (hint, f"nearest: {', '.join(nearest)}" if nearest else "")
        super().__init__(
            message="; ".join([f"unknown {kind}: {name[:120]}", *filter(None, advice)]),
            data={"nearest": list(nearest)} if nearest else {},
        )
        self.name = name
        self.kind = kind


class InvalidArguments(CallerError):
    """The arguments break the tool's input schema."""

    code = "invalid_arguments"

    def __init__(self, *, message: str, problems: Sequence[Problem], data: JsonObject) -> None:
        super().__init__(message=message, data=data)
        self.problems = tuple(problems)


class CallerReplied(CallerError):
    """The caller, asked for something, answered with a JSON-RPC error; `rpc_*` hold it."""

    code = "caller_replied"

    def __init__(self, *, rpc_code: int, rpc_message: str, rpc_data: JsonValue = None) -> None:
        super().__init__(message=rpc_message, data={"callerCode": rpc_code})
        self.rpc_code = rpc_code
        self.rpc_message = rpc_message
        self.rpc_data = rpc_data


class NotAsked(CallerError):
    """This caller cannot be asked: it never offered to answer, is gone, or took too long."""

    code = "not_asked"


class Refused(CallerError):
    """Policy or identity says no."""

    code = "refused"


class Missing(CallerError):
    """What an operator names is not there."""

    code = "not_found"


class Conflict(CallerError):
    """Somebody else changed it since the caller looked; looking again may help."""

    code = "conflict"


class Overloaded(CallerError):
    """A limit of ours is reached; the same request may work later."""

    code = "overloaded"


class UpstreamError(GateError):
    """The tool server was wrong; `outcome` says what is known of what it was asked to do.

    Empty where its own words say that, else a key of `OUTCOMES`.
    """

    code = "upstream_error"
    outcome: ClassVar[str] = ""


class UpstreamReplied(UpstreamError):
    """The tool server answered with a JSON-RPC error; `rpc_*` hold it as it came."""

    code = "upstream_replied"

    def __init__(self, *, rpc_code: int, rpc_message: str, rpc_data: JsonValue = None) -> None:
        super().__init__(message=rpc_message, data={"upstreamCode": rpc_code})
        self.rpc_code = rpc_code
        self.rpc_message = rpc_message
        self.rpc_data = rpc_data


class UpstreamUnreachable(UpstreamError):
    """The request provably never left this process; sending it again is safe."""

    code = "upstream_unreachable"
    outcome = "not_sent"


class UpstreamLost(UpstreamError):
    """The connection broke after the request may have been sent: the outcome is unknown."""

    code = "upstream_lost"
    outcome = "unknown"


class UpstreamTimeout(UpstreamError):
    """No answer within the deadline: the outcome is unknown."""

    code = "upstream_timeout"
    outcome = "unknown"


class UpstreamGarbled(UpstreamError):
    """The tool server spoke, but not the protocol, or beyond a limit."""

    code = "upstream_garbled"
    outcome = "unknown"


class UpstreamDenied(UpstreamError):
    """The tool server refuses our credentials: an operator must act."""

    code = "upstream_denied"
    outcome = "not_done"


class UpstreamRefused(UpstreamError):
    """The tool server will not carry out this call; `data` has its `grpcStatus`, and details."""

    code = "upstream_refused"
    outcome = "not_done"


class UpstreamFailed(UpstreamError):
    """The tool server failed while it carried the call out: the outcome is unknown."""

    code = "upstream_failed"
    outcome = "unknown"


OUTCOMES: Mapping[str, str] = {
    "not_sent": "nothing was sent",
    "not_done": "it was not carried out",
    "unknown": "the outcome is unknown",
}
"""What is known of the outcome of a call that a server failed, in words."""


def told(error: GateError) -> str:
    """Return an error's message and, where a server failed, what is known of the outcome."""
    known = OUTCOMES.get(error.outcome) if isinstance(error, UpstreamError) else None
    return f"{error.message}; {known}" if known else error.message


def facts(error: GateError) -> JsonObject:
    """Return an error's data and, where a server failed, what is known of the `outcome`."""
    if isinstance(error, UpstreamError) and error.outcome:
        return {**error.data, "outcome": error.outcome}
    return error.data


class InvalidResult(UpstreamError):
    """The tool returned data that breaks its own output schema."""

    code = "invalid_result"

    def __init__(self, *, message: str, problems: Sequence[Problem], data: JsonObject) -> None:
        super().__init__(message=message, data=data)
        self.problems = tuple(problems)


class SchemaRejected(GateError):
    """A schema that may not be registered; `rule` names the rule that it breaks."""

    code = "schema_rejected"

    def __init__(self, *, rule: str, message: str, pointer: str = "") -> None:
        super().__init__(message=message, data={"rule": rule, "pointer": pointer})
        self.rule = rule
        self.pointer = pointer


class StoreError(GateError):
    """The registry's database cannot be used."""

    code = "store_error"


class StoreLocked(StoreError):
    """Another process holds the database."""

    code = "store_locked"


class StoreFull(StoreError):
    """No space is left for the database."""

    code = "store_full"


class StoreOlder(StoreError):
    """The database was written by an older version."""

    code = "store_older"


class StoreNewer(StoreError):
    """The database was written by a newer version."""

    code = "store_newer"


class StoreCorrupt(StoreError):
    """The file is not a readable database."""

    code = "store_corrupt"


class StoreSealed(StoreError):
    """The secrets in the database cannot be opened, or none may be added, with the key at hand."""

    code = "store_sealed"


class RunTaken(StoreError):
    """The run is driven by another now: who wrote to it stops and does nothing more for it."""


class ConfigError(GateError):
    """Settings, a plan or a command line that cannot be used."""

    code = "config_error"


class ModelError(GateError):
    """A model client failed; `retriable` says whether asking again may help."""

    code = "model_error"

    def __init__(
        self, *, message: str, retriable: bool = False, data: JsonObject | None = None
    ) -> None:
        super().__init__(message=message, data=data)
        self.retriable = retriable


class OutOfOrder(GateError):
    """An event that cannot happen in this state: a bug of ours, never ignored."""

    code = "out_of_order"

    def __init__(self, *, state: str, event: str) -> None:
        super().__init__(message=f"{event} cannot happen in state {state}")
