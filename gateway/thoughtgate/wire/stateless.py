"""The stateless era (2026-07-28): every request carries who asks and which version it speaks.

Knows nothing of the other era; both directions of one exchange are here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.wire import codes
from thoughtgate.wire.headers import decode_value, encode_value
from thoughtgate.wire.messages import BadMessage, MessageId, encode_notification
from thoughtgate.wire.methods import (
    ACKNOWLEDGED,
    LOG_LEVELS,
    MAX_SAID,
    RESERVED,
    TOOLS_CALL,
    invalid_params,
)
from thoughtgate.wire.results import without_reserved
from thoughtgate.wire.strict import dumps

VERSIONS: Final = ("2026-07-28",)
"""Oldest first; also what -32022 and `server/discover` name (never the handshake versions)."""

LATEST: Final = VERSIONS[-1]

VERSION_HEADER: Final = "mcp-protocol-version"
METHOD_HEADER: Final = "mcp-method"
NAME_HEADER: Final = "mcp-name"

VERSION_KEY: Final = RESERVED + "protocolVersion"
CLIENT_KEY: Final = RESERVED + "clientInfo"
CAPABILITIES_KEY: Final = RESERVED + "clientCapabilities"
LOG_LEVEL_KEY: Final = RESERVED + "logLevel"
SERVER_KEY: Final = RESERVED + "serverInfo"
SUBSCRIPTION_KEY: Final = RESERVED + "subscriptionId"

MAX_SUBSCRIPTIONS: Final = 256
"""URIs in one subscription."""

_CHANGES: Final = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}

_NAMED: Final = {TOOLS_CALL: "name", "prompts/get": "name", "resources/read": "uri"}
_NAMED_BY_EXTENSIONS: Final = dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")
"""What extensions want named in a header as well (tasks); a client that names nothing is served."""

_STATUS: Final = {
    codes.PARSE_ERROR: 400,
    codes.INVALID_REQUEST: 400,
    codes.INVALID_PARAMS: 400,
    codes.HEADER_MISMATCH: 400,
    codes.MISSING_CAPABILITY: 400,
    codes.UNSUPPORTED_VERSION: 400,
    codes.METHOD_NOT_FOUND: 404,
}


class _Marks(msgspec.Struct):
    type: msgspec.Raw = msgspec.field(name="resultType", default=msgspec.Raw(b""))
    meta: msgspec.Raw = msgspec.field(name="_meta", default=msgspec.Raw(b""))


_marks = msgspec.json.Decoder(_Marks).decode
_CLOSES = ord("}")
_OPENED = re.compile(rb"\s*\{\s*")
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value = msgspec.json.Decoder().decode


class UnsupportedVersion(BadMessage):
    """A version that we do not speak; `data` names those that we do."""

    def __init__(self, *, requested: str) -> None:
        super().__init__(
            message=f"unsupported protocol version; use {LATEST}",
            rpc_code=codes.UNSUPPORTED_VERSION,
        )
        self.data = {"supported": list(VERSIONS), "requested": requested[:40]}


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, as a request's `_meta` says; `client` is empty when it does not say."""

    version: str
    client: JsonObject
    capabilities: JsonObject
    log_level: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """What a server says to `server/discover`."""

    versions: tuple[str, ...]
    server_info: JsonObject
    capabilities: JsonObject
    instructions: str


def status_of(code: int) -> int:
    """Return the HTTP status that goes with an error code in this era."""
    return _STATUS.get(code, 200)


def read_envelope(
    method: str, params: JsonObject, headers: Mapping[str, str] | None = None
) -> Envelope:
    """Return who asks; over HTTP also hold the headers against the body.

    `headers` has lower-case names and values without outer white space; None on stdio. The order
    of the checks is the specification's: a client that contradicts itself hears that first.

    Raises:
        BadMessage: -32602 for a missing, odd or large envelope, -32020 for headers that differ
            from the body, -32022 for a version that we do not speak.
    """
    meta = params.get("_meta")
    if type(meta) is not dict or VERSION_KEY not in meta or CAPABILITIES_KEY not in meta:
        raise invalid_params(message=f'"_meta" must carry {VERSION_KEY} and {CAPABILITIES_KEY}')
    version = meta[VERSION_KEY]
    if headers is not None:
        _check_headers(method, params, version, headers)
    if type(version) is not str:
        raise invalid_params(message=f"{VERSION_KEY} must be a string")
    if version not in VERSIONS:
        raise UnsupportedVersion(requested=version)
    client, capabilities = meta.get(CLIENT_KEY, {}), meta[CAPABILITIES_KEY]
    if type(client) is not dict or type(capabilities) is not dict:
        raise invalid_params(message=f"{CLIENT_KEY} and {CAPABILITIES_KEY} must be objects")
    if capabilities and len(dumps(capabilities)) > MAX_SAID:
        raise invalid_params(message=f"{CAPABILITIES_KEY} may have {MAX_SAID} bytes")
    level = meta.get(LOG_LEVEL_KEY)
    if level is not None and level not in LOG_LEVELS:
        raise invalid_params(message=f"{LOG_LEVEL_KEY} must be one of " + ", ".join(LOG_LEVELS))
    return Envelope(version=version, client=client, capabilities=capabilities, log_level=level)


