"""Domain views: the tools that a domain shows, how they look there, and the way back.

Never calls anything and never changes a definition: what is shown is a new object, and calls are
always held against the tool's true schema.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from thoughtgate.catalog import MAX_ADVERTISED, Catalog, advertised_name, safe_name
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.errors import InvalidArguments
from thoughtgate.core.json import JsonObject, JsonValue, canonical, digest
from thoughtgate.core.problems import Problem
from thoughtgate.core.servers import Era
from thoughtgate.core.tools import Tool
from thoughtgate.offered import Offered, Shown, fits, offered, shows
from thoughtgate.schema.checks import compiled
from thoughtgate.schema.equality import json_type
from thoughtgate.schema.explain import arguments_report
from thoughtgate.schema.limits import Profile, limit, limit_output, unchanged
from thoughtgate.schema.phrases import preview, unknown_member
from thoughtgate.schema.pointers import pointer

_RENAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_ADVERTISED}}}")
_NO_DRESS = ToolDress()
_OPTIONAL = ("title", "description", "annotations", "icons", "execution", "outputSchema", "_meta")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One tool as a domain shows it.

    `name` is what clients call; `shown` the tool object that they see, the server's own value for
    value except for the name and what the domain dresses; `fixed` are the hidden arguments;
    `visible` is the input schema without them, still without the limits of the domain's profile,
    and `restore` leads back from arguments within those limits; `notes` say what is no longer
    told; `digest` is that of `shown`; `tokens` estimates what it costs a model: the bytes of its
    compact JSON by 4, rounded up (providers count differently).
    """

    name: str
    tool: Tool
    shown: JsonObject
    digest: str
    tokens: int
    visible: JsonObject
    fixed: JsonObject = field(default_factory=dict)
    restore: Callable[[JsonObject], JsonObject] = unchanged
    notes: tuple[str, ...] = ()

    def to_true(self, arguments: JsonObject) -> JsonObject:
        """Return the arguments that the server gets for those that a client sent.

        Raises:
            InvalidArguments: A hidden argument was sent. It reads as an unknown one.
        """
        given = self.restore(arguments)
        if not self.fixed:
            return given
        for name in self.fixed:
            if name in given:
                raise _unknown_argument(self, name, given[name])
        return {**given, **self.fixed}

    def shown_to(self, era: Era) -> JsonObject:
        """Return the tool object for clients of an era: not all of them take any output schema."""
        output = self.shown.get("outputSchema")
        if output is None or limit_output(output, era) is not None:
            return self.shown
        return {key: value for key, value in self.shown.items() if key != "outputSchema"}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one domain shows at one revision of the catalogue.

    `revision` is `sha256:…` over the shown tool objects: it changes when, and only when, a client
    would see another list; `catalog` is the catalogue's revision. `entries` are in the order of
    the list, `table` the same by name; `offered` is what else it shows. `warnings` are sentences
    for an operator.
    """

    domain: Domain
    revision: str
    catalog: str
    entries: tuple[Entry, ...]
    table: Mapping[str, Entry]
    tokens: int
    warnings: tuple[str, ...] = ()
    offered: Offered = field(default_factory=Offered)

    @property
    def prompts(self) -> tuple[Shown, ...]:
        """Return the prompts in the order of their list."""
        return self.offered.prompts

    @property
    def resources(self) -> tuple[Shown, ...]:
        """Return the listed resources in the order of their list."""
        return self.offered.resources

    @property
    def templates(self) -> tuple[Shown, ...]:
        """Return the resource templates in the order of their list."""
        return self.offered.templates

    @property
    def extensions(self) -> JsonObject:
        """Return the extensions that the domain's servers declare, with their settings."""
        return self.offered.extensions

    @property
    def revisions(self) -> Mapping[str, str]:
        """Return the revision of each list that clients ask for."""
        return {"tools": self.revision, **self.offered.revisions}

    @property
    def instructions(self) -> str:
        """Return the domain's instruction text."""
        return self.domain.instructions


def build(domain: Domain, catalog: Catalog, *, earlier: View | None = None) -> View:
    """Return the view of a domain. It depends on nothing but domain and catalogue.

    `earlier` is any older view of it: entries that would come out the same are taken from there.
    """
    chosen, misfits = _chosen(domain, catalog)
    names, warnings = _names(domain, chosen)
    known = earlier.table if earlier and earlier.domain == domain else {}
    entries = tuple(
        _entry(names[tool.key], tool, domain, known) for tool in chosen if tool.key in names
    )
    tokens = sum(entry.tokens for entry in entries)
    beside = offered(domain, catalog, {tool.server for tool in chosen})
    return View(
        offered=beside,
        domain=domain,
        revision=digest([entry.digest for entry in entries]),
        catalog=catalog.revision,
        entries=entries,
        table={entry.name: entry for entry in entries},
        tokens=tokens,
        warnings=(
            *_idle_rules(domain, catalog),
            *misfits,
            *warnings,
            *(f"{entry.name}: {note}" for entry in entries for note in entry.notes),
            *_over_budget(domain, entries, tokens),
            *beside.warnings,
        ),
    )


