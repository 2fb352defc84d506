"""The path of a call: its stages as one list, outermost first.

Never a second list: what runs, what `explain` prints and what the tests hold in order is this one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from thoughtgate.calls.audited import audited
from thoughtgate.calls.authorized import LOCAL_USER, Rule, authorized
from thoughtgate.calls.bounded import bounded
from thoughtgate.calls.checked_in import checked_in
from thoughtgate.calls.checked_out import checked_out
from thoughtgate.calls.conversed import conversed
from thoughtgate.calls.intended import intended
from thoughtgate.calls.resolved import resolved
from thoughtgate.calls.sent import sent_traced
from thoughtgate.calls.slots import Slots
from thoughtgate.calls.snapshot import Snapshot
from thoughtgate.calls.traced import traced
from thoughtgate.core.ports import AuditLog, Next, Recorder, Sender, Stage, Ties
from thoughtgate.core.servers import NullPolicy, ResultPolicy
from thoughtgate.views import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Middleware:
    """A stage of the user's: it may change the call, so it stands before the checks."""

    name: str
    stage: Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What the path is made with.

    `ties` keeps what binds clients to servers beyond a call, None where nothing does. With
    `intents` nothing is sent before the audit log holds it durably. Without a `recorder` nothing is
    spent on traces; `capture` is how many bytes of arguments and result a span keeps, 0 for none.
    `max_depth` counts calls within calls.
    """

    sender: Sender
    audit: AuditLog
    ties: Ties | None = None
    intents: bool = False
    recorder: Recorder | None = None
    capture: int = 0
    slots: Slots = field(default_factory=Slots)
    max_depth: int = 8
    rules: Sequence[Rule] = (LOCAL_USER,)
    middleware: Sequence[Middleware] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One stage of the list: its name, itself, and what it does to calls of one tool."""

    name: str
    stage: Stage
    says: Callable[[Entry], str]


def compose(stages: Sequence[Stage], innermost: Next) -> Next:
    """Wrap `innermost` so that the first stage listed runs outermost."""
    chain = innermost
    for stage in reversed(stages):
        chain = _above(stage, chain)
    return chain


def path(snapshot: Snapshot, equipment: Equipment) -> Next:
    """Return the whole path of calls that live in this snapshot."""
    return compose([step.stage for step in steps(snapshot, equipment)], _end(snapshot, equipment))


def steps(snapshot: Snapshot, equipment: Equipment) -> tuple[Step, ...]:
    """Return the stages in order. The sender stands below the last one."""
    middleware = (
        Step(name=one.name, stage=one.stage, says=lambda entry: "may change the call")
        for one in equipment.middleware
    )
    return (
        *_tracing(snapshot, equipment),
        Step(
            name="audited",
            stage=lambda call, below: audited(call, below, snapshot=snapshot, log=equipment.audit),
            says=lambda entry: "writes one row, with digests of arguments and result",
        ),
        Step(
            name="resolved",
            stage=lambda call, below: resolved(call, below, snapshot=snapshot),
            says=_resolving,
        ),
        Step(
            name="bounded",
            stage=lambda call, below: bounded(
                call, below, slots=equipment.slots, max_depth=equipment.max_depth
            ),
            says=lambda entry: f"allows {entry.tool.call_timeout:g} seconds",
        ),
        *middleware,
        Step(
            name="checked_in",
            stage=lambda call, below: checked_in(call, below, snapshot=snapshot),
            says=_checking_in,
        ),
        Step(
            name="authorized",
            stage=lambda call, below: authorized(call, below, rules=equipment.rules),
            says=partial(_authorizing, equipment.rules),
        ),
        *_intending(equipment),
        Step(name="checked_out", stage=checked_out, says=_checking_out),
        Step(
            name="conversed",
            stage=conversed,
            says=lambda entry: "lets the server ask the client what the client offers to answer",
        ),
    )


def explain(entry: Entry, snapshot: Snapshot, equipment: Equipment) -> tuple[tuple[str, str], ...]:
    """Return the stages as they stand for one tool: name, and what each does."""
    listed = [(step.name, step.says(entry)) for step in steps(snapshot, equipment)]
    where = ", ".join(str(value) for value in snapshot.peers.get(entry.tool.server, {}).values())
    target = f"to {entry.tool.name} of {entry.tool.server}"
    return (*listed, ("sent", f"{target} ({where})" if where else target))


def _above(stage: Stage, below: Next) -> Next:
    return lambda call: stage(call, below)


def _end(snapshot: Snapshot, equipment: Equipment) -> Next:
    sender, recorder = equipment.sender, equipment.recorder
    if recorder is None:
        return sender.send
    return lambda call: sent_traced(call, sender=sender, snapshot=snapshot, recorder=recorder)


def _tracing(snapshot: Snapshot, equipment: Equipment) -> tuple[Step, ...]:
    recorder, capture = equipment.recorder, equipment.capture
    if recorder is None:
        return ()
    content = f"up to {capture} bytes of content" if capture else "no content"
    step = Step(
        name="traced",
        stage=lambda call, below: traced(
            call, below, snapshot=snapshot, recorder=recorder, capture=capture
        ),
        says=lambda entry: f"records a span with {content}",
    )
    return (step,)


def _intending(equipment: Equipment) -> tuple[Step, ...]:
    if not equipment.intents:
        return ()
    stage = partial(intended, log=equipment.audit)
    return (Step(name="intended", stage=stage, says=lambda entry: "makes one row durable first"),)


def _resolving(entry: Entry) -> str:
    found = f"finds {entry.tool.name} of {entry.tool.server} at {entry.tool.digest[:19]}"
    return f"{found}, adds {', '.join(entry.fixed)}" if entry.fixed else found


def _checking_in(entry: Entry) -> str:
    nulls = {
        NullPolicy.DROP: "drops nulls that it refuses for optional properties",
        NullPolicy.REJECT: "refuses nulls as it says",
        NullPolicy.PASS: "lets nulls for optional properties pass",
    }
    return f"holds arguments against the input schema, {nulls[entry.tool.nulls]}"


def _checking_out(entry: Entry) -> str:
    if entry.tool.output_schema is None:
        return "lets every result pass: there is no output schema"
    policies = {
        ResultPolicy.OFF: "lets every result pass",
        ResultPolicy.WARN: "notes a result that breaks the output schema",
        ResultPolicy.STRICT: "refuses a result that breaks the output schema",
    }
    return f"{policies[entry.tool.results]}; refuses it for engines"


def _authorizing(rules: Sequence[Rule], entry: Entry) -> str:
    listed = ", ".join(rule.name for rule in rules) or "none, so every call is refused"
    return f"asks the rules for a {entry.tool.effect.value} call: {listed}"