def _check_headers(
    method: str, params: JsonObject, version: JsonValue, headers: Mapping[str, str]
) -> None:
    if headers.get(VERSION_HEADER) != version:
        raise _differs(VERSION_HEADER)
    if headers.get(METHOD_HEADER) != method:
        raise _differs(METHOD_HEADER)
    named = _NAMED.get(method) or _NAMED_BY_EXTENSIONS.get(method)
    if named is not None and type(wanted := params.get(named)) is str:
        sent = headers.get(NAME_HEADER)
        if sent is None and method in _NAMED_BY_EXTENSIONS:
            return
        if sent is None or decode_value(sent) != wanted:
            raise _differs(NAME_HEADER)


def _differs(header: str) -> BadMessage:
    return BadMessage(
        message=f"the {header} header does not match the body", rpc_code=codes.HEADER_MISMATCH
    )


def discover_result(found: Discovered, ttl_ms: int) -> bytes:
    """Return the result of `server/discover`."""
    result: dict[str, Any] = {
        "resultType": "complete",
        "supportedVersions": found.versions,
        "capabilities": found.capabilities,
        "ttlMs": ttl_ms,
        "cacheScope": "private",
        "_meta": {SERVER_KEY: found.server_info},
    }
    if found.instructions:
        result["instructions"] = found.instructions
    return dumps(result)


def list_result(
    items: bytes, cursor: str | None, ttl_ms: int, server_info: bytes, key: str = "tools"
) -> bytes:
    """Return a list result around `items`, the bytes of a JSON array; `key` is what they are."""
    return (
        b'{"resultType":"complete","%b":%b%b,"ttlMs":%d,"cacheScope":"private","_meta":{"%b":%b}}'
    ) % (
        key.encode(),
        items,
        b"" if cursor is None else b',"nextCursor":' + dumps(cursor),
        ttl_ms,
        SERVER_KEY.encode(),
        server_info,
    )


def cached(result: bytes, ttl_ms: int) -> bytes:
    """Return the result of `resources/read` with how long it may be kept, unless it says so."""
    members = _members(result)
    members.setdefault("ttlMs", msgspec.Raw(b"%d" % ttl_ms))
    members.setdefault("cacheScope", msgspec.Raw(b'"private"'))
    return dumps(members)


def finish(result: bytes, server_info: bytes, value: JsonObject | None = None) -> bytes:
    """Return a server's result for a client of this era: `resultType` and our own `serverInfo`.

    `value` is what it spells, if that is known. The members are copied, not rebuilt; without a
    `_meta` it is one insertion and one copy.
    """
    info = b'"%b":%b' % (SERVER_KEY.encode(), server_info)
    is_typed, has_meta = _marked(result, value)
    opened = _OPENED.match(result)
    if opened is not None and not has_meta:
        typed = b"" if is_typed else b',"resultType":"complete"'
        more = b"" if result[opened.end()] == _CLOSES else b","
        rest = memoryview(result)[opened.end() :]
        return b"".join((b'{"_meta":{', info, b"}", typed, more, rest))
    members = _members(result)
    members.setdefault("resultType", msgspec.Raw(b'"complete"'))
    kept = without_reserved(members["_meta"]) if "_meta" in members else None
    members["_meta"] = msgspec.Raw(_merge(kept, info))
    return dumps(members)


def _marked(result: bytes, value: JsonObject | None) -> tuple[bool, bool]:
    """Tell whether a result has a `resultType`, and whether it has a `_meta`."""
    if value is not None:
        return "resultType" in value, "_meta" in value
    marks = _marks(result)
    return bool(bytes(marks.type)), bool(bytes(marks.meta))


