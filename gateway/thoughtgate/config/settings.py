"""Settings: every table and key that a configuration file may have.

Never reads a file or the environment; the descriptions here are the reference that users read.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

NAME_PATTERN = r"^[a-z0-9][a-z0-9-]{0,39}$"
"""What names of servers, domains and models look like."""

Name = Annotated[str, Meta(pattern=NAME_PATTERN)]
Seconds = Annotated[float, Meta(gt=0, le=86400)]


class GatewaySettings(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Where the gateway listens and what it keeps."""

    host: Annotated[str, Meta(description="Address to listen on; only loopback is accepted.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Meta(ge=0, le=65535, description="Port; 0 takes a free one.")] = 8765
    workers: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description="Processes that serve side by side, on one port and one registry: 1 to 64.",
        ),
    ] = 1
    worker_timeout: Annotated[
        float,
        Meta(
            ge=1,
            le=3600,
            description="Seconds in which one of several workers must answer their parent, else it "
            "is killed and started again; a tenth of that, and it gets no new connections.",
        ),
    ] = 60.0
    grpc_port: Annotated[
        Annotated[int, Meta(ge=0, le=65535)] | None,
        Meta(
            description="Port on which clients over gRPC are served, beside the other; 0 takes a"
            " free one. Not served unless it is set."
        ),
    ] = None
    grpc_health: Annotated[
        bool, Meta(description="Answer `grpc.health.v1.Health` there, as `/readyz` does.")
    ] = False
    grpc_reflection: Annotated[
        bool, Meta(description="Tell by server reflection what is spoken there.")
    ] = False
    allowed_hosts: Annotated[
        tuple[str, ...], Meta(description="Host header values accepted besides loopback's own.")
    ] = ()
    allowed_origins: Annotated[
        tuple[str, ...], Meta(description="Origins accepted besides loopback's own.")
    ] = ()
    admin: Annotated[
        Literal["on", "off"],
        Meta(description="Serve the admin API at `/api/v1`; it needs the token of a 0600 file."),
    ] = "on"
    audit: Annotated[
        Literal["best-effort", "required"],
        Meta(description="`required` refuses calls that cannot be audited."),
    ] = "best-effort"
    key: Annotated[
        Literal["file", "keyring"],
        Meta(description="Where the key of server secrets lives: a 0600 file or the OS keyring."),
    ] = "file"
    capture: Annotated[
        bool, Meta(description="Record arguments, results and prompts in traces.")
    ] = False
    traces: Annotated[
        str,
        Meta(
            pattern=r"^(https?://.+)?$",
            description="Base URL of an OTLP endpoint that takes traces; `OTEL_*` variables win.",
        ),
    ] = ""
    plugins: Annotated[
        tuple[str, ...],
        Meta(description="Installed plug-in stages to use, by name, outermost first."),
    ] = ()
    list_wait: Annotated[
        Seconds,
        Meta(description="Seconds after start in which a list waits for servers never seen."),
    ] = 2.0
    ready_within: Annotated[
        Seconds,
        Meta(description="Seconds in which a server must list its tools for `/readyz`."),
    ] = 2.0
    grace: Annotated[
        int,
        Meta(
            ge=0,
            le=3600,
            description="Seconds that calls in flight may take to end after the signal to stop.",
        ),
    ] = 5
    drain_delay: Annotated[
        float,
        Meta(
            ge=0,
            le=600,
            description="Seconds after that signal in which new calls are still taken, while"
            " `/readyz` says no already.",
        ),
    ] = 0.0


