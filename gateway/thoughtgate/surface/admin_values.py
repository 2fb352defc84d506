"""What the admin API takes and gives, as structs; its JSON Schemas are made of these.

Never holds a secret on its way out: of headers and variables only names are told, and there is no
field for a command on the way in.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from thoughtgate.core.servers import Era, NullPolicy, ResultPolicy, Sharing
from thoughtgate.core.tools import Effect
from thoughtgate.schema.limits import Profile
from thoughtgate.surface.admin_grpc import GrpcEntry, GrpcPut

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
Word = Annotated[str, Meta(min_length=1, max_length=100)]
Words = Annotated[tuple[Word, ...], Meta(max_length=200)]
Rules = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=2048)], ...], Meta(max_length=500)
]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
OfferKind = Literal["prompt", "resource", "template"]
Budget = Annotated[int, Meta(ge=1)] | None
Cursor = Annotated[str, Meta(max_length=600, description="`next` of the page before.")]
PageSize = Annotated[int, Meta(ge=1, le=500, description="Entries on one page.")]
Flag = Annotated[bool, Meta(description="Also the log's own rows, `audit.…`.")]


class Asked(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What a client sends; a key that is not known is refused."""


class Page(Asked, kw_only=True, frozen=True):
    """Which part of a list."""

    limit: PageSize = 100
    cursor: Cursor = ""


class AuditQuery(Page, kw_only=True, frozen=True):
    """Which part of the audit log, newest first."""

    notes: Flag = False


class ToolQuery(Page, kw_only=True, frozen=True):
    """Which tools of the catalogue."""

    server: Annotated[str, Meta(description="Only the tools of this server.")] = ""
    held: Annotated[bool, Meta(description="Only those that are held back.")] = False


class Problem(Struct, kw_only=True, frozen=True):
    """An error, by RFC 9457; `code` is one of the gateway's error codes."""

    status: int
    code: str
    title: str
    detail: str
    type: str = "about:blank"
    data: dict[str, Any] = {}


class ServerState(Struct, kw_only=True, frozen=True):
    """How a server stands; `reason` says why it is not ready, and what to do."""

    name: str
    state: str
    reason: str = ""
    tools: int = 0


class WorkerState(Struct, kw_only=True, frozen=True):
    """One worker: its calls since its start, those in flight, its sessions, tasks of its loop.

    One that does not answer just now is not `up`, and its numbers are unknown.
    """

    index: int
    up: bool = True
    pid: int = 0
    calls: int = 0
    running: int = 0
    sessions: int = 0
    tasks: int = 0


class Status(Struct, kw_only=True, frozen=True):
    """A running gateway. `revision` is the registry's, `catalogue` that of what is listed."""

    version: str
    pid: int
    started: str
    uptime: float
    config: str | None
    revision: int
    catalogue: str
    tools: int
    held: int
    domains: int
    sessions: int
    servers: tuple[ServerState, ...]
    workers: tuple[WorkerState, ...] = ()


class ServerEntry(Struct, kw_only=True, frozen=True):
    """A registered server, without its secrets.

    `secrets` are the names of its headers, or of the variables of its child. Of `url` and `command`
    what may be a secret is masked. `source` is `config` for an entry of the configuration file.
    """

    name: str
    kind: Literal["stdio", "http", "grpc", "local"]
    url: str = ""
    sse: bool = False
    grpc: GrpcEntry | None = None
    command: tuple[str, ...] = ()
    cwd: str = ""
    secrets: tuple[str, ...] = ()
    enabled: bool = True
    trusted: bool = False
    tags: tuple[str, ...] = ()
    era: Era | None = None
    results: ResultPolicy = ResultPolicy.WARN
    nulls: NullPolicy = NullPolicy.DROP
    start_timeout: float = 30.0
    call_timeout: float = 120.0
    sharing: Sharing | None = None
    idle_timeout: float = 0.0
    login: str = ""
    source: str = "registry"
    state: str = ""
    reason: str = ""
    tools: tuple[str, ...] = ()


class ServerList(Struct, kw_only=True, frozen=True):
    """A page of servers, by name."""

    servers: tuple[ServerEntry, ...]
    next: str | None = None


class ServerPut(Asked, kw_only=True, frozen=True):
    """A server at a URL. Values of headers are stored encrypted and never told again.

    The URL as it is told keeps what is stored of it. A header whose value is null keeps the value
    that is stored, as long as the URL stays the same. So are the files of a gRPC server kept, which
    cannot be named over the network.
    """

    url: Annotated[str, Meta(pattern=r"^(https?|grpcs?)://", max_length=4096)]
    sse: bool = False
    headers: Annotated[dict[Word, str | None], Meta(max_length=50)] = {}
    grpc: GrpcPut | None = None
    enabled: bool = True
    trusted: bool = False
    tags: Words = ()
    era: Era | None = None
    results: ResultPolicy = ResultPolicy.WARN
    nulls: NullPolicy = NullPolicy.DROP
    start_timeout: Seconds = 30.0
    call_timeout: Seconds = 120.0
    sharing: Sharing | None = None
    idle_timeout: Annotated[float, Meta(ge=0, le=86_400)] = 0.0


class ServerChecked(Struct, kw_only=True, frozen=True):
    """What a server answered when it was asked for its tools now."""

    name: str
    ok: bool
    state: str
    reason: str = ""
    tools: tuple[str, ...] = ()


