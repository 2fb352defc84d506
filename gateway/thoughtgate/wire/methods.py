"""Methods and params that both eras share: calling and listing tools, progress, logs, cancel.

Never knows which era it serves, nor what a tool is beyond its name and arguments.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from thoughtgate.core.calls import Notice, NoticeKind
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.traces import SpanContext, format_traceparent, parse_traceparent
from thoughtgate.wire import codes
from thoughtgate.wire.messages import BadMessage, MessageId, encode_notification, valid_id

INITIALIZE: Final = "initialize"
INITIALIZED: Final = "notifications/initialized"
PING: Final = "ping"
SET_LEVEL: Final = "logging/setLevel"
DISCOVER: Final = "server/discover"
LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
TOOLS_LIST: Final = "tools/list"
TOOLS_CALL: Final = "tools/call"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
CANCELLED: Final = "notifications/cancelled"
PROGRESS: Final = "notifications/progress"
LOG: Final = "notifications/message"
PROMPTS_LIST: Final = "prompts/list"
PROMPTS_GET: Final = "prompts/get"
PROMPTS_CHANGED: Final = "notifications/prompts/list_changed"
RESOURCES_LIST: Final = "resources/list"
RESOURCES_READ: Final = "resources/read"
RESOURCES_CHANGED: Final = "notifications/resources/list_changed"
RESOURCE_UPDATED: Final = "notifications/resources/updated"
TEMPLATES_LIST: Final = "resources/templates/list"
SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"
COMPLETE: Final = "completion/complete"
ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
ROOTS: Final = "roots/list"
ROOTS_CHANGED: Final = "notifications/roots/list_changed"

MAX_SAID: Final = 65_536
"""Bytes of what a client says of itself: that is kept for as long as it may come back."""

LOG_LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
"""Lowest first (RFC 5424)."""

RESERVED: Final = "io.modelcontextprotocol/"
"""Prefix of the `_meta` keys that belong to a hop."""

IDEMPOTENCY_KEY: Final = "thoughtgate/idempotencyKey"
"""The `_meta` key that carries the effect id of a write."""

_HOP_KEYS = frozenset({"progressToken", "traceparent", "tracestate"})
_RANK = {level: rank for rank, level in enumerate(LOG_LEVELS)}


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """A request's `_meta`: `kept` goes on to the next hop, the rest was for us."""

    kept: JsonObject
    progress_token: MessageId | None
    trace: SpanContext | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """The params of `tools/call`; absent arguments are an empty object."""

    name: str
    arguments: JsonObject
    meta: Meta


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list: its objects, lossless, and the cursor of the next page.

    `size` is the bytes it came in.
    """

    entries: tuple[JsonObject, ...]
    cursor: str | None
    size: int = field(default=0, compare=False)


def read_tool_call(params: JsonObject) -> ToolCall:
    """Return what a `tools/call` asks for.

    Raises:
        BadMessage: A missing name, or arguments that are not an object.
    """
    name, arguments = params.get("name"), params.get("arguments", {})
    if type(name) is not str:
        raise invalid_params(message='"name" must be a string')
    if type(arguments) is not dict:
        raise invalid_params(message='"arguments" must be an object; leave it out when empty')
    return ToolCall(name=name, arguments=arguments, meta=read_meta(params))


def read_meta(params: JsonObject) -> Meta:
    """Return a request's `_meta`, taken apart.

    Raises:
        BadMessage: `_meta` is not an object, or its progress token is not an id.
    """
    meta = params.get("_meta")
    if meta is None:
        return _NO_META
    if type(meta) is not dict:
        raise invalid_params(message='"_meta" must be an object')
    token = meta.get("progressToken")
    if token is not None and not valid_id(token):
        raise invalid_params(message='"progressToken" must be a string or an integer')
    return Meta(
        kept={
            key: value
            for key, value in meta.items()
            if key not in _HOP_KEYS and not key.startswith(RESERVED)
        },
        progress_token=token,
        trace=parse_traceparent(meta.get("traceparent"), meta.get("tracestate", "")),
    )


def read_cursor(params: JsonObject) -> str | None:
    """Return the cursor of a list request, None for the first page.

    Raises:
        BadMessage: The cursor is not a string.
    """
    cursor = params.get("cursor")
    if cursor is not None and type(cursor) is not str:
        raise invalid_params(message='"cursor" must be a string')
    return cursor


def read_level(params: JsonObject) -> str:
    """Return the level of `logging/setLevel`.

    Raises:
        BadMessage: Not one of the eight levels.
    """
    level = params.get("level")
    if type(level) is not str or level not in _RANK:
        raise invalid_params(message='"level" must be one of ' + ", ".join(LOG_LEVELS))
    return level


def loud_enough(params: JsonObject, threshold: str | None) -> bool:
    """Tell whether a log message reaches `threshold`; None wants none, unknown levels pass."""
    if threshold is None:
        return False
    level = params.get("level")
    rank = _RANK.get(level, len(_RANK)) if type(level) is str else len(_RANK)
    return rank >= _RANK[threshold]


def encode_notice(notice: Notice, token: MessageId | None) -> bytes | None:
    """Return a notice as the caller's notification; None for progress that nobody asked for."""
    if notice.kind is NoticeKind.LOG:
        return encode_notification(LOG, notice.params)
    if notice.kind is NoticeKind.OTHER:
        return encode_notification(notice.method, notice.params)
    if token is None:
        return None
    return encode_notification(PROGRESS, {"progressToken": token, **notice.params})


