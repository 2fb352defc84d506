"""A domain: a named view of the catalogue.

Never holds tools, only the rules that choose and dress them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from thoughtgate.core.json import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDress:
    """How one tool looks in a domain.

    `rename` replaces the advertised name; `description` the server's text; `fixed` are arguments
    with fixed values, hidden from the client's schema and added to every call.
    """

    rename: str = ""
    description: str | None = None
    fixed: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A named view.

    `include` and `exclude` are globs over `server/name` of tools and prompts and `server/uri` of
    resources, only of one kind after `tool:`, `prompt:` or `resource:`, or `tag:NAME` over servers'
    tags; an empty `include` means all. `dress` is keyed by `server/tool`, exact. `max_tools` and
    `max_tokens` are the budget that selection works for (None: none). `prefixed = False` shows the
    server's own names and is allowed only while names do not collide. `engine` names the reasoning
    engine that clients of this domain may hand tasks to, empty for none. `revision` counts changes
    from 1.
    """

    name: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    dress: Mapping[str, ToolDress] = field(default_factory=dict)
    instructions: str = ""
    max_tools: int | None = 10
    max_tokens: int | None = None
    prefixed: bool = True
    limits: str = "mcp"
    engine: str = ""
    revision: int = 1
    source: str = "registry"


DEFAULT_DOMAIN = "default"
"""The domain of the endpoint `/mcp`."""
