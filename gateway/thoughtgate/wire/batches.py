"""JSON-RPC batches, which only MCP 2025-03-26 has: several messages in one array.

Never lets one bad message cost the others their answers: it is returned as its error.
"""

from typing import Final

import msgspec

from thoughtgate.core.errors import Malformed
from thoughtgate.wire import codes
from thoughtgate.wire.messages import BadMessage, Message, Request, decode
from thoughtgate.wire.methods import INITIALIZE
from thoughtgate.wire.salvage import asked_id

VERSION: Final = "2025-03-26"

MAX_MESSAGES: Final = 100

_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def is_batch(data: bytes) -> bool:
    """Tell whether a body begins an array."""
    return data.lstrip(b" \t\r\n")[:1] == b"["


def read_batch(data: bytes, version: str) -> list[Message | BadMessage]:
    """Return the messages of a batch, if a client of that version may send one.

    Raises:
        BadMessage: As `decode_batch` says, or the version has no batches.
    """
    if version != VERSION:
        raise _refused(message="the body must be a single JSON-RPC object")
    return decode_batch(data)


def decode_batch(data: bytes) -> list[Message | BadMessage]:
    """Return the messages of a batch in order, an error in the place of each that is none.

    Raises:
        BadMessage: No array, an empty or long one, two requests of one id, or `initialize`.
    """
    try:
        data.decode()
        items = _items(data)
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise BadMessage(message="not a JSON array", rpc_code=codes.PARSE_ERROR) from None
    if not 0 < len(items) <= MAX_MESSAGES:
        raise _refused(message=f"a batch holds 1 to {MAX_MESSAGES} messages")
    messages = [_decoded(bytes(item)) for item in items]
    ids = [(type(one.id), one.id) for one in messages if isinstance(one, Request)]
    if len(set(ids)) != len(ids):
        raise _refused(message="two requests of the batch have the same id")
    if any(isinstance(one, Request) and one.method == INITIALIZE for one in messages):
        raise _refused(message="initialize must stand alone")
    return messages


def _decoded(item: bytes) -> Message | BadMessage:
    try:
        return decode(item)
    except Malformed as error:
        bad = error if isinstance(error, BadMessage) else _refused(message=error.message)
        bad.id = asked_id(item, bad)
        return bad


def _refused(*, message: str) -> BadMessage:
    return BadMessage(message=message, rpc_code=codes.INVALID_REQUEST)
