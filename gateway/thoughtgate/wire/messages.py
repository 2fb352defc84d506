"""JSON-RPC messages: bytes to values and back.

Never touches a result: its bytes go through as they came, strictly checked but not rebuilt.
"""

import re
from typing import Any, TypeAlias

import msgspec

from thoughtgate.core.errors import Malformed
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.wire import codes
from thoughtgate.wire.strict import MAX_DEPTH, dumps, parse

MessageId: TypeAlias = str | int
"""A request's id as it was sent; `1` and `"1"` are two ids."""

MAX_ID = 256
"""Characters of the longest id that is accepted, and so echoed."""


class BadMessage(Malformed):
    """Not a JSON-RPC message of MCP; `rpc_code` and `id` are what a reply to it carries."""

    def __init__(self, *, message: str, rpc_code: int, id: MessageId | None = None) -> None:
        super().__init__(message=message)
        self.rpc_code = rpc_code
        self.id = id


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request; absent `params` read as an empty object."""

    id: MessageId
    method: str
    params: JsonObject


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification; absent `params` read as an empty object."""

    method: str
    params: JsonObject


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A successful reply; `result` is the result object's own bytes, `value` what they spell."""

    id: MessageId
    result: bytes
    value: JsonObject


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An error reply; `id` is None when the request's id could not be read."""

    id: MessageId | None
    code: int
    message: str
    data: JsonValue = None


Message: TypeAlias = Request | Notification | Reply | Failure


class _RawReply(msgspec.Struct):
    result: msgspec.Raw


_raw_reply = msgspec.json.Decoder(_RawReply).decode

_SHORT = 4096
"""Bytes up to which finding a result costs less than knowing where it stands."""

_TAIL = 1024
_MEMBER = rb'"(?:jsonrpc"\s*:\s*"2\.0"|id"\s*:\s*(?:-?[0-9]+|"[^"\\]*"))'
_members = re.compile(_MEMBER).findall
_BEFORE = re.compile(rb'\s*\{((?:\s*%b\s*,)*)\s*"result"\s*:\s*' % _MEMBER)
_AFTER = tuple(re.compile(rb"\s*(?:,\s*%b\s*){%d}\}\s*\Z" % (_MEMBER, count)) for count in range(3))


def decode(data: bytes, *, max_depth: int = MAX_DEPTH) -> Message:
    """Return the one message that `data` holds.

    The depth limit counts from the message's own object, two levels above a result's content.

    Raises:
        BadMessage: Not strict JSON, a batch, or not a JSON-RPC 2.0 message.
    """
    try:
        value = parse(data, max_depth=max_depth + 2)
    except Malformed as error:
        raise BadMessage(message=error.message, rpc_code=codes.PARSE_ERROR) from None
    if type(value) is not dict:
        raise _invalid(message="the body must be a single JSON-RPC object")
    id_ = _read_id(value)
    if value.get("jsonrpc") != "2.0":
        raise _invalid(message='"jsonrpc" must be "2.0"', id_=id_)
    if "method" in value:
        return _read_call(value, id_)
    if "error" in value:
        return _read_failure(value["error"], id_)
    result = value.get("result")
    if type(result) is not dict or id_ is None:
        raise _invalid(message="neither a request, a notification nor a reply", id_=id_)
    return Reply(id=id_, result=_result(data, members=len(value)), value=result)


def encode_request(id: MessageId, method: str, params: JsonObject | None = None) -> bytes:
    """Return a request's bytes; params are left out when None."""
    if params is None:
        return dumps({"jsonrpc": "2.0", "id": id, "method": method})
    return dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def encode_notification(method: str, params: JsonObject | None = None) -> bytes:
    """Return a notification's bytes; params are left out when None."""
    if params is None:
        return dumps({"jsonrpc": "2.0", "method": method})
    return dumps({"jsonrpc": "2.0", "method": method, "params": params})


def encode_reply(id: MessageId, result: bytes) -> bytes:
    """Return a reply's bytes around `result`, which is copied as it is."""
    return b"".join((b'{"jsonrpc":"2.0","id":', dumps(id), b',"result":', result, b"}"))


def encode_failure(
    id: MessageId | None,
    code: int,
    message: str,
    data: JsonValue = None,
) -> bytes:
    """Return an error reply's bytes; `data` is left out when None."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return dumps({"jsonrpc": "2.0", "id": id, "error": error})


def valid_id(value: JsonValue) -> bool:
    """Tell whether `value` may be a request's id: a string or an integer of at most 256 characters.

    MCP forbids null and fractions; the length cap keeps a reply from echoing a huge id.
    """
    if type(value) is str:
        return len(value) <= MAX_ID
    return type(value) is int and value.bit_length() <= MAX_ID


def _result(data: bytes, *, members: int) -> bytes:
    """Return the bytes of a reply's result; a large one of the usual shape is not read again.

    The reply has been parsed: it is one object whose keys differ. With three members, those that
    are not the result are the id and the version, which stand before it or behind it.
    """
    before = _BEFORE.match(data) if members == 3 and len(data) > _SHORT else None
    if before is not None:
        after = _AFTER[2 - len(_members(before[1]))].search(data[-_TAIL:])
        if after is not None:
            end = len(data) - (after.end() - after.start())
            return data[before.end() : end]
    return bytes(_raw_reply(data).result)


def _read_id(value: JsonObject) -> MessageId | None:
    """Return the id, None when there is none; a reply's null id reads as None."""
    id_ = value.get("id")
    if valid_id(id_):
        return id_
    if "id" in value and not (id_ is None and "error" in value):
        raise _invalid(message=f'"id" must be a string or an integer, at most {MAX_ID} long')
    return None


def _read_call(value: JsonObject, id_: MessageId | None) -> Request | Notification:
    method, params = value["method"], value.get("params", {})
    if type(method) is not str:
        raise _invalid(message='"method" must be a string', id_=id_)
    if type(params) is not dict:
        raise BadMessage(
            message='"params" must be an object', rpc_code=codes.INVALID_PARAMS, id=id_
        )
    if id_ is None:
        return Notification(method=method, params=params)
    return Request(id=id_, method=method, params=params)


def _read_failure(error: JsonValue, id_: MessageId | None) -> Failure:
    if type(error) is not dict:
        raise _invalid(message='"error" must be an object', id_=id_)
    code, message = error.get("code"), error.get("message", "")
    if type(code) is not int or type(message) is not str:
        raise _invalid(message='"error" must hold an integer code and a message', id_=id_)
    return Failure(id=id_, code=code, message=message, data=error.get("data"))


def _invalid(*, message: str, id_: MessageId | None = None) -> BadMessage:
    return BadMessage(message=message, rpc_code=codes.INVALID_REQUEST, id=id_)
