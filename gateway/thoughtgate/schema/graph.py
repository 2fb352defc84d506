"""A schema as a graph: its subschemas, and which of them each one applies.

Never leaves the schema: a reference that does not stay inside is refused here.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonValue
from thoughtgate.schema.dialects import Dialect, named
from thoughtgate.schema.pointers import Step, find, from_fragment, pointer
from thoughtgate.schema.structure import REFERENCES, Reach, parts

MAX_SUBSCHEMAS: Final = 2_000


class Edge(NamedTuple):
    """`source` applies `target` through `keyword` (and `name`, a member or an index)."""

    keyword: str
    name: Step | None
    reach: Reach
    target: int


@dataclass(slots=True, kw_only=True)
class Node:
    """One subschema: where it stands and what it applies."""

    steps: tuple[Step, ...]
    schema: JsonValue
    edges: list[Edge] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Graph:
    """All subschemas; node 0 is the root.

    `strays` are nodes that only a reference reaches, where the meta-schema does not look;
    `ignored` are keywords by node that no engine may see: a nested `$schema`, annotations.
    """

    nodes: list[Node] = field(default_factory=list)
    strays: list[int] = field(default_factory=list)
    ignored: dict[int, frozenset[str]] = field(default_factory=dict)


def build(root: JsonValue, dialect: Dialect) -> Graph:
    """Return the graph of `root`.

    Raises:
        SchemaRejected: Too many subschemas, a reference that leads outside or nowhere, a base URI
            that changes, or two anchors of one name.
    """
    builder = _Builder(root, dialect)
    builder.walk(root, ())
    while builder.pending:
        builder.resolve(*builder.pending.pop())
    return builder.graph


class _Builder:
    """What is known while the walk goes on."""

    def __init__(self, root: JsonValue, dialect: Dialect) -> None:
        self.graph = Graph()
        self.pending: list[tuple[int, str, str]] = []
        self._root = root
        self._dialect = dialect
        self._index: dict[int, int] = {}
        self._anchors: dict[str, int] = {}

    def walk(self, schema: JsonValue, steps: tuple[Step, ...]) -> int:
        """Add `schema` and everything inside it; return its node."""
        first = self._add(schema, steps)
        todo = [first]
        while todo:
            source = todo.pop()
            node = self.graph.nodes[source]
            for inner, reach, part in parts(node.schema):
                known = self._index.get(id(part)) if isinstance(part, dict) else None
                target = self._add(part, node.steps + inner) if known is None else known
                name = inner[1] if len(inner) > 1 else None
                node.edges.append(Edge(str(inner[0]), name, reach, target))
                if known is None:
                    todo.append(target)
        return first

    def resolve(self, source: int, keyword: str, reference: str) -> None:
        """Draw the edge of one reference, and walk its target if nobody has."""
        node = self.graph.nodes[source]
        target = self._target(reference)
        if target is None:
            raise SchemaRejected(
                rule="dangling_reference",
                pointer=pointer((*node.steps, keyword)),
                message=f"{keyword} {reference[:120]!r} leads to no schema; define its target",
            )
        node.edges.append(Edge(keyword, None, Reach.SAME, target))

    def _target(self, reference: str) -> int | None:
        fragment = reference.removeprefix("#")
        steps = from_fragment(fragment)
        if steps is None:
            return self._anchors.get(fragment)
        try:
            found = find(self._root, steps)
        except LookupError:
            return None
        if not isinstance(found, dict | bool):
            return None
        known = self._index.get(id(found)) if isinstance(found, dict) else None
        if known is not None:
            return known
        target = self.walk(found, steps)
        self.graph.strays.append(target)
        return target

    def _add(self, schema: JsonValue, steps: tuple[Step, ...]) -> int:
        number = len(self.graph.nodes)
        if number >= MAX_SUBSCHEMAS:
            raise SchemaRejected(
                rule="too_many_subschemas",
                message=f"the schema has more than {MAX_SUBSCHEMAS} subschemas; split the tool",
            )
        self.graph.nodes.append(Node(steps=steps, schema=schema))
        if isinstance(schema, dict):
            self._index[id(schema)] = number
            self._note_names(number, schema, steps)
            self._note_ignored(number, schema, steps)
            self._note_references(number, schema, steps)
        return number

    def _note_names(
        self, number: int, schema: dict[str, JsonValue], steps: tuple[Step, ...]
    ) -> None:
        identity = schema.get(self._dialect.id_keyword)
        if isinstance(identity, str) and identity.startswith("#"):
            self._anchor(identity[1:], number, steps)
        elif isinstance(identity, str) and steps:
            raise SchemaRejected(
                rule="changed_base",
                pointer=pointer((*steps, self._dialect.id_keyword)),
                message=f"a nested {self._dialect.id_keyword} changes what references mean; "
                "remove it",
            )
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(anchor := schema.get(keyword), str):
                self._anchor(anchor, number, steps)

    def _note_ignored(
        self, number: int, schema: dict[str, JsonValue], steps: tuple[Step, ...]
    ) -> None:
        ignored = self._dialect.annotations & schema.keys()
        if steps and "$schema" in schema:
            if named(schema["$schema"]) is None:
                raise SchemaRejected(
                    rule="unknown_dialect",
                    pointer=pointer((*steps, "$schema")),
                    message="a subschema names a dialect that we do not speak; remove $schema",
                )
            ignored |= {"$schema"}
        if ignored:
            self.graph.ignored[number] = ignored

    def _anchor(self, name: str, number: int, steps: tuple[Step, ...]) -> None:
        if self._anchors.setdefault(name, number) != number:
            raise SchemaRejected(
                rule="duplicate_anchor",
                pointer=pointer(steps),
                message=f"two subschemas are called {name[:80]!r}; rename one",
            )

    def _note_references(
        self, number: int, schema: dict[str, JsonValue], steps: tuple[Step, ...]
    ) -> None:
        for keyword in REFERENCES:
            if keyword not in schema:
                continue
            reference = schema[keyword]
            if not isinstance(reference, str) or not reference.startswith("#"):
                raise SchemaRejected(
                    rule="remote_reference",
                    pointer=pointer((*steps, keyword)),
                    message=f"{keyword} {str(reference)[:120]!r} leads out of the schema; "
                    "references are never fetched, so bring its target under $defs",
                )
            self.pending.append((number, keyword, reference))
