"""Calls, notices, listings and errors as one worker of a gateway hands them to another, and back.

Never leaves out what a server would have been sent, and never adds anything to it.
"""

import asyncio

import msgspec

from thoughtgate.core.calls import (
    Call,
    Listener,
    Notice,
    NoticeKind,
    Principal,
    Question,
    Retry,
    Session,
)
from thoughtgate.core.errors import (
    CallerReplied,
    GateError,
    NotAsked,
    Overloaded,
    UpstreamDenied,
    UpstreamError,
    UpstreamFailed,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamRefused,
    UpstreamReplied,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era, Listing, UpstreamState, UpstreamStatus
from thoughtgate.core.tools import Effect, Item, Kind, Tool
from thoughtgate.core.traces import format_traceparent, parse_traceparent
from thoughtgate.upstream.frames import Asked, Fault, Noticed, Sending, Speaker, Stands

_write = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder().decode
_read_listing = msgspec.json.Decoder(Listing).decode

_PLAIN: dict[str, type[GateError]] = {
    kind.code: kind
    for kind in (
        NotAsked,
        Overloaded,
        UpstreamError,
        UpstreamUnreachable,
        UpstreamLost,
        UpstreamTimeout,
        UpstreamGarbled,
        UpstreamDenied,
        UpstreamRefused,
        UpstreamFailed,
    )
}
_REPLIED: dict[str, type[UpstreamReplied] | type[CallerReplied]] = {
    UpstreamReplied.code: UpstreamReplied,
    CallerReplied.code: CallerReplied,
}
_NOTHING = b"{}"


def sending(call: Call, *, number: int, listener: int, session_id: str, peer: int) -> Sending:
    """Return the frame that carries a call; `listener` and `peer` are numbers of listeners.

    `session_id` is empty where all clients share a connection.
    """
    found, session, trace, retry = call.found, call.session, call.trace, call.retry
    return Sending(
        number=number,
        server=found.server,
        kind=found.kind.value if isinstance(found, Item) else "",
        name=found.name,
        digest=found.digest,
        effect=found.effect.value,
        call_timeout=found.call_timeout,
        arguments=_write(call.arguments),
        principal=call.principal.id,
        speaker=Speaker(
            id=session_id,
            era=session.era.value,
            version=session.version,
            origin=session.origin,
            capabilities=_write(session.capabilities),
            peer=peer,
        ),
        seconds=call.deadline - asyncio.get_running_loop().time(),
        listener=listener,
        meta=_write(call.meta),
        extra=_write(call.extra),
        trace="" if trace is None else format_traceparent(trace),
        trace_state="" if trace is None else trace.state,
        log_level=call.log_level,
        wants_progress=call.wants_progress,
        idempotency_key=call.idempotency_key,
        answers=b"" if retry is None else _write(retry.answers),
        state=None if retry is None else retry.state,
    )


def call_of(frame: Sending, listener: Listener, peer: Listener | None) -> Call:
    """Return the call that a frame carries, for its server's links; nothing else may look at it."""
    speaker = frame.speaker
    return Call(
        id=str(frame.number),
        target=_target(frame),
        arguments=_read(frame.arguments),
        principal=Principal(id=frame.principal),
        session=Session(
            id=speaker.id,
            era=Era(speaker.era),
            version=speaker.version,
            client={},
            origin=speaker.origin,
            capabilities=_read(speaker.capabilities),
            peer=peer,
        ),
        domain="",
        deadline=asyncio.get_running_loop().time() + frame.seconds,
        listener=listener,
        meta=_object(frame.meta),
        trace=parse_traceparent(frame.trace, frame.trace_state),
        log_level=frame.log_level,
        wants_progress=frame.wants_progress,
        idempotency_key=frame.idempotency_key,
        extra=_object(frame.extra),
        retry=Retry(answers=_read(frame.answers), state=frame.state) if frame.answers else None,
    )


def fault_of(error: GateError) -> Fault:
    """Return the frame's part that carries an error."""
    if isinstance(error, UpstreamReplied | CallerReplied):
        return Fault(
            code=error.code,
            message=error.rpc_message,
            rpc_code=error.rpc_code,
            rpc_data=_write(error.rpc_data),
        )
    return Fault(code=error.code, message=error.message, data=_write(error.data))


def error_of(fault: Fault) -> GateError:
    """Return the error that a frame carries; of a kind that nobody expects, the outcome is open."""
    replied = _REPLIED.get(fault.code)
    if replied is not None:
        return replied(
            rpc_code=fault.rpc_code, rpc_message=fault.message, rpc_data=_read(fault.rpc_data)
        )
    return _PLAIN.get(fault.code, UpstreamLost)(message=fault.message, data=_object(fault.data))


def noticed(notice: Notice, *, number: int, listener: int) -> Noticed:
    """Return the frame that carries a notice."""
    return Noticed(
        number=number,
        listener=listener,
        kind=notice.kind.value,
        params=_write(notice.params),
        method=notice.method,
        server=notice.server,
    )


def notice_of(frame: Noticed) -> Notice:
    """Return the notice that a frame carries."""
    return Notice(
        kind=NoticeKind(frame.kind),
        params=_read(frame.params),
        method=frame.method,
        server=frame.server,
    )


def asked(question: Question, *, number: int, listener: int) -> Asked:
    """Return the frame that carries a question."""
    return Asked(
        number=number,
        listener=listener,
        method=question.method,
        params=_write(question.params),
        server=question.server,
    )


def question_of(frame: Asked) -> Question:
    """Return the question that a frame carries."""
    return Question(method=frame.method, params=_read(frame.params), server=frame.server)


def stands(status: UpstreamStatus) -> Stands:
    """Return the frame that says how a server fares."""
    return Stands(
        server=status.server,
        state=status.state.value,
        reason=status.reason,
        era=None if status.era is None else status.era.value,
        version=status.version,
    )


def status_of(frame: Stands) -> UpstreamStatus:
    """Return how a server fares."""
    return UpstreamStatus(
        server=frame.server,
        state=UpstreamState(frame.state),
        reason=frame.reason,
        era=None if frame.era is None else Era(frame.era),
        version=frame.version,
    )


def write_listing(listing: Listing) -> bytes:
    """Return a listing as JSON: its objects lossless and in their order."""
    return _write(listing)


def read_listing(data: bytes) -> Listing:
    """Return a listing of `write_listing`."""
    return _read_listing(data)


def write_params(params: JsonObject) -> bytes:
    """Return a notification's params as JSON."""
    return _write(params)


def read_params(data: bytes) -> JsonObject:
    """Return a notification's params of `write_params`."""
    return _object(data)


def _object(data: bytes) -> JsonObject:
    found: JsonObject = {} if data == _NOTHING else _read(data)
    return found


def _target(frame: Sending) -> Tool | Item:
    """Return what is called, as far as its server needs to know it: its schema was held before."""
    if frame.kind:
        return Item(
            kind=Kind(frame.kind),
            server=frame.server,
            name=frame.name,
            digest=frame.digest,
            effect=Effect(frame.effect),
            call_timeout=frame.call_timeout,
        )
    return Tool(
        server=frame.server,
        name=frame.name,
        definition={},
        digest=frame.digest,
        input_schema={},
        effect=Effect(frame.effect),
        call_timeout=frame.call_timeout,
    )
