"""Domain views: the tools that a domain shows, how they look there, and the way back.

Never calls anything and never changes a definition: what is shown is a new object, and calls are
always held against the tool's true schema.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from thoughtgate.catalog import MAX_ADVERTISED, Catalog, advertised_name, safe_name
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.errors import InvalidArguments
from thoughtgate.core.json import JsonObject, JsonValue, canonical, digest
from thoughtgate.core.problems import Problem
from thoughtgate.core.tools import Tool

UNTOUCHED = "mcp"
"""The limits profile that shows schemas and own names as they are."""

_TAG = "tag:"
_RENAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_ADVERTISED}}}")
_NO_DRESS = ToolDress()
_OPTIONAL = ("title", "description", "annotations", "icons", "execution", "outputSchema", "_meta")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One tool as a domain shows it.

    `name` is what clients call; `shown` the tool object that they see, the server's own value for
    value except for the name and what the domain dresses; `fixed` are the hidden arguments;
    `digest` is that of `shown`; `tokens` estimates what it costs a model: the bytes of its compact
    JSON by 4, rounded up (providers count differently).
    """

    name: str
    tool: Tool
    shown: JsonObject
    digest: str
    tokens: int
    fixed: JsonObject = field(default_factory=dict)

    def to_true(self, arguments: JsonObject) -> JsonObject:
        """Return the arguments that the server gets for those that a client sent.

        Raises:
            InvalidArguments: A hidden argument was sent. It reads as an unknown one.
        """
        if not self.fixed:
            return arguments
        for name in self.fixed:
            if name in arguments:
                raise _unknown_argument(self.name, name)
        return {**arguments, **self.fixed}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one domain shows at one revision of the catalogue.

    `revision` is `sha256:…` over the shown tool objects: it changes when, and only when, a client
    would see another list; `catalog` is the catalogue's revision. `entries` are in the order of
    the list, `table` the same by name. `warnings` are sentences for an operator.
    """

    domain: Domain
    revision: str
    catalog: str
    entries: tuple[Entry, ...]
    table: Mapping[str, Entry]
    tokens: int
    warnings: tuple[str, ...] = ()

    @property
    def instructions(self) -> str:
        """Return the domain's instruction text."""
        return self.domain.instructions


def build(domain: Domain, catalog: Catalog) -> View:
    """Return the view of a domain. It depends on nothing but its two arguments."""
    chosen = [tool for tool in catalog.tools if _shows(domain, tool)]
    names, warnings = _names(domain, chosen)
    entries = tuple(
        _entry(names[tool.key], tool, _dress(domain, tool)) for tool in chosen if tool.key in names
    )
    tokens = sum(entry.tokens for entry in entries)
    return View(
        domain=domain,
        revision=digest([entry.digest for entry in entries]),
        catalog=catalog.revision,
        entries=entries,
        table={entry.name: entry for entry in entries},
        tokens=tokens,
        warnings=(*_idle_rules(domain, catalog), *warnings, *_over_budget(domain, entries, tokens)),
    )


def _path(tool: Tool) -> str:
    return f"{tool.server}/{tool.name}"


def _dress(domain: Domain, tool: Tool) -> ToolDress:
    return domain.dress.get(_path(tool), _NO_DRESS)


def _shows(domain: Domain, tool: Tool) -> bool:
    included = not domain.include or any(_matches(rule, tool) for rule in domain.include)
    return included and not any(_matches(rule, tool) for rule in domain.exclude)


def _matches(rule: str, tool: Tool) -> bool:
    if rule.startswith(_TAG):
        return rule.removeprefix(_TAG) in tool.tags
    return fnmatchcase(_path(tool), rule)


def _names(
    domain: Domain, chosen: Sequence[Tool]
) -> tuple[Mapping[tuple[str, str], str], Sequence[str]]:
    """Give each tool one name that no other has; who asks for a taken name keeps its default.

    Only own names (`prefixed = False`) can still collide then, and such tools are left out: a
    client must never reach another tool than the one it means.
    """
    usual = {tool.key: _usual_name(domain, tool) for tool in chosen}
    names, warnings = _renamed(domain, chosen, usual)
    while losers := [key for key in _sharing(names) if names[key] != usual[key]]:
        for key in losers:
            warnings.append(f"{'/'.join(key)} is shown as {usual[key]}: {names[key]} is taken")
            names[key] = usual[key]
    for key in _sharing(names):
        warnings.append(f"{'/'.join(key)} is left out: {names.pop(key)} is ambiguous; rename it")
    return names, warnings