def _merge(meta: msgspec.Raw | None, info: bytes) -> bytes:
    body = b"" if meta is None else bytes(meta).strip()
    inside = body[1:-1].strip() if body.startswith(b"{") else b""
    return b"{%b,%b}" % (inside, info) if inside else b"{%b}" % info


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a subscription asks for: changes of `tools`, `prompts`, `resources`, and some URIs."""

    lists: frozenset[str]
    resources: tuple[str, ...] = ()


def read_listen(params: JsonObject) -> Filter:
    """Return what a `subscriptions/listen` asks for.

    Raises:
        BadMessage: The filter is not an object, or its URIs are not some strings.
    """
    wanted = params.get("notifications")
    if type(wanted) is not dict:
        raise invalid_params(message='"notifications" must be an object')
    uris = wanted.get("resourceSubscriptions", [])
    if type(uris) is not list or not all(type(uri) is str for uri in uris):
        raise invalid_params(message='"resourceSubscriptions" must be a list of URIs')
    if len(uris) > MAX_SUBSCRIPTIONS:
        raise invalid_params(message=f"at most {MAX_SUBSCRIPTIONS} resources in a subscription")
    lists = frozenset(name for name, key in _CHANGES.items() if wanted.get(key) is True)
    return Filter(lists=lists, resources=tuple(dict.fromkeys(uris)))


def acknowledged(id_: MessageId, honoured: Filter) -> bytes:
    """Return the first frame of a subscription: what we agreed to send."""
    told: dict[str, Any] = {key: True for name, key in _CHANGES.items() if name in honoured.lists}
    if honoured.resources:
        told["resourceSubscriptions"] = honoured.resources
    return encode_notification(
        ACKNOWLEDGED, {"notifications": told, "_meta": {SUBSCRIPTION_KEY: id_}}
    )


def subscribed(id_: MessageId, method: str, params: JsonObject) -> bytes:
    """Return a notification as a frame of subscription `id_`."""
    kept = params.get("_meta")
    meta = {**kept, SUBSCRIPTION_KEY: id_} if type(kept) is dict else {SUBSCRIPTION_KEY: id_}
    return encode_notification(method, {**params, "_meta": meta})


def listen_result(id_: MessageId) -> bytes:
    """Return the result that ends subscription `id_` on purpose."""
    return dumps({"resultType": "complete", "_meta": {SUBSCRIPTION_KEY: id_}})


def envelope_meta(
    client_info: JsonObject, capabilities: JsonObject, log_level: str | None = None
) -> dict[str, Any]:
    """Return the `_meta` keys that each of our own requests carries."""
    meta: dict[str, Any] = {
        VERSION_KEY: LATEST,
        CLIENT_KEY: client_info,
        CAPABILITIES_KEY: capabilities,
    }
    if log_level is not None:
        meta[LOG_LEVEL_KEY] = log_level
    return meta


def request_headers(method: str, params: JsonObject) -> dict[str, str]:
    """Return the headers that mirror our request; `wire.headers` adds those of arguments."""
    headers = {VERSION_HEADER: LATEST, METHOD_HEADER: method}
    named = _NAMED.get(method) or _NAMED_BY_EXTENSIONS.get(method)
    if named is not None and type(params.get(named)) is str:
        headers[NAME_HEADER] = encode_value(params[named])
    return headers


def listen_params(meta: JsonObject) -> JsonObject:
    """Return the params of our own subscription to changes of a server's tool list."""
    return {"notifications": {"toolsListChanged": True}, "_meta": meta}


def read_discovered(result: bytes) -> Discovered:
    """Return a server's answer to our `server/discover`.

    Raises:
        BadMessage: It names no version that we speak in this era.
    """
    value = _value(result)
    versions, instructions = value.get("supportedVersions"), value.get("instructions")
    known = [v for v in VERSIONS if type(versions) is list and v in versions]
    if not known:
        raise invalid_params(message="the server names none of " + ", ".join(VERSIONS))
    meta = value.get("_meta")
    info = meta.get(SERVER_KEY) if type(meta) is dict else None
    capabilities = value.get("capabilities")
    return Discovered(
        versions=tuple(known),
        server_info=info if type(info) is dict else {},
        capabilities=capabilities if type(capabilities) is dict else {},
        instructions=instructions if type(instructions) is str else "",
    )
