"""Between the JSON of a tool's call and the messages of a method, both ways.

Never sends what the method's messages cannot hold, and never makes a result beyond a limit.
"""

from collections.abc import Sequence
from dataclasses import replace

from thoughtgate.core.calls import Call
from thoughtgate.core.errors import InvalidArguments, UpstreamGarbled
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.problems import Problem
from thoughtgate.protos.descriptors import Descriptors, Method, encode
from thoughtgate.protos.values import ProtoValueError
from thoughtgate.schema.explain import arguments_report
from thoughtgate.wire.messages import Reply
from thoughtgate.wire.strict import dumps

MAX_TOLD = 2_000
"""Characters of a message that a notice of progress shows."""


def messages_of(call: Call, method: Method, descriptors: Descriptors) -> tuple[bytes, ...]:
    """Return the messages that a call sends, on the wire.

    Raises:
        InvalidArguments: The messages cannot hold the arguments; says where.
    """
    if not method.client_streaming:
        return (_encoded(call, descriptors, method.request, call.arguments, ""),)
    given: Sequence[JsonValue] = call.arguments.get("messages") or ()
    return tuple(
        _encoded(call, descriptors, method.request, one, f"/messages/{at}")
        for at, one in enumerate(given)
    )


def reply_of(value: JsonObject, limit: int, *, note: str = "") -> Reply:
    """Return a message's JSON as the result of a call; `note` is said beside it.

    Raises:
        UpstreamGarbled: It has more than `limit` bytes.
    """
    spelled = dumps(value)
    if len(spelled) > limit:
        raise UpstreamGarbled(message=f"its answer is longer than {limit} bytes as JSON")
    content = [{"type": "text", "text": text} for text in (spelled.decode(), note) if text]
    result = b"".join((b'{"content":', dumps(content), b',"structuredContent":', spelled, b"}"))
    return Reply(id=0, result=result, value={"content": content, "structuredContent": value})


def told_of(spelled: bytes, number: int) -> JsonObject:
    """Return the notice of progress for the message of this number, its JSON shortened."""
    text = spelled[: 4 * MAX_TOLD].decode(errors="ignore")
    shown = text if len(text) <= MAX_TOLD else f"{text[: MAX_TOLD - 1]}…"
    return {"progress": number, "message": shown}


def _encoded(
    call: Call, descriptors: Descriptors, name: str, value: JsonValue, place: str
) -> bytes:
    try:
        return encode(descriptors, name, value)
    except ProtoValueError as error:
        raise _invalid(call, error.problems, place) from None


def _invalid(call: Call, problems: Sequence[Problem], place: str) -> InvalidArguments:
    placed = [replace(problem, pointer=place + problem.pointer) for problem in problems]
    text, data = arguments_report(call.advertised, placed, digest=call.tool.digest)
    return InvalidArguments(message=text, problems=placed, data=data)
