"""One POST and its answer: a JSON body, or a stream of events that ends with the reply.

Never knows an era; notifications on the way go to the caller one by one, which is the
back-pressure: nothing is read while the caller has no room.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from thoughtgate.core.calls import Call
from thoughtgate.core.errors import (
    Malformed,
    UpstreamDenied,
    UpstreamError,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamReplied,
)
from thoughtgate.upstream.hearing import Hearing
from thoughtgate.upstream.ports import Body, HttpReply
from thoughtgate.upstream.waiting import garbled, replied
from thoughtgate.wire import codes, methods
from thoughtgate.wire.messages import BadMessage, Failure, Notification, Reply, Request, decode
from thoughtgate.wire.sse import Event, EventParser
from thoughtgate.wire.strict import MAX_RESULT

JSON_TYPE = "application/json"
EVENTS_TYPE = "text/event-stream"
ACCEPT_BOTH = f"{JSON_TYPE}, {EVENTS_TYPE}"

_GATEWAY_FAULTS = frozenset({502, 503, 504})
_OF_THE_NEWER_ERA = frozenset({codes.UNSUPPORTED_VERSION, codes.HEADER_MISMATCH})
_ANSWERS = (Reply, Failure)
_BOM = b"\xef\xbb\xbf"
_ERROR_BODY = 256 * 1024


class Asked(msgspec.Struct, kw_only=True, eq=False):
    """One request of ours while its answer is read.

    `call` takes what comes on its stream, `hearing` the rest; `elsewhere` takes an answer to
    another request of the same session; `on_event` learns that the stream speaks, `on_chunk` that
    it lives and which events came; `last_event` is where it broke off. `limit` bounds the answer in
    bytes. `begun` says that a reply has begun: the server has the request.
    """

    id: int
    hearing: Hearing
    call: Call | None = None
    elsewhere: Callable[[Reply | Failure], bool] | None = None
    on_event: Callable[[], None] | None = None
    on_chunk: Callable[[Sequence[Event]], None] | None = None
    last_event: str | None = None
    retry_ms: int = 1000
    limit: int = MAX_RESULT
    begun: bool = False
    answer: Reply | Failure | None = None
    body: Body | None = None
    woken: asyncio.Future[None] | None = None

    def settle(self, answer: Reply | Failure) -> None:
        """Take the answer from another stream; whoever reads this one, or waits, stops."""
        self.answer = answer
        if self.body is not None:
            self.body.close()
        if self.woken is not None and not self.woken.done():
            self.woken.set_result(None)

    def outcome(self) -> Reply:
        """Return the reply that came on another stream.

        Raises:
            UpstreamReplied: It was an error.
            UpstreamLost: None came.
        """
        if self.answer is None:
            raise UpstreamLost(message="the stream ended without an answer")
        if isinstance(self.answer, Failure):
            raise replied(self.answer)
        return self.answer


async def check_status(reply: HttpReply) -> None:
    """Refuse a reply whose status says that the request was not carried out as asked.

    Raises:
        UpstreamDenied: 401 or 403.
        UpstreamReplied: The body is a JSON-RPC error.
        UpstreamLost: A proxy in between has lost the server.
        UpstreamGarbled: Any other status than success.
    """
    status = reply.status
    if 200 <= status < 300:
        return
    if status in {401, 403}:
        reply.body.close()
        raise UpstreamDenied(
            message=f"the server refuses our credentials (status {status});"
            " set the headers that it wants"
        )
    if media_type(reply) == JSON_TYPE:
        failure = _failure(await reply.read(_ERROR_BODY))
        if failure is not None:
            raise replied(failure)
    reply.body.close()
    if status in _GATEWAY_FAULTS:
        raise UpstreamLost(message=f"status {status}: something before the server has lost it")
    raise UpstreamGarbled(
        message=f"status {status} without a JSON-RPC error", data={"status": status}
    )


class Forgotten(UpstreamError):
    """The server does not know our session any more; the request was not carried out."""


async def check_session(reply: HttpReply) -> None:
    """Check the status of a reply to a request of a session; see `check_status`.

    Raises:
        Forgotten: There is no such session, or there are none at all any more.
    """
    if reply.status == 404:
        reply.body.close()
        raise Forgotten(message="the server has forgotten the session")
    try:
        await check_status(reply)
    except UpstreamReplied as error:
        if reply.status == 400 and error.rpc_code in _OF_THE_NEWER_ERA:
            raise Forgotten(message="the server knows no sessions") from None
        raise


async def read_answer(reply: HttpReply, asked: Asked) -> Reply | None:
    """Return the reply to what was asked; None when a stream ended without one.

    Raises:
        UpstreamError: The answer is an error, broke off, or cannot be read.
    """
    kind = media_type(reply)
    if kind == JSON_TYPE:
        return _outcome(_read((await reply.read(asked.limit)).removeprefix(_BOM)), asked)
    if kind == EVENTS_TYPE:
        return await _read_events(reply, asked)
    reply.body.close()
    shown = kind[:60] if kind.isprintable() else ""
    raise UpstreamGarbled(message=f"neither JSON nor events but {shown or 'nothing'} came")


async def drain(reply: HttpReply) -> None:
    """Read a short body to its end, so that the connection can be used again."""
    await reply.read(_ERROR_BODY)


def media_type(reply: HttpReply) -> str:
    """Return the media type without parameters, in lower case."""
    return reply.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _read_events(reply: HttpReply, asked: Asked) -> Reply | None:
    parser = EventParser(cap=asked.limit)
    asked.body = reply.body
    try:
        while asked.answer is None and (chunk := await reply.body.chunk()):
            events = parser.feed(chunk)
            if asked.on_chunk is not None:
                asked.on_chunk(events)
            for event in events:
                result = await _take(event, asked)
                if result is not None:
                    reply.body.release()  # its last bytes are on their way
                    return result
    except Malformed as error:
        raise UpstreamGarbled(message=error.message) from None
    except UpstreamReplied:
        reply.body.release()
        raise
    finally:
        asked.body = None
        reply.body.close()
    return None


async def _take(event: Event, asked: Asked) -> Reply | None:
    """Deal with one event; return the reply when it was that."""
    if asked.on_event is not None:
        asked.on_event()
    if event.id is not None:
        asked.last_event = event.id
    if event.retry is not None:
        asked.retry_ms = event.retry
    if not event.data or event.event != "message":
        return None  # a priming event, or a kind that is not ours
    if not event.data.lstrip().startswith((b"{", b"[{")):
        asked.hearing.counts.noise += 1  # such as `ping`, or `[DONE]`
        return None
    message = _read(event.data)
    if isinstance(message, _ANSWERS):
        if message.id is not None and str(message.id) != str(asked.id):
            if asked.elsewhere is None or not asked.elsewhere(message):
                asked.hearing.counts.late += 1
            return None
        return _outcome(message, asked)
    if isinstance(message, Request):
        asked.hearing.asked(message, asked.id)
    else:
        await _deliver(message, asked)
    return None


async def _deliver(message: Notification, asked: Asked) -> None:
    """Hand a notification to the call whose stream it came on."""
    call = asked.call
    if message.method == methods.PROGRESS:
        token, notice = methods.read_progress(message.params)
        if call is None or not call.wants_progress or str(token) != str(asked.id):
            asked.hearing.counts.unplaced += 1
        else:
            await call.listener.notify(notice)
    else:
        told = asked.hearing.told(message, call)
        if told is not None and call is not None:
            await call.listener.notify(told)


def _read(data: bytes) -> Reply | Failure | Notification | Request:
    """Decode a message; what cannot be read on a stream of one request is that request's."""
    try:
        return decode(data)
    except BadMessage as error:
        raise garbled(reason=error.message) from None


def _outcome(message: object, asked: Asked) -> Reply:
    if isinstance(message, Failure):
        raise replied(message)
    if isinstance(message, Reply) and str(message.id) == str(asked.id):
        return message
    raise garbled(reason="it answers something else")


def _failure(body: bytes) -> Failure | None:
    try:
        message = decode(body)
    except BadMessage:
        return None
    return message if isinstance(message, Failure) else None
