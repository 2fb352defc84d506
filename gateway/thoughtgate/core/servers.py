"""Tool servers as the registry knows them, and what discovery found there.

Never opens a connection; secrets in `env` and `headers` are already decrypted values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from thoughtgate.core.json import JsonObject

_EMPTY: Mapping[str, str] = MappingProxyType({})

BUILT_IN = "thoughtgate"
"""The server name of the gateway's own tools; no other server may have it."""


class NullPolicy(StrEnum):
    """What to do with a null for an optional property whose schema refuses null."""

    DROP = "drop"
    REJECT = "reject"
    PASS = "pass"


class ResultPolicy(StrEnum):
    """What to do with a structured result that breaks the output schema."""

    OFF = "off"
    WARN = "warn"
    STRICT = "strict"


class Era(StrEnum):
    """Which of the two protocol eras a peer speaks."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"


class Sharing(StrEnum):
    """Who shares a connection to a server.

    `shared`: everybody, and then nothing is declared that not everybody could answer. `principal`:
    the sessions of one principal. `session`: each client session has its own.
    """

    SHARED = "shared"
    PRINCIPAL = "principal"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioTransport:
    """A child process that speaks MCP over its standard input and output."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    cwd: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTransport:
    """A streamable HTTP endpoint; `headers` are sent with every request.

    `sse` says that the server speaks the older HTTP+SSE transport of 2024-11-05.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    sse: bool = False


class Streaming(StrEnum):
    """What the messages of a streaming gRPC method become: one array, or only the last of them."""

    ARRAY = "array"
    LAST = "last"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Files in PEM form that a TLS connection uses; empty means the system's authorities, none.

    `cert` holds our own certificate with its chain, `key` its key: both or neither. `name` is the
    name that the server's certificate must have, where that is not the host of the URL.
    """

    ca: str = ""
    cert: str = ""
    key: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcTransport:
    """A gRPC server: one that speaks `thoughtgate.tools.v1`, or any whose methods become tools.

    `url` is `grpc://HOST:PORT`, or with TLS `grpcs://HOST[:PORT]`; `headers` are sent as metadata
    with every RPC. `reflect` names what becomes tools, `package.Service` or
    `package.Service/Method`, `*` for everything; empty means that the server speaks our own
    protocol. `descriptor_set` is a file that stands for reflection. `bidi` allows methods in which
    both sides stream.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    reflect: tuple[str, ...] = ()
    descriptor_set: str = ""
    streaming: Streaming = Streaming.ARRAY
    bidi: bool = False
    tls: Tls = field(default_factory=Tls)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTransport:
    """Tools that live in this process."""


Transport = StdioTransport | HttpTransport | GrpcTransport | LocalTransport


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One registered tool server.

    `name` matches `[a-z0-9][a-z0-9-]{0,39}`. Timeouts are seconds: `start_timeout` bounds connect
    and discovery, `call_timeout` one call (progress does not extend it). `eras` is what to try:
    None means probe. `trusted` says that the tools' own annotations may be believed. `sharing`
    None means: `session` for servers over HTTP in the handshake era, else `shared`. `idle_timeout`
    ends a connection, and its child, that nobody used for so many seconds: 0 means never for the
    shared one, and ten minutes for the others; what is listed stays listed.
    """

    name: str
    transport: Transport
    enabled: bool = True
    trusted: bool = False
    tags: frozenset[str] = frozenset()
    era: Era | None = None
    results: ResultPolicy = ResultPolicy.WARN
    nulls: NullPolicy = NullPolicy.DROP
    start_timeout: float = 30.0
    call_timeout: float = 120.0
    sharing: Sharing | None = None
    idle_timeout: float = 0.0
    source: str = "registry"


class UpstreamState(StrEnum):
    """Where an upstream stands."""

    DISABLED = "disabled"
    IDLE = "idle"
    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    NEEDS_AUTH = "needs_auth"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What one discovery of one server found: its objects, lossless and in its order.

    `capabilities` are the server's own, as it declared them to us. `warnings` are sentences for an
    operator (page cap reached, repeated cursor, …).
    """

    server: str
    tools: tuple[JsonObject, ...]
    era: Era
    version: str
    server_info: JsonObject
    instructions: str = ""
    warnings: tuple[str, ...] = ()
    prompts: tuple[JsonObject, ...] = ()
    resources: tuple[JsonObject, ...] = ()
    templates: tuple[JsonObject, ...] = ()
    capabilities: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamStatus:
    """An upstream's state for people: `reason` says why it is not ready, and what to do."""

    server: str
    state: UpstreamState
    reason: str = ""
    era: Era | None = None
    version: str = ""
