"""Tools, and what else servers offer, as the catalogue holds them.

Never changed after it was built: a changed definition is another Tool with another digest.
"""

from dataclasses import dataclass
from enum import StrEnum

from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import NullPolicy, ResultPolicy


class Effect(StrEnum):
    """What a call does to the world; anything not known is a write."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of one server at one definition.

    `name` is the server's own name; `definition` the whole tool object as the server sent it,
    unknown fields included; `digest` is `sha256:` and the hex digest of its canonical JSON;
    `input_schema` and `output_schema` are the true schemas that calls are held against (a
    missing or `true` input schema reads as `{"type": "object"}`).
    """

    server: str
    name: str
    definition: JsonObject
    digest: str
    input_schema: JsonObject
    output_schema: JsonObject | bool | None = None
    effect: Effect = Effect.WRITE
    tags: frozenset[str] = frozenset()
    results: ResultPolicy = ResultPolicy.WARN
    nulls: NullPolicy = NullPolicy.DROP
    call_timeout: float = 120.0

    @property
    def key(self) -> tuple[str, str]:
        """Return the identity: (server, the server's own tool name)."""
        return (self.server, self.name)


class Kind(StrEnum):
    """What a request is for, beside tools, with the shape of its call's `arguments`.

    `prompt`: the prompt's arguments. `resource`, `subscribe`, `unsubscribe`: none. The completion
    kinds: `{"argument": {…}, "context": {…}}`, the latter when the client sent it. `method`: the
    params of a method that we do not know, such as an extension's.
    """

    PROMPT = "prompt"
    RESOURCE = "resource"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    PROMPT_COMPLETION = "prompt_completion"
    RESOURCE_COMPLETION = "resource_completion"
    METHOD = "method"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something else than a tool that one server has: a prompt, a resource, a method.

    `name` is the server's own: a prompt's name, a URI or a URI template, a method; `digest` that of
    its definition, empty for what no list shows (a resource of a template, a method).
    """

    kind: Kind
    server: str
    name: str
    digest: str = ""
    effect: Effect = Effect.READ
    tags: frozenset[str] = frozenset()
    call_timeout: float = 120.0

    @property
    def key(self) -> tuple[str, str]:
        """Return the identity: (server, the server's own name)."""
        return (self.server, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A prompt, a resource or a resource template that a server lists.

    `definition` is the object as the server sent it, unknown fields included; `name` is what it is
    asked for by: a prompt's `name`, a resource's `uri`, a template's `uriTemplate`.
    """

    server: str
    name: str
    definition: JsonObject
    digest: str
    tags: frozenset[str] = frozenset()
    call_timeout: float = 120.0

    @property
    def key(self) -> tuple[str, str]:
        """Return the identity: (server, the server's own name)."""
        return (self.server, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A tool that is held back, with the reason for people; `rule` is a stable name."""

    server: str
    name: str
    rule: str
    reason: str
