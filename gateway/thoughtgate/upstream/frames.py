"""What two workers of one gateway tell each other about a tool server that one of them runs.

Never a call's way to decide anything: it has been resolved, checked and audited where it began.
JSON travels as JSON inside MessagePack, so integers stay exact and a server's bytes what they were.
"""

from enum import StrEnum
from typing import TypeAlias

import msgspec


class Speaker(msgspec.Struct, kw_only=True, frozen=True, array_like=True):
    """A client's session as links need it; `peer` is the client outside of calls, 0 for none."""

    id: str
    era: str
    version: str
    origin: str
    capabilities: bytes
    peer: int = 0


class Fault(msgspec.Struct, kw_only=True, frozen=True, array_like=True):
    """An error of the gateway's tree: its code and data, and what a JSON-RPC error held."""

    code: str
    message: str
    data: bytes = b"{}"
    rpc_code: int = 0
    rpc_data: bytes = b"null"


class _Numbered(msgspec.Struct, kw_only=True, frozen=True, array_like=True):
    """What belongs to a request, a question or a notice of this number."""

    number: int


class _Addressed(_Numbered, kw_only=True, frozen=True, array_like=True):
    """What is for a listener; `server` says where it comes from, unless a call does."""

    listener: int
    params: bytes
    method: str = ""
    server: str = ""


class Sending(msgspec.Struct, kw_only=True, frozen=True, array_like=True, tag=1):
    """Carry a call to a server.

    `kind` is empty for a tool; `seconds` are left of its time; `listener` is `number` itself for
    the caller while the call runs, else one that lasts.
    """

    number: int
    server: str
    kind: str
    name: str
    digest: str
    effect: str
    call_timeout: float
    arguments: bytes
    principal: str
    speaker: Speaker
    seconds: float
    listener: int
    meta: bytes = b"{}"
    extra: bytes = b"{}"
    trace: str = ""
    trace_state: str = ""
    log_level: str | None = None
    wants_progress: bool = False
    idempotency_key: str = ""
    answers: bytes = b""
    state: str | None = None


class Wish(StrEnum):
    """What is wanted of a server beside calls.

    `list`: what it offers now; `anew`: the same, once its connections have been opened anew;
    `first`: whether it answers, if it is connected.
    """

    LIST = "list"
    ANEW = "anew"
    FIRST = "first"


class Asking(_Numbered, kw_only=True, frozen=True, array_like=True, tag=2):
    """Ask something of a server that is no call."""

    server: str
    wish: Wish


class GivenUp(_Numbered, kw_only=True, frozen=True, array_like=True, tag=3):
    """Nobody waits for a request any more."""


class Taken(_Numbered, kw_only=True, frozen=True, array_like=True, tag=4):
    """A notice has been delivered: there is room for the next."""


class Answered(_Numbered, kw_only=True, frozen=True, array_like=True, tag=5):
    """The answer to a question, or why there is none."""

    raw: bytes = b""
    fault: Fault | None = None


class Saying(msgspec.Struct, kw_only=True, frozen=True, array_like=True, tag=6):
    """A client's own notification, for the connections that are its own."""

    server: str
    session: str
    method: str
    params: bytes


class Left(msgspec.Struct, kw_only=True, frozen=True, array_like=True, tag=7):
    """A listener that lasted is gone, or a session that may have had a server for itself."""

    listener: int = 0
    server: str = ""
    session: str = ""


class Done(_Numbered, kw_only=True, frozen=True, array_like=True, tag=8):
    """The result of a call; or an empty one, of what is no call."""

    raw: bytes
    is_error: bool = False
    final: bool = True


class Failed(_Numbered, kw_only=True, frozen=True, array_like=True, tag=9):
    """Why a request has no result."""

    fault: Fault


class Listed(_Numbered, kw_only=True, frozen=True, array_like=True, tag=10):
    """What a discovery found, as JSON; `number` is 0 where nobody has asked for it."""

    server: str
    listing: bytes


class Stands(msgspec.Struct, kw_only=True, frozen=True, array_like=True, tag=11):
    """How a server fares."""

    server: str
    state: str
    reason: str = ""
    era: str | None = None
    version: str = ""


class Noticed(_Addressed, kw_only=True, frozen=True, array_like=True, tag=12):
    """A notice for a listener, who is to say when it was `Taken`."""

    kind: str


class Asked(_Addressed, kw_only=True, frozen=True, array_like=True, tag=13):
    """A server's question to a listener."""


class TakenBack(_Numbered, kw_only=True, frozen=True, array_like=True, tag=14):
    """Nobody waits for the answer to a question any more."""


FromGuest: TypeAlias = Sending | Asking | GivenUp | Taken | Answered | Saying | Left
"""What the worker says that wants something."""

FromHost: TypeAlias = Done | Failed | Listed | Stands | Noticed | Asked | TakenBack
"""What the worker says that runs the server."""

_encode = msgspec.msgpack.Encoder().encode
_from_guest = msgspec.msgpack.Decoder(FromGuest)
_from_host = msgspec.msgpack.Decoder(FromHost)


def encode(frame: FromGuest | FromHost) -> bytes:
    """Return the bytes of a frame."""
    return _encode(frame)


def read_guest(data: bytes) -> FromGuest:
    """Return what a worker says that wants something.

    Raises:
        msgspec.DecodeError: It is another version of this gateway, or none.
    """
    return _from_guest.decode(data)


def read_host(data: bytes) -> FromHost:
    """Return what a worker says that runs a server.

    Raises:
        msgspec.DecodeError: It is another version of this gateway, or none.
    """
    return _from_host.decode(data)
