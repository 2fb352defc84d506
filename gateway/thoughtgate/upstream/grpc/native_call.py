"""One call of a native tool: its request, its progress, and its one result.

Never takes a result that is not the last event, and never changes what stands in it.
"""

import asyncio
import logging
import math

from google.protobuf.message import DecodeError

from thoughtgate.core.calls import Call, Notice, NoticeKind
from thoughtgate.core.errors import (
    Malformed,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamRefused,
    UpstreamTimeout,
)
from thoughtgate.core.json import JsonValue
from thoughtgate.core.tools import Tool
from thoughtgate.upstream.grpc.channel import Answers
from thoughtgate.upstream.grpc.sending import key_of
from thoughtgate.upstream.ports import Counts
from thoughtgate.wire import methods
from thoughtgate.wire.messages import Reply
from thoughtgate.wire.strict import dumps, parse
from thoughtgate_proto.tools.v1 import tool_server_pb2

_log = logging.getLogger(__name__)

CALL_TOOL = "/thoughtgate.tools.v1.ToolServer/CallTool"

SOON = 0.05
"""Seconds in which nearly every server ends a call; one that sends more does not end it."""

END = 2.0
"""Seconds in which a server must end a call that it has given the result of."""

_EXACT = 2.0**53


def request_of(call: Call, tool: Tool, limit: int | None) -> bytes:
    """Return the request of a call; `limit` is what the server takes of arguments, if it said so.

    Raises:
        UpstreamRefused: The arguments are larger than that.
    """
    arguments = dumps(call.arguments)
    if limit is not None and len(arguments) > limit:
        raise UpstreamRefused(
            message=f"the arguments have {len(arguments)} bytes, and it takes at most {limit}"
        )
    meta = methods.hop_meta(
        call.meta,
        progress_token=None,
        trace=call.trace,
        idempotency_key=call.idempotency_key,
    )
    return tool_server_pb2.CallToolRequest(
        name=tool.name,
        arguments_json=arguments,
        call_id=key_of(call) or call.id,
        want_progress=call.wants_progress,
        meta_json=dumps(meta) if meta else b"",
    ).SerializeToString()


async def reply_of(answers: Answers, call: Call, counts: Counts) -> Reply:
    """Read a call's events to the end: progress goes to the caller, the result is returned.

    Raises:
        UpstreamGarbled: The events are not those of one call, or are not what they should be.
        UpstreamError: The call failed.
    """
    while True:
        raw = await answers.next()
        if raw is None:
            raise UpstreamGarbled(message="it ended the call without a result")
        event = _event(raw)
        kind = event.WhichOneof("event")
        if kind == "result":
            reply = read_result(event.result)
            await _end(answers)
            return reply
        if kind == "progress" and call.wants_progress:
            params = read_progress(event.progress)
            if params is None:
                counts.noise += 1
            else:
                await call.listener.notify(Notice(kind=NoticeKind.PROGRESS, params=params))


def read_progress(said: tool_server_pb2.Progress) -> dict[str, JsonValue] | None:
    """Return progress as MCP's notification has it; None when it holds what is no number."""
    if not math.isfinite(said.progress) or not math.isfinite(said.total):
        return None
    params: dict[str, JsonValue] = {"progress": _number(said.progress)}
    if said.HasField("total"):
        params["total"] = _number(said.total)
    if said.message:
        params["message"] = said.message
    return params


def read_result(said: tool_server_pb2.CallResult) -> Reply:
    """Return a result as MCP has it: each part is the server's own bytes.

    Raises:
        UpstreamGarbled: A part is not strict JSON, or not of the kind that it must be.
    """
    content = said.content_json or b"[]"
    value = {"content": _read(content, "content_json", list)}
    parts = [b'{"content":', content]
    if said.HasField("structured_content_json"):
        structured = said.structured_content_json
        value["structuredContent"] = _read(structured, "structured_content_json", None)
        parts += [b',"structuredContent":', structured]
    if said.is_error:
        value["isError"] = True
        parts.append(b',"isError":true')
    if said.meta_json:
        meta = _read(said.meta_json, "meta_json", dict)
        if meta:
            value["_meta"] = meta
            parts += [b',"_meta":', said.meta_json]
    parts.append(b"}")
    return Reply(id=0, result=b"".join(parts), value=value)


async def _end(answers: Answers) -> None:
    """Return when the call is over; a server that leaves it open is not waited for."""
    try:
        if await answers.over(SOON):
            return
        async with asyncio.timeout(END):
            more = await answers.next()
    except TimeoutError:
        _log.info("a native server left a call open after its result")
        return
    except (UpstreamLost, UpstreamTimeout):
        return  # the result was whole before the connection broke, or the time was over
    if more is not None:
        raise UpstreamGarbled(message="it went on after the result of the call")


def _event(raw: bytes) -> tool_server_pb2.CallToolResponse:
    try:
        return tool_server_pb2.CallToolResponse.FromString(raw)
    except DecodeError:
        raise UpstreamGarbled(message="an event of the call cannot be read") from None


def _read(data: bytes, field: str, kind: type | None) -> JsonValue:
    try:
        value = parse(data)
    except Malformed as error:
        raise UpstreamGarbled(message=f"its {field} is {error.message}") from None
    if kind is not None and type(value) is not kind:
        wanted = "an array" if kind is list else "an object"
        raise UpstreamGarbled(message=f"its {field} is not {wanted}")
    return value


def _number(value: float) -> int | float:
    """Return a number as JSON writes it best: whole ones without a fraction."""
    return int(value) if value.is_integer() and abs(value) <= _EXACT else value