class LimitSettings(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Bounds, of each worker where there are several; every one refuses clearly when reached."""

    request_bytes: Annotated[
        int, Meta(ge=1024, le=2**30, description="Largest request body in bytes.")
    ] = 4 * 2**20
    result_bytes: Annotated[
        int, Meta(ge=1024, le=2**31, description="Largest message from a tool server in bytes.")
    ] = 32 * 2**20
    concurrent_calls: Annotated[
        int, Meta(ge=1, le=100_000, description="Calls in flight at once.")
    ] = 512
    queued_calls: Annotated[
        int, Meta(ge=0, le=100_000, description="Calls that may wait for a place.")
    ] = 1024
    sessions: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Sessions of the handshake era held at once, each with a stream of its own."
            " For them the gateway raises its limit of open files to the system's hard limit, to"
            " 65536 at most.",
        ),
    ] = 10_000
    session_idle: Annotated[
        Seconds, Meta(description="Seconds after which an unused session ends.")
    ] = 1800.0
    page_size: Annotated[int, Meta(ge=1, le=10_000, description="Tools on one page of a list.")] = (
        100
    )
    call_depth: Annotated[
        int, Meta(ge=1, le=16, description="How deep calls may stand in one another.")
    ] = 4


class ToolSettings(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What the operator knows better about one tool of a server."""

    effect: Annotated[
        Literal["read", "idempotent", "write"] | None,
        Meta(description="Effect class; unknown is a write."),
    ] = None


class ServerSettings(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One tool server: `command` for a child process, or `url` for HTTP or gRPC."""

    command: Annotated[
        tuple[str, ...], Meta(description="Program and arguments; no shell is used.")
    ] = ()
    env: Annotated[
        dict[str, str], Meta(description="Environment of the child; `${NAME}` is filled in.")
    ] = {}
    cwd: Annotated[str | None, Meta(description="Working directory of the child.")] = None
    url: Annotated[
        str,
        Meta(
            description="Streamable HTTP endpoint, or a gRPC server: `grpc://HOST:PORT`, with TLS"
            " `grpcs://HOST[:PORT]`; `${NAME}` is filled in."
        ),
    ] = ""
    sse: Annotated[
        bool, Meta(description="The server speaks the older HTTP+SSE transport of 2024-11-05.")
    ] = False
    headers: Annotated[
        dict[str, str],
        Meta(description="Headers of every request, metadata over gRPC; `${NAME}` is filled in."),
    ] = {}
    reflect: Annotated[
        tuple[str, ...],
        Meta(
            description="Services over gRPC that become tools, `package.Service` or"
            " `package.Service/Method`, `*` for all; empty: a server of our own protocol."
        ),
    ] = ()
    descriptor_set: Annotated[
        str,
        Meta(
            description="File made by `protoc --descriptor_set_out`, used instead of asking the"
            " gRPC server by reflection; `${NAME}` is filled in, here and in `tls_…`."
        ),
    ] = ""
    streaming: Annotated[
        Literal["array", "last"],
        Meta(description="What the messages of a gRPC method that streams become: all, or one."),
    ] = "array"
    bidi: Annotated[
        bool, Meta(description="Also offer gRPC methods in which both sides stream.")
    ] = False
    tls_ca: Annotated[
        str,
        Meta(
            description="PEM file of the authorities that a `grpcs://` server's certificate must"
            " come from; else the system's. Files begin at the folder of the configuration."
        ),
    ] = ""
    tls_cert: Annotated[
        str, Meta(description="PEM file of our own certificate with its chain, for `grpcs://`.")
    ] = ""
    tls_key: Annotated[str, Meta(description="PEM file of that certificate's key.")] = ""
    tls_name: Annotated[
        str, Meta(description="Name in the server's certificate, where it is not the URL's host.")
    ] = ""
    enabled: Annotated[bool, Meta(description="Whether the server is used at all.")] = True
    trusted: Annotated[
        bool, Meta(description="Believe the tools' own read-only and idempotent hints.")
    ] = False
    tags: Annotated[
        tuple[str, ...], Meta(description="Words that domains may include by `tag:WORD`.")
    ] = ()
    era: Annotated[
        Literal["handshake", "stateless"] | None,
        Meta(description="Protocol era to speak; found out when not given."),
    ] = None
    results: Annotated[
        Literal["off", "warn", "strict"],
        Meta(description="What to do with results that break their own output schema."),
    ] = "warn"
    nulls: Annotated[
        Literal["drop", "reject", "pass"],
        Meta(description="What to do with null for an optional property that refuses it."),
    ] = "drop"
    start_timeout: Annotated[Seconds, Meta(description="Seconds for connecting and discovery.")] = (
        30.0
    )
    call_timeout: Annotated[Seconds, Meta(description="Seconds for one call.")] = 120.0
    sharing: Annotated[
        Literal["shared", "principal", "session"] | None,
        Meta(
            description="Who shares a connection: everybody, one principal's clients, or nobody."
            " When not given: nobody for HTTP servers of the handshake era, else everybody."
        ),
    ] = None
    idle_timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            description="Seconds after which an unused connection ends; 0: never"
            " for a shared one, ten minutes for the others.",
        ),
    ] = 0.0
    tools: Annotated[
        dict[str, ToolSettings], Meta(description="Settings by the server's own tool name.")
    ] = {}


class DressSettings(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """How one tool looks in a domain."""

    rename: Annotated[
        str, Meta(pattern=r"^[A-Za-z0-9_-]{0,60}$", description="Name shown instead.")
    ] = ""
    description: Annotated[str | None, Meta(description="Text shown instead.")] = None
    fixed: Annotated[
        dict[str, Any], Meta(description="Arguments with fixed values, hidden from clients.")
    ] = {}


class DomainSettings(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A named view of the tools, served at `/mcp/NAME`."""

    include: Annotated[
        tuple[str, ...],
        Meta(description="Globs over `server/tool`, or `tag:WORD`; empty means all."),
    ] = ()
    exclude: Annotated[tuple[str, ...], Meta(description="What to leave out again.")] = ()
    tools: Annotated[
        dict[str, DressSettings], Meta(description="Looks of single tools by `server/tool`.")
    ] = {}
    instructions: Annotated[str, Meta(description="Text for the client's model.")] = ""
    max_tools: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Budget of tools for selection.")
    ] = 10
    max_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Budget of tokens for selection.")
    ] = None
    prefixed: Annotated[
        bool, Meta(description="Show `server__tool`; false shows the server's own names.")
    ] = True
    limits: Annotated[
        Literal["mcp", "anthropic", "openai", "openai-strict", "gemini"],
        Meta(description="Provider whose schema limits the shown schemas keep."),
    ] = "mcp"
    engine: Annotated[
        Literal["", "react"], Meta(description="Reasoning engine offered as the tool `reason`.")
    ] = ""