class HeldTool(Struct, kw_only=True, frozen=True):
    """A tool that is held back, and why; `rule` is a stable name."""

    server: str
    tool: str
    rule: str
    reason: str


class ToolEntry(Struct, kw_only=True, frozen=True):
    """A tool of the catalogue; `rule` and `reason` say why it is held back, if it is."""

    server: str
    tool: str
    description: str = ""
    effect: Effect | None = None
    digest: str = ""
    rule: str = ""
    reason: str = ""


class ToolList(Struct, kw_only=True, frozen=True):
    """A page of tools, by server and name."""

    tools: tuple[ToolEntry, ...]
    next: str | None = None


class ToolShown(Struct, kw_only=True, frozen=True):
    """One tool with its definition, as its server sent it."""

    entry: ToolEntry
    definition: dict[str, Any]


class EffectPut(Asked, kw_only=True, frozen=True):
    """What a call of a tool does to the world; null takes back what was said."""

    effect: Effect | None


class EffectSaid(Struct, kw_only=True, frozen=True):
    """What was said of a tool; `warnings` tell when no such tool was seen so far."""

    server: str
    tool: str
    effect: Effect | None
    warnings: tuple[str, ...] = ()


class Dress(Asked, kw_only=True, frozen=True):
    """How one tool looks in a domain. A fixed value that may be a secret is told as `***`."""

    rename: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{0,60}$")] = ""
    description: str | None = None
    fixed: dict[str, Any] = {}


class DomainPut(Asked, kw_only=True, frozen=True):
    """A named view of the tools. `***` as a fixed value keeps the one that is stored."""

    include: Rules = ()
    exclude: Rules = ()
    dress: Annotated[dict[Annotated[str, Meta(max_length=200)], Dress], Meta(max_length=1000)] = {}
    instructions: str = ""
    max_tools: Budget = 10
    max_tokens: Budget = None
    prefixed: bool = True
    limits: Profile = Profile.MCP
    engine: Literal["", "react"] = ""


class DomainEntry(Struct, kw_only=True, frozen=True):
    """A domain with the size of what a client sees; its `revision` counts its changes."""

    name: str
    endpoint: str
    revision: int
    source: str
    rules: DomainPut
    tools: int = 0
    tokens: int = 0
    warnings: tuple[str, ...] = ()


class DomainList(Struct, kw_only=True, frozen=True):
    """A page of domains, by name."""

    domains: tuple[DomainEntry, ...]
    next: str | None = None


class DomainTool(Struct, kw_only=True, frozen=True):
    """A tool as a domain shows it, with where it comes from."""

    name: str
    server: str
    tool: str
    effect: Effect
    digest: str
    tokens: int
    trusted: bool = False
    description: str = ""
    shown: dict[str, Any] = {}


class DomainTools(Struct, kw_only=True, frozen=True):
    """A page of what a domain shows, in the order of its list; `tokens` are those of the whole."""

    domain: str
    tokens: int
    tools: tuple[DomainTool, ...]
    warnings: tuple[str, ...] = ()
    held: tuple[HeldTool, ...] = ()
    next: str | None = None


class DomainOffer(Struct, kw_only=True, frozen=True):
    """What a domain shows beside tools; `name` is what clients ask for, `own` the server's word."""

    kind: OfferKind
    name: str
    server: str
    own: str
    description: str = ""


class DomainOffers(Struct, kw_only=True, frozen=True):
    """A page of the prompts, resources and templates of a domain, in the order of their lists."""

    domain: str
    offers: tuple[DomainOffer, ...]
    next: str | None = None


class StageEntry(Struct, kw_only=True, frozen=True):
    """One stage of a call's path, and what it does to it."""

    stage: str
    does: str


class Explained(Struct, kw_only=True, frozen=True):
    """The path of a call of one tool, outermost stage first."""

    domain: str
    tool: str
    stages: tuple[StageEntry, ...]


class AuditEntry(Struct, kw_only=True, frozen=True):
    """One row of the audit log; `row` is null when somebody made it unreadable."""

    chain: str
    seq: int
    at_ns: int
    hash: str
    row: dict[str, Any] | None


class AuditPage(Struct, kw_only=True, frozen=True):
    """A page of the audit log, newest first."""

    rows: tuple[AuditEntry, ...]
    next: str | None = None


class ChainVerdict(Struct, kw_only=True, frozen=True):
    """One writer's chain, and where and why it breaks, if it does."""

    writer: str
    rows: int
    ok: bool
    broken_at: int | None = None
    why: str = ""


class AuditVerdict(Struct, kw_only=True, frozen=True):
    """Whether no row of the audit log was changed, removed, added or moved."""

    ok: bool
    rows: int
    chains: tuple[ChainVerdict, ...]


class Reloaded(Struct, kw_only=True, frozen=True):
    """What a reload of the configuration file led to.

    `servers` and `domains` name what is new, gone or another; `restart` the tables that differ but
    take effect only when the gateway is started again.
    """

    config: str | None
    servers: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


class BackupPut(Asked, kw_only=True, frozen=True):
    """The name of a copy, a new file in the folder `backups` beside the registry."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class BackedUp(Struct, kw_only=True, frozen=True):
    """Where the copy lies on the gateway's machine, and its size in bytes."""

    path: str
    size: int
