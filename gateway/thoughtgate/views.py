"""Domain views: the tools that a domain shows, how they look there, and the way back.

Never calls anything and never changes a definition: what is shown is a new object, and calls are
always held against the tool's true schema.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_

from thoughtgate.catalog import Catalog, Share
from thoughtgate.chosen import Chosen, Key, choose, dress_of, idle_rules, settle
from thoughtgate.core.domains import Domain
from thoughtgate.core.errors import InvalidArguments
from thoughtgate.core.json import JsonObject, JsonValue, canonical, digest, digest_of
from thoughtgate.core.problems import Problem
from thoughtgate.core.servers import Era
from thoughtgate.core.tools import Tool
from thoughtgate.offered import Offered, Shown, offered
from thoughtgate.offers import Offers
from thoughtgate.schema.equality import json_type
from thoughtgate.schema.explain import arguments_report
from thoughtgate.schema.limits import Profile, limit, limit_output, unchanged
from thoughtgate.schema.phrases import preview, unknown_member
from thoughtgate.schema.pointers import pointer

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
class Slice:
    """The entries of one server's tools in a domain, under the names that they got."""

    chosen: Chosen
    names: Mapping[Key, str]
    entries: tuple[Entry, ...]
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one domain shows at one revision of the catalogue.

    `revision` is `sha256:…` over the shown tool objects: it changes when, and only when, a client
    would see another list; `catalog` is the catalogue's revision. `entries` are in the order of
    the list, `table` the same by name, `slices` by server; `offered` is what else it shows.
    `warnings` are sentences for an operator.
    """

    domain: Domain
    revision: str
    catalog: str
    entries: tuple[Entry, ...]
    table: Mapping[str, Entry]
    tokens: int
    warnings: tuple[str, ...] = ()
    offered: Offered = field(default_factory=Offered)
    slices: tuple[Slice, ...] = ()

    @property
    def servers(self) -> frozenset[str]:
        """Return the servers of which tools are chosen."""
        return frozenset(one.chosen.share.part.server for one in self.slices if one.chosen.tools)

    @property
    def offers(self) -> tuple[Offers, ...]:
        """Return what there is beside tools, by server, shown or not."""
        parts = (one.chosen.share.part for one in self.slices)
        return tuple(part.offers for part in parts if part.offers.server)

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

    `earlier` is any older view of it: what would come out the same is taken from there.
    """
    known = earlier if earlier is not None and earlier.domain == domain else None
    before = {one.chosen.share.part.server: one for one in known.slices} if known else {}
    chosen = [_chosen(domain, share, before.get(share.part.server)) for share in catalog.shares]
    names, complaints = settle(chosen)
    table = known.table if known else {}
    slices = tuple(
        _slice(domain, one, names, before.get(one.share.part.server), table) for one in chosen
    )
    entries = tuple(entry for one in slices for entry in one.entries)
    tokens = sum(one.tokens for one in slices)
    beside = _offered(domain, catalog, slices, known)
    return View(
        offered=beside,
        domain=domain,
        revision=digest([entry.digest for entry in entries]),
        catalog=catalog.revision,
        entries=entries,
        table={entry.name: entry for entry in entries},
        tokens=tokens,
        slices=slices,
        warnings=(
            *idle_rules(domain, chosen),
            *(warning for one in chosen for warning in one.misfits),
            *(warning for one in chosen for warning in one.warnings),
            *complaints,
            *(f"{entry.name}: {note}" for entry in entries for note in entry.notes),
            *_over_budget(domain, entries, tokens),
            *beside.warnings,
        ),
    )


def _chosen(domain: Domain, share: Share, known: Slice | None) -> Chosen:
    if known is not None and known.chosen.share is share:
        return known.chosen
    return choose(domain, share)


def _slice(
    domain: Domain,
    chosen: Chosen,
    names: Mapping[Key, str] | None,
    known: Slice | None,
    table: Mapping[str, Entry],
) -> Slice:
    """Return the entries of one server's tools; `names` are settled ones, None as wished for."""
    own = chosen.wished
    if names is not None:
        own = {tool.key: names[tool.key] for tool in chosen.tools if tool.key in names}
    if known is not None and known.chosen is chosen and known.names == own:
        return known
    entries = tuple(
        _entry(own[tool.key], tool, domain, table) for tool in chosen.tools if tool.key in own
    )
    tokens = sum(entry.tokens for entry in entries)
    return Slice(chosen=chosen, names=own, entries=entries, tokens=tokens)


def _offered(
    domain: Domain, catalog: Catalog, slices: Sequence[Slice], known: View | None
) -> Offered:
    """Return what a domain shows beside tools: the same as before where nothing of it changed."""
    servers = {one.chosen.share.part.server for one in slices if one.chosen.tools}
    if (
        known is not None
        and known.servers == servers
        and len(known.offers) == len(catalog.offers)
        and all(map(is_, known.offers, catalog.offers))
    ):
        return known.offered
    return offered(domain, catalog, servers)


def _entry(name: str, tool: Tool, domain: Domain, known: Mapping[str, Entry]) -> Entry:
    if name in known and known[name].tool is tool:
        return known[name]
    dress = dress_of(domain, tool)
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
        digest=digest_of(written),
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