def _path(tool: Tool) -> str:
    return f"{tool.server}/{tool.name}"


def _dress(domain: Domain, tool: Tool) -> ToolDress:
    return domain.dress.get(_path(tool), _NO_DRESS)


def _shows(domain: Domain, tool: Tool) -> bool:
    return shows(domain, "tool:", _path(tool), tool.tags)


def _chosen(domain: Domain, catalog: Catalog) -> tuple[list[Tool], list[str]]:
    """Return the tools to show, and warnings for those whose fixed arguments cannot be sent."""
    chosen: list[Tool] = []
    misfits: list[str] = []
    for tool in catalog.tools:
        if not _shows(domain, tool):
            continue
        wrong = _misfits(tool, _dress(domain, tool).fixed)
        if wrong:
            misfits.append(
                f"{_path(tool)} is left out: it does not take {', '.join(wrong)} as fixed"
            )
        else:
            chosen.append(tool)
    return chosen, misfits


def _misfits(tool: Tool, fixed: JsonObject) -> list[str]:
    """Return the fixed arguments that the tool's schema refuses whatever else is sent."""
    if not fixed:
        return []
    problems = compiled(tool.digest + "#in", tool.input_schema).problems(fixed)
    places = {problem.pointer for problem in problems if problem.got_type != "absent"}
    return [name for name in fixed if any(_within(place, pointer([name])) for place in places)]


def _within(place: str, name: str) -> bool:
    return place == name or place.startswith(name + "/")


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
    return tool.name if domain.limits == Profile.MCP else safe_name(tool.name)


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


def _entry(name: str, tool: Tool, domain: Domain, known: Mapping[str, Entry]) -> Entry:
    if name in known and known[name].tool is tool:
        return known[name]
    dress = _dress(domain, tool)
    visible = _without(tool.input_schema, dress.fixed) if dress.fixed else tool.input_schema
    limited = limit(visible, Profile(domain.limits))
    shown = {**_plain(tool), "name": name, "inputSchema": limited.schema}
    if dress.description is not None:
        shown["description"] = dress.description
    written = canonical(shown)
    return Entry(
        name=name,
        tool=tool,
        shown=shown,
        digest="sha256:" + hashlib.sha256(written).hexdigest(),
        tokens=-(-len(written) // 4),
        visible=visible,
        fixed=dress.fixed,
        restore=limited.to_true,
        notes=limited.notes,
    )


def _plain(tool: Tool) -> dict[str, JsonValue]:
    """Return the tool object as the server sent it, without nulls for the specification's fields.

    A strict client refuses the whole list for such a null.
    """
    return {
        key: value
        for key, value in tool.definition.items()
        if value is not None or key not in _OPTIONAL
    }


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


def _unknown_argument(entry: Entry, name: str, value: JsonValue) -> InvalidArguments:
    """Return what a client hears that sends an argument which it is not shown."""
    problem = Problem(
        pointer=pointer([name]),
        keyword="additionalProperties",
        expected=unknown_member(entry.shown["inputSchema"]),
        got_type=json_type(value),
        got_preview="",
        hint=f"leave out {preview(name)}",
    )
    text, data = arguments_report(entry.name, [problem])
    return InvalidArguments(message=text, problems=(problem,), data=data)


def _idle_rules(domain: Domain, catalog: Catalog) -> Iterable[str]:
    """Say which rules fit nothing: a typing error, or a server that was not seen yet."""
    for rule in (*domain.include, *domain.exclude):
        if not any(fits(rule, *thing) for thing in _things(catalog)):
            yield f"the rule {rule} of domain {domain.name} fits no tool"
    paths = {_path(tool) for tool in catalog.tools}
    for path in domain.dress:
        if path not in paths:
            yield f"domain {domain.name} dresses {path}, which is no tool"


def _things(catalog: Catalog) -> Iterable[tuple[str, str, frozenset[str]]]:
    """Return everything that a rule may fit, as `fits` takes it."""
    for tool in catalog.tools:
        yield "tool:", _path(tool), tool.tags
    for some in catalog.offers:
        for kind, offers in (
            ("prompt:", some.prompts),
            ("resource:", some.resources),
            ("resource:", some.templates),
        ):
            yield from ((kind, f"{one.server}/{one.name}", one.tags) for one in offers)


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
