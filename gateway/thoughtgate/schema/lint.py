"""What a schema must be like before any engine sees it.

Never validates a value and never fetches a reference; the work is bounded by the limits below.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonValue, canonical
from thoughtgate.schema.dialects import Dialect, dialect_of
from thoughtgate.schema.graph import Graph, build
from thoughtgate.schema.growth import measure
from thoughtgate.schema.patterns import BOUNDED, LINEAR, Options, is_linear
from thoughtgate.schema.pointers import Step, pointer

MAX_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What the lint learned.

    `prepared` is what engines compile: the schema without any `$schema` and the root's
    identifier, so that no engine can switch dialects or base by itself, and without annotations
    that only one engine asserts. `paths` and `evaluations` say how much work one place of a value
    may cost; `explicable` that the Rust engine may be asked for errors too. `secrets` are the
    `id()`s of the subschemas inside `prepared` whose values must never be shown. `strays` are
    subschemas that only a reference reaches.
    """

    dialect: Dialect
    prepared: JsonValue
    patterns: Options
    paths: int
    evaluations: int
    explicable: bool
    secrets: frozenset[int]
    strays: tuple[JsonValue, ...]


def inspect(schema: JsonValue) -> Inspection:
    """Return what there is to know about a schema that may be used.

    Raises:
        SchemaRejected: It may not be used; `rule` and `pointer` say why and where.
    """
    if not isinstance(schema, dict | bool):
        raise SchemaRejected(
            rule="not_a_schema", message="a schema is a JSON object, true or false"
        )
    _fits(schema)
    dialect = dialect_of(schema)
    prepared = _without_names(schema, dialect)
    graph = build(prepared, dialect)
    if graph.ignored:
        ignored = {id(graph.nodes[number].schema): keys for number, keys in graph.ignored.items()}
        prepared = _without(prepared, ignored)
        graph = build(prepared, dialect)
    backtracking = _backtracking(graph)
    growth = measure(graph, backtracking)
    return Inspection(
        dialect=dialect,
        prepared=prepared,
        patterns=BOUNDED if backtracking else LINEAR,
        paths=growth.paths,
        evaluations=growth.evaluations,
        explicable=growth.explicable,
        secrets=frozenset(id(node.schema) for node in graph.nodes if is_secret(node.schema)),
        strays=tuple(graph.nodes[number].schema for number in graph.strays),
    )


def is_secret(schema: JsonValue) -> bool:
    """Tell whether values of `schema` must never be shown."""
    return isinstance(schema, dict) and (
        schema.get("writeOnly") is True
        or schema.get("format") == "password"
        or bool(schema.get("x-sensitive"))
        or bool(schema.get("x-secret"))
    )


def _fits(schema: JsonValue) -> None:
    """Check depth, then bytes: the encoder recurses, so depth goes first."""
    todo: list[tuple[JsonValue, int]] = [(schema, 1)]
    while todo:
        value, depth = todo.pop()
        if isinstance(value, dict | list):
            if depth > MAX_DEPTH:
                raise SchemaRejected(
                    rule="too_deep", message=f"the schema nests deeper than {MAX_DEPTH} levels"
                )
            inner = value.values() if isinstance(value, dict) else value
            todo.extend((item, depth + 1) for item in inner)
    try:
        size = len(canonical(schema))
    except (TypeError, ValueError):
        raise SchemaRejected(
            rule="not_json", message="the schema holds something that JSON cannot say"
        ) from None
    if size > MAX_BYTES:
        raise SchemaRejected(
            rule="too_large", message=f"the schema is larger than {MAX_BYTES} bytes"
        )


def _without_names(schema: JsonValue, dialect: Dialect) -> JsonValue:
    """Drop the root's `$schema` and identifier; a plain-name anchor stays."""
    if isinstance(schema, bool):
        return schema
    identity = schema.get(dialect.id_keyword)
    drop = {"$schema"}
    if isinstance(identity, str) and not identity.startswith("#"):
        drop.add(dialect.id_keyword)
    if drop.isdisjoint(schema):
        return schema
    return {key: value for key, value in schema.items() if key not in drop}


def _without(value: JsonValue, ignored: Mapping[int, frozenset[str]]) -> JsonValue:
    """Return a copy without the ignored keywords, by the subschema's `id()`; depth is bounded."""
    if isinstance(value, list):
        return [_without(item, ignored) for item in value]
    if not isinstance(value, dict):
        return value
    drop = ignored.get(id(value), frozenset())
    return {key: _without(item, ignored) for key, item in value.items() if key not in drop}


def _backtracking(graph: Graph) -> frozenset[int]:
    """Compile every pattern once; return the nodes that have one the linear engine cannot run.

    Raises:
        SchemaRejected: No engine can run one of them safely.
    """
    found: set[int] = set()
    for number, node in enumerate(graph.nodes):
        for steps, pattern in _patterns(node.schema):
            try:
                linear = is_linear(pattern)
            except SchemaRejected as error:
                raise SchemaRejected(
                    rule=error.rule,
                    message=error.message,
                    pointer=pointer((*node.steps, *steps)),
                ) from None
            if not linear:
                found.add(number)
    return frozenset(found)


def _patterns(schema: JsonValue) -> list[tuple[tuple[Step, ...], str]]:
    found: list[tuple[tuple[Step, ...], str]] = []
    if not isinstance(schema, dict):
        return found
    if isinstance(pattern := schema.get("pattern"), str):
        found.append((("pattern",), pattern))
    if isinstance(named := schema.get("patternProperties"), dict):
        found.extend((("patternProperties", name), name) for name in named)
    return found