class ModelSettings(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A language model behind an endpoint that speaks one of two APIs."""

    url: Annotated[
        str,
        Meta(pattern=r"^https?://", description="Base URL, such as `http://127.0.0.1:8080/v1`."),
    ]
    model: Annotated[str, Meta(min_length=1, description="Name that the endpoint knows.")]
    api: Annotated[
        Literal["openai", "anthropic"],
        Meta(
            description="What it speaks: chat completions as OpenAI, Ollama, vLLM, llama.cpp and"
            " LM Studio do, or Anthropic's messages."
        ),
    ] = "openai"
    api_key: Annotated[str, Meta(description="Its key; `${NAME}` is filled in.")] = ""
    timeout: Annotated[Seconds, Meta(description="Seconds for one reply.")] = 120.0
    stall: Annotated[
        Seconds, Meta(description="Seconds of silence within a reply that ends a try.")
    ] = 60.0
    tries: Annotated[
        int,
        Meta(
            ge=1,
            le=10,
            description="How often a question is sent when the endpoint is busy, fails or stalls.",
        ),
    ] = 4
    stream: Annotated[
        bool,
        Meta(
            description="Have replies sent in pieces, so that an endpoint that stalls is noticed."
        ),
    ] = False
    omit: Annotated[
        tuple[str, ...],
        Meta(
            description="Fields of the request that the endpoint refuses, such as `temperature`;"
            " instead of `max_tokens` it gets `max_completion_tokens`."
        ),
    ] = ()
    native_tools: Annotated[
        bool, Meta(description="Send tools in the endpoint's own form, else as text.")
    ] = True
    prices: Annotated[
        dict[Literal["input", "output", "cached"], Annotated[float, Meta(ge=0, le=1_000_000)]],
        Meta(
            description="What a million tokens cost, in any one currency: `input`, `output`, and"
            " `cached` for input that the endpoint had read before, else as dear as `input`."
            " Without the first two, costs are unknown."
        ),
    ] = {}


class Settings(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Everything that a configuration file may say."""

    gateway: GatewaySettings = GatewaySettings()
    limits: LimitSettings = LimitSettings()
    servers: dict[Name, ServerSettings] = {}
    domains: dict[Name, DomainSettings] = {}
    models: dict[Name, ModelSettings] = {}
    default_model: Annotated[
        str, Meta(description="Model of runs that name none; the only one by default.")
    ] = ""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration file."""
    schema = msgspec.json.schema(Settings)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
