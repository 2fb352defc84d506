"""The handshake era (up to 2025-11-25): `initialize`, a session, notifications on its streams.

Knows nothing of the other era; both directions of one connection are here.
"""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from thoughtgate.core.json import JsonObject
from thoughtgate.wire.methods import MAX_SAID, invalid_params
from thoughtgate.wire.results import without_reserved
from thoughtgate.wire.strict import dumps

VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Oldest first."""

LATEST: Final = VERSIONS[-1]

SESSION_HEADER: Final = "mcp-session-id"
VERSION_HEADER: Final = "mcp-protocol-version"
LAST_EVENT_HEADER: Final = "last-event-id"

_MARKED: Final = frozenset({"resultType", "_meta"})
"""Members of a result that may have to be taken out, or taken from."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a client says in `initialize`; `version` is already the one agreed on."""

    version: str
    client: JsonObject
    capabilities: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """What a server says to `initialize`."""

    version: str
    server_info: JsonObject
    capabilities: JsonObject
    instructions: str


def read_hello(params: JsonObject) -> Hello:
    """Return a client's `initialize`; an unknown version is answered with our newest.

    Raises:
        BadMessage: A part is missing, of the wrong type or too large.
    """
    version = params.get("protocolVersion")
    client, capabilities = params.get("clientInfo"), params.get("capabilities")
    if type(version) is not str:
        raise invalid_params(message='"protocolVersion" must be a string')
    if type(client) is not dict:
        raise invalid_params(message='"clientInfo" must be an object')
    if type(capabilities) is not dict:
        raise invalid_params(message='"capabilities" must be an object')
    if len(dumps([client, capabilities])) > MAX_SAID:
        message = f'"clientInfo" and "capabilities" may have {MAX_SAID} bytes together'
        raise invalid_params(message=message)
    agreed = version if version in VERSIONS else LATEST
    return Hello(version=agreed, client=client, capabilities=capabilities)


def welcome_result(welcome: Welcome) -> bytes:
    """Return the result of `initialize`; empty instructions are left out."""
    result: dict[str, Any] = {
        "protocolVersion": welcome.version,
        "capabilities": welcome.capabilities,
        "serverInfo": welcome.server_info,
    }
    if welcome.instructions:
        result["instructions"] = welcome.instructions
    return dumps(result)


def hello_params(client_info: JsonObject, capabilities: JsonObject) -> JsonObject:
    """Return the params of our own `initialize`, which offers the newest version."""
    return {"protocolVersion": LATEST, "capabilities": capabilities, "clientInfo": client_info}


def read_welcome(result: bytes) -> Welcome:
    """Return a server's answer to our `initialize`.

    Raises:
        BadMessage: It chose a version that we do not speak, or left out a part.
    """
    value = _value(result)
    version, instructions = value.get("protocolVersion"), value.get("instructions")
    if version not in VERSIONS:
        raise invalid_params(message="the server chose none of " + ", ".join(VERSIONS))
    return Welcome(
        version=version,
        server_info=_object(value.get("serverInfo")),
        capabilities=_object(value.get("capabilities")),
        instructions=instructions if type(instructions) is str else "",
    )


def request_headers(version: str, session_id: str) -> dict[str, str]:
    """Return the headers of our requests after `initialize`."""
    headers = {VERSION_HEADER: version}
    if session_id:
        headers[SESSION_HEADER] = session_id
    return headers


def list_result(items: bytes, cursor: str | None, key: str = "tools") -> bytes:
    """Return a list result around `items`, the bytes of a JSON array; `key` is what they are."""
    if cursor is None:
        return b'{"%b":%b}' % (key.encode(), items)
    return b'{"%b":%b,"nextCursor":%b}' % (key.encode(), items, dumps(cursor))


def finish(result: bytes, value: JsonObject | None = None) -> bytes:
    """Return a server's result for a client of this era: the other era's marks taken out.

    `value` is what it spells, if that is known.
    """
    if value is not None and value.keys().isdisjoint(_MARKED):
        return result
    if not _is_marked(result):
        return result
    return _without(_members(result), "resultType")


def finish_read(result: bytes) -> bytes:
    """Return the result of `resources/read`: what the other era says of caching is left out too."""
    if not (_is_marked(result) or b'"ttlMs"' in result or b'"cacheScope"' in result):
        return result
    return _without(_members(result), "resultType", "ttlMs", "cacheScope")


def _is_marked(result: bytes) -> bool:
    """Tell whether a result may hold a mark of the other era, as it is or with a letter escaped."""
    return b'"resultType"' in result or b"io.modelcontextprotocol" in result or b"\\u00" in result


def _without(members: dict[str, msgspec.Raw], *foreign: str) -> bytes:
    for name in foreign:
        members.pop(name, None)
    if "_meta" in members:
        meta = without_reserved(members["_meta"])
        if meta is None:
            del members["_meta"]
        else:
            members["_meta"] = meta
    return dumps(members)


def _object(value: object) -> JsonObject:
    return value if type(value) is dict else {}
