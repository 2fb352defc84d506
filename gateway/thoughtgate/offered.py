"""What a domain shows beside tools, and the way back: prompts by name, resources by URI.

Never reads a resource and never changes an object of a server: what is shown is a new one. A URI
that could mean two servers is shown under a scheme that names the server, and only then.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from thoughtgate.catalog import Catalog, advertised_name
from thoughtgate.core.calls import ItemName
from thoughtgate.core.domains import Domain
from thoughtgate.core.json import JsonObject, JsonValue, digest
from thoughtgate.core.tools import Effect, Item, Kind, Offer
from thoughtgate.offers import Offers
from thoughtgate.uris import becomes, own_uri, spellings, split_uri
from thoughtgate.wire.strict import dumps

TAG: Final = "tag:"
KINDS: Final = ("tool:", "prompt:", "resource:")
"""What a rule of a domain may begin with, to fit one kind of thing only."""

MOST_LOOKED_UP: Final = 1_000
"""URIs of one result that are looked up; further ones name their server, needed or not."""

_TASK: Final = "taskId"
_CORE: Final = re.compile(
    r"(initialize|ping|(tools|prompts|resources|completion|logging|server|sampling|elicitation"
    r"|roots|subscriptions|notifications)/.*)"
)
_METHOD: Final = re.compile(r"[!-~]{1,256}")
"""What a method of an extension may be called: its name travels in a header, too."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value = msgspec.json.Decoder().decode
_URI_MARKS = (b'"uri"', b"\\u00")
_HOLDERS = ("contents", "content", "messages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One prompt, resource or template as a domain shows it; `name` is what clients ask for."""

    name: str
    offer: Offer
    shown: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What one domain shows beside tools, each in the order of its list.

    `servers` may be asked for resources; `owners` are those that list a URI; `table` holds the
    prompts by name, `digests` the listed resources by server and URI; `extended` are the servers
    that declared extensions; `revisions` change when, and only when, a client would see another
    list of `prompts` or of `resources` (templates among them).
    """

    prompts: tuple[Shown, ...] = ()
    resources: tuple[Shown, ...] = ()
    templates: tuple[Shown, ...] = ()
    servers: Mapping[str, Offers] = field(default_factory=dict)
    owners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    table: Mapping[str, Shown] = field(default_factory=dict)
    digests: Mapping[tuple[str, str], str] = field(default_factory=dict)
    extensions: JsonObject = field(default_factory=dict)
    extended: tuple[str, ...] = ()
    revisions: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    domain: Domain | None = None

    @property
    def plain_uris(self) -> bool:
        """Tell whether no URI ever needs to be translated: one server at most has resources."""
        return len(self.servers) <= 1

    @property
    def plain(self) -> bool:
        """Tell whether no result ever needs to be translated: the usual case."""
        return self.plain_uris and len(self.extended) <= 1

    def find(self, wanted: ItemName, arguments: JsonObject) -> Item | None:
        """Return what a client means, None when this domain shows nothing of the kind."""
        match wanted.kind:
            case Kind.PROMPT | Kind.PROMPT_COMPLETION:
                return _item(wanted.kind, self.table.get(wanted.name))
            case Kind.METHOD:
                return self._method(wanted.name, arguments)
            case Kind.RESOURCE_COMPLETION:
                template = _named(self.templates, wanted.name)
                if template is not None:
                    return _item(wanted.kind, template)
        return self._resource(wanted)

    def route(self, uri: str) -> tuple[str, str] | None:
        """Return (server, the server's own URI), None when it is not clear whose it is."""
        server, true = split_uri(uri)
        if server and not self._alone_with(server, uri):
            return (server, true) if self._may_serve(server, true) else None
        # templates are many, and few URIs need them: they are looked at only then
        claims = self.owners.get(uri) or self._matching(uri) or tuple(self.servers)
        sole = len(claims) == 1 and self._may_serve(claims[0], uri)
        return (claims[0], uri) if sole else None

    def shown_uri(self, server: str, uri: str) -> str:
        """Return a server's URI as clients of this domain know it."""
        if self.plain_uris or self.route(uri) == (server, uri):
            return uri
        return own_uri(server, uri)

    def true_arguments(self, item: Item, arguments: JsonObject) -> JsonObject:
        """Return what a server gets for a client's arguments: its own id of a task."""
        if item.kind is not Kind.METHOD or _TASK not in arguments:
            return arguments
        server, task = _split(arguments[_TASK])
        return {**arguments, _TASK: task} if server == item.server else arguments

    def shown_task(self, server: str, task: str) -> str:
        """Return a server's id of a task as clients of this domain know it."""
        return task if len(self.extended) <= 1 else own_uri(server, task)

    def translated(self, server: str, raw: bytes) -> bytes:
        """Return a result with URIs and ids of tasks as clients know them."""
        if self.plain:
            return raw
        if server in self.extended and b'"taskId"' in raw:
            raw = self._with_shown_task(server, raw)
        if self.plain_uris or server not in self.servers:
            return raw
        return self._with_shown_uris(server, raw)

    def _with_shown_task(self, server: str, raw: bytes) -> bytes:
        members = _members(raw)
        task = _value(members[_TASK]) if _TASK in members else None
        if not isinstance(task, str):
            return raw
        members[_TASK] = msgspec.Raw(dumps(self.shown_task(server, task)))
        return dumps(members)

    def _with_shown_uris(self, server: str, raw: bytes) -> bytes:
        if not any(mark in raw for mark in _URI_MARKS):
            return raw
        known: dict[str, str] = {}

        def named(uri: str) -> str:
            if uri not in known and len(known) >= MOST_LOOKED_UP:
                return own_uri(server, uri)
            if uri not in known:
                known[uri] = self.shown_uri(server, uri)
            return known[uri]

        members = _members(raw)
        for holder in _HOLDERS:
            if holder in members:
                value = _value(members[holder])
                members[holder] = msgspec.Raw(dumps(_renamed(value, named)))
        return dumps(members)

    def _resource(self, wanted: ItemName) -> Item | None:
        found = self.route(wanted.name)
        if found is None:
            return None
        server, uri = found
        offers = self.servers[server]
        return Item(
            kind=wanted.kind,
            server=server,
            name=uri,
            digest=self.digests.get((server, uri), ""),
            tags=offers.tags,
            call_timeout=offers.call_timeout,
        )

    def _method(self, name: str, arguments: JsonObject) -> Item | None:
        """Return a method of an extension: of the only server that has any, or of a task's own."""
        if _CORE.fullmatch(name) or not _METHOD.fullmatch(name):
            return None
        server = _split(arguments.get(_TASK))[0]
        if server not in self.extended:
            server = self.extended[0] if len(self.extended) == 1 else ""
        return (
            Item(kind=Kind.METHOD, server=server, name=name, effect=Effect.WRITE)
            if server
            else None
        )

    def _matching(self, uri: str) -> tuple[str, ...]:
        return tuple(
            name
            for name, offers in self.servers.items()
            if any(becomes(one.name, uri) for one in offers.templates)
        )

    def _alone_with(self, server: str, uri: str) -> bool:
        """Tell whether a URI that names a server is the only server's own: a gateway behind us."""
        return self.plain_uris and (server not in self.servers or uri in self.owners)

    def _may_serve(self, server: str, uri: str) -> bool:
        offers = self.servers.get(server)
        if offers is None or self.domain is None:
            return False
        return shows_uri(self.domain, server, uri, offers.tags)


def offered(domain: Domain, catalog: Catalog, servers: Iterable[str]) -> Offered:
    """Return what a domain shows beside tools; `servers` are those whose tools it shows."""
    prompts, warnings = _prompts(domain, catalog)
    resources = [one for some in catalog.offers for one in _visible(domain, some.resources)]
    templates = [one for some in catalog.offers for one in _visible(domain, some.templates)]
    listing = {one.server for one in (*resources, *templates)}
    made = Offered(
        prompts=prompts,
        table={one.name: one for one in prompts},
        servers={
            some.server: some
            for some in catalog.offers
            if some.server in listing or _opens(domain, some)
        },
        owners=_owners(resources),
        digests={one.key: one.digest for one in resources},
        warnings=warnings,
        domain=domain,
    )
    known = {*servers, *made.servers, *(one.offer.server for one in prompts)}
    extended = [one for one in catalog.offers if one.extensions and one.server in known]
    listed = tuple(_resource(made, one) for one in resources)
    patterns = tuple(_pattern(one, _owners(templates)) for one in templates)
    return replace(
        made,
        resources=listed,
        templates=patterns,
        extensions=_merged(extended),
        extended=tuple(one.server for one in extended),
        revisions={
            "prompts": digest([one.shown for one in prompts]),
            "resources": digest([[one.shown for one in some] for some in (listed, patterns)]),
        },
    )


def shows(domain: Domain, kind: str, path: str, tags: frozenset[str]) -> bool:
    """Tell whether a domain's rules let a thing through; `path` is `server/name`."""
    included = not domain.include or any(fits(rule, kind, path, tags) for rule in domain.include)
    return included and not any(fits(rule, kind, path, tags) for rule in domain.exclude)


def fits(rule: str, kind: str, path: str, tags: frozenset[str]) -> bool:
    """Tell whether one rule fits: `tag:NAME`, a glob over `server/name`, or one for a kind."""
    if rule.startswith(TAG):
        return rule.removeprefix(TAG) in tags
    for one in KINDS:
        if rule.startswith(one):
            return one == kind and fnmatchcase(path, rule.removeprefix(one))
    return fnmatchcase(path, rule)


def shows_uri(domain: Domain, server: str, uri: str, tags: frozenset[str]) -> bool:
    """Tell whether a domain's rules let a URI through; no other spelling gets past them."""
    if not any(map(_minds_uris, (*domain.include, *domain.exclude))):
        return shows(domain, "resource:", f"{server}/{uri}", tags)
    same = spellings(uri)
    return (
        same is not None
        and shows(domain, "resource:", f"{server}/{uri}", tags)
        and not any(
            fits(rule, "resource:", f"{server}/{one}", tags)
            for rule in domain.exclude
            for one in same
        )
    )


def _split(value: JsonValue) -> tuple[str, str]:
    return split_uri(value) if isinstance(value, str) else ("", "")


def _minds_uris(rule: str) -> bool:
    """Tell whether a rule may look at more of a resource than its server and tags."""
    if rule.startswith((TAG, "tool:", "prompt:")):
        return False
    _, slash, rest = rule.removeprefix("resource:").partition("/")
    return not slash or rest != "*"


def _visible(domain: Domain, offers: Iterable[Offer]) -> list[Offer]:
    return [one for one in offers if shows_uri(domain, one.server, one.name, one.tags)]


def _renamed(value: JsonValue, named: Callable[[str], str]) -> JsonValue:
    """Return content blocks, messages or resource contents with the URIs that `named` gives."""
    if isinstance(value, list):
        return [_renamed(one, named) for one in value]
    if not isinstance(value, dict):
        return value
    renamed: dict[str, Any] = dict(value)
    if isinstance(value.get("uri"), str):
        renamed["uri"] = named(value["uri"])
    for inner in ("resource", "content"):
        if isinstance(value.get(inner), dict | list):
            renamed[inner] = _renamed(value[inner], named)
    return renamed


def _owners(offers: Iterable[Offer]) -> Mapping[str, tuple[str, ...]]:
    owners: dict[str, tuple[str, ...]] = {}
    for one in offers:
        owners[one.name] = (*owners.get(one.name, ()), one.server)
    return owners


def _opens(domain: Domain, offers: Offers) -> bool:
    """Tell whether resources that a server does not list may be read in a domain."""
    return offers.serves_resources and shows(domain, "resource:", f"{offers.server}/", offers.tags)


def _prompts(domain: Domain, catalog: Catalog) -> tuple[tuple[Shown, ...], tuple[str, ...]]:
    chosen = [
        one
        for some in catalog.offers
        for one in some.prompts
        if shows(domain, "prompt:", f"{one.server}/{one.name}", one.tags)
    ]
    names = [advertised_name(*one.key) if domain.prefixed else one.name for one in chosen]
    claims = Counter(names)
    shown = tuple(
        Shown(name=name, offer=one, shown={**one.definition, "name": name})
        for name, one in zip(names, chosen, strict=True)
        if claims[name] == 1
    )
    warnings = tuple(
        f"prompt {'/'.join(one.key)} is left out: {name} is ambiguous"
        for name, one in zip(names, chosen, strict=True)
        if claims[name] > 1
    )
    return shown, warnings


def _resource(made: Offered, offer: Offer) -> Shown:
    name = made.shown_uri(offer.server, offer.name)
    return Shown(name=name, offer=offer, shown={**offer.definition, "uri": name})


def _pattern(offer: Offer, owners: Mapping[str, tuple[str, ...]]) -> Shown:
    alone = len(owners[offer.name]) == 1
    name = offer.name if alone else own_uri(offer.server, offer.name)
    return Shown(name=name, offer=offer, shown={**offer.definition, "uriTemplate": name})


def _merged(extended: Iterable[Offers]) -> JsonObject:
    merged: dict[str, JsonValue] = {}
    for offers in extended:
        for name, settings in offers.extensions.items():
            merged.setdefault(name, settings)
    return merged


def _named(shown: Sequence[Shown], name: str) -> Shown | None:
    return next((one for one in shown if one.name == name), None)


def _item(kind: Kind, found: Shown | None) -> Item | None:
    if found is None:
        return None
    offer = found.offer
    return Item(
        kind=kind,
        server=offer.server,
        name=offer.name,
        digest=offer.digest,
        tags=offer.tags,
        call_timeout=offer.call_timeout,
    )