def read_progress(params: JsonObject) -> tuple[JsonValue, Notice]:
    """Return the token of a progress notification and the notice without it."""
    rest = {key: value for key, value in params.items() if key != "progressToken"}
    return params.get("progressToken"), Notice(kind=NoticeKind.PROGRESS, params=rest)


def read_cancelled(params: JsonObject) -> JsonValue:
    """Return the id of the request that a `notifications/cancelled` names."""
    return params.get("requestId")


def cancelled_params(id_: MessageId) -> JsonObject:
    """Return the params of the `notifications/cancelled` that gives up request `id_`."""
    return {"requestId": id_, "reason": "the caller gave up"}


def call_params(name: str, arguments: JsonObject, meta: JsonObject) -> JsonObject:
    """Return the params of a `tools/call`; `_meta` is left out when empty."""
    if meta:
        return {"name": name, "arguments": arguments, "_meta": meta}
    return {"name": name, "arguments": arguments}


def list_params(cursor: str | None, meta: JsonObject) -> JsonObject:
    """Return the params of a list request; absent parts are left out."""
    params: dict[str, Any] = {}
    if cursor is not None:
        params["cursor"] = cursor
    if meta:
        params["_meta"] = meta
    return params


def hop_meta(
    kept: JsonObject,
    *,
    progress_token: MessageId | None,
    trace: SpanContext | None,
    idempotency_key: str,
) -> dict[str, Any]:
    """Return the `_meta` of our request to the next hop, without an era's own keys."""
    meta = dict(kept)
    if progress_token is not None:
        meta["progressToken"] = progress_token
    if trace is not None:
        meta["traceparent"] = format_traceparent(trace)
        if trace.state:
            meta["tracestate"] = trace.state
    if idempotency_key:
        meta[IDEMPOTENCY_KEY] = idempotency_key
    return meta


def read_page(result: bytes, member: str = "tools") -> Page:
    """Return one page from a checked list result; `member` is what the list holds.

    An entry that is not an object is kept out of the page: it has no name to quarantine it by.

    Raises:
        BadMessage: The result holds no such list.
    """
    value = msgspec.json.decode(result)
    entries, cursor = value.get(member), value.get("nextCursor")
    if type(entries) is not list:
        raise invalid_params(message=f'"{member}" must be a list')
    return Page(
        entries=tuple(entry for entry in entries if type(entry) is dict),
        cursor=cursor if type(cursor) is str else None,
        size=len(result),
    )


def invalid_params(*, message: str) -> BadMessage:
    """Return the error for params that do not fit their method."""
    return BadMessage(message=message, rpc_code=codes.INVALID_PARAMS)


_NO_META = Meta(kept={}, progress_token=None, trace=None)