def _usual_name(domain: Domain, tool: Tool) -> str:
    if domain.prefixed:
        return advertised_name(*tool.key)
    return tool.name if domain.limits == UNTOUCHED else safe_name(tool.name)


def _renamed(
    domain: Domain, chosen: Iterable[Tool], usual: Mapping[tuple[str, str], str]
) -> tuple[dict[tuple[str, str], str], list[str]]:
    names: dict[tuple[str, str], str] = {}
    warnings: list[str] = []
    for tool in chosen:
        wish = _dress(domain, tool).rename
        if wish and not _RENAME.fullmatch(wish):
            warnings.append(
                f"{_path(tool)} is shown as {usual[tool.key]}: a name in a domain must be "
                f"1 to {MAX_ADVERTISED} characters of A-Z a-z 0-9 _ -"
            )
            wish = ""
        names[tool.key] = wish or usual[tool.key]
    return names, warnings


def _sharing(names: Mapping[tuple[str, str], str]) -> list[tuple[str, str]]:
    """Return the tools that share their name with another one."""
    claims = Counter(names.values())
    return [key for key, name in names.items() if claims[name] > 1]


def _entry(name: str, tool: Tool, dress: ToolDress) -> Entry:
    shown = {**_plain(tool), "name": name}
    if dress.description is not None:
        shown["description"] = dress.description
    if dress.fixed:
        shown["inputSchema"] = _without(shown["inputSchema"], dress.fixed)
    written = canonical(shown)
    return Entry(
        name=name,
        tool=tool,
        shown=shown,
        digest="sha256:" + hashlib.sha256(written).hexdigest(),
        tokens=-(-len(written) // 4),
        fixed=dress.fixed,
    )


def _plain(tool: Tool) -> dict[str, JsonValue]:
    """Return the tool object as the server sent it, in the shape that every client can read.

    Left out are nulls where the specification has an optional field, and an input schema always
    says `"type": "object"`: a strict client refuses the whole list for either.
    """
    plain = {
        key: value
        for key, value in tool.definition.items()
        if value is not None or key not in _OPTIONAL
    }
    return {**plain, "inputSchema": tool.input_schema}


def _without(schema: JsonObject, hidden: Iterable[str]) -> JsonObject:
    """Return the schema without the hidden properties."""
    shown = dict(schema)
    if "properties" in shown:
        shown["properties"] = {
            name: value for name, value in schema["properties"].items() if name not in hidden
        }
    if "required" in shown:
        shown["required"] = [name for name in schema["required"] if name not in hidden]
    return shown


def _unknown_argument(tool: str, name: str) -> InvalidArguments:
    problem = Problem(
        pointer="/" + name.replace("~", "~0").replace("/", "~1"),
        keyword="additionalProperties",
        expected="no such argument",
        got_type="unknown",
        got_preview="",
        hint="leave it out",
    )
    return InvalidArguments(
        message=f"{tool} has no argument {name[:80]}; leave it out",
        problems=(problem,),
        data={"problems": [problem.as_json()]},
    )


def _idle_rules(domain: Domain, catalog: Catalog) -> Iterable[str]:
    """Say which rules fit no tool: a typing error, or a server that was not seen yet."""
    for rule in (*domain.include, *domain.exclude):
        if not any(_matches(rule, tool) for tool in catalog.tools):
            yield f"the rule {rule} of domain {domain.name} fits no tool"
    paths = {_path(tool) for tool in catalog.tools}
    for path in domain.dress:
        if path not in paths:
            yield f"domain {domain.name} dresses {path}, which is no tool"


def _over_budget(domain: Domain, entries: Sequence[Entry], tokens: int) -> Iterable[str]:
    """Say so when a view is over its budget; nothing is ever cut silently."""
    if domain.max_tools is not None and len(entries) > domain.max_tools:
        yield (
            f"domain {domain.name} shows {len(entries)} tools, over its budget of "
            f"{domain.max_tools}; all are shown: split it, or raise max_tools"
        )
    if domain.max_tokens is not None and tokens > domain.max_tokens:
        yield (
            f"domain {domain.name} costs about {tokens} tokens, over its budget of "
            f"{domain.max_tokens}; all tools are shown: split it, or raise max_tokens"
        )
