"""How much work a schema can make of one place in a value, counted before any value is seen.

Never counts by running: paths through a graph are added up once per node.
"""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.schema.graph import Edge, Graph, Node
from thoughtgate.schema.pointers import pointer
from thoughtgate.schema.structure import Reach

MAX_PATHS: Final = 4_096
MAX_CHAIN: Final = 64
MAX_EVALUATIONS: Final = 65_536

# the Rust engine evaluates what stands beside unevaluated* again, so nesting them multiplies
# (measured: 2.6 times per level, 11 s at 20 levels)
_AGAIN = 3

# above this not even the first error is asked of the Rust engine
_MAX_EXPLICABLE = 1_024

# what one string may cost under a pattern that needs backtracking
_BACKTRACKING = 512


class Growth(NamedTuple):
    """`paths` through compositions at one place; `evaluations` that one place can cost in all.

    `explicable` says that the Rust engine may collect errors. There it remembers nothing and keeps
    the errors of every branch: recursion on two paths takes all memory at forty levels.
    """

    paths: int
    evaluations: int
    explicable: bool


def measure(graph: Graph, backtracking: Collection[int] = ()) -> Growth:
    """Return the growth of a schema; the patterns of the `backtracking` nodes are dear.

    Raises:
        SchemaRejected: A reference loop that consumes nothing, a chain of compositions so long
            that a validator's stack may not hold it, or too many paths.
    """
    paths = _paths(graph)
    evaluations, forked = _evaluations(graph, backtracking)
    if evaluations > MAX_EVALUATIONS:
        raise SchemaRejected(
            rule="composition_paths",
            message="one value can be reached on too many paths through nested compositions; "
            "simplify anyOf, oneOf and allOf",
        )
    return Growth(paths, evaluations, not forked and evaluations <= _MAX_EXPLICABLE)


def _paths(graph: Graph) -> int:
    """Count the paths through compositions from every node; return the highest count."""
    nodes = graph.nodes
    same = [[edge for edge in node.edges if edge.reach is Reach.SAME] for node in nodes]
    order, back = _postorder(same)
    if back:
        source, _ = min(back)
        raise SchemaRejected(
            rule="reference_loop",
            pointer=pointer(nodes[source].steps),
            message="a reference leads back to itself without looking deeper into the value",
        )
    count, chain = [1] * len(nodes), [1] * len(nodes)
    for number in order:
        targets = [edge.target for edge in same[number]]
        if not targets:
            continue
        count[number] = sum(count[target] for target in targets) * _factor(nodes[number])
        chain[number] = 1 + max(chain[target] for target in targets)
        _bound(nodes[number], count[number], chain[number])
    return max(count)


def _bound(node: Node, count: int, chain: int) -> None:
    if count > MAX_PATHS:
        raise SchemaRejected(
            rule="composition_paths",
            pointer=pointer(node.steps),
            message=f"more than {MAX_PATHS} paths lead through nested compositions here; "
            "simplify anyOf, oneOf and allOf",
        )
    if chain > MAX_CHAIN:
        raise SchemaRejected(
            rule="composition_depth",
            pointer=pointer(node.steps),
            message=f"more than {MAX_CHAIN} references and compositions follow one another here",
        )


def _factor(node: Node) -> int:
    return _AGAIN if {"unevaluatedProperties", "unevaluatedItems"} & node.schema.keys() else 1


def _evaluations(graph: Graph, backtracking: Collection[int]) -> tuple[int, bool]:
    """Bound how often one place in a value is looked at, over all schemas that apply there.

    Also tells whether a schema that contains itself looks at any place more than once.

    Edges that close a cycle count once and their targets are added: the Rust engine remembers
    the verdict of a recursive reference for each value, which a test holds it to.
    """
    nodes = graph.nodes
    order, back = _postorder([node.edges for node in nodes])
    cost = [1] * len(nodes)
    for number in order:
        node = nodes[number]
        live = [edge for edge in node.edges if edge.reach is not Reach.NOTHING]
        weighed = [
            (edge, 1 if (number, edge.target) in back else cost[edge.target]) for edge in live
        ]
        same = sum(weight for edge, weight in weighed if edge.reach is Reach.SAME)
        total = same + _members([pair for pair in weighed if pair[0].reach is Reach.MEMBER])
        cost[number] = max(1, total) * (_factor(node) if live else 1)
        if number in backtracking:
            cost[number] += _BACKTRACKING
    total = cost[0] + sum(cost[target] for target in {target for _, target in back})
    return total, bool(back) and max(cost) > 1


def _members(weighed: list[tuple[Edge, int]]) -> int:
    """Return the highest cost that one member can meet: declared names never overlap."""
    alone, among = {"properties": 0, "prefixItems": 0}, 0
    for edge, weight in weighed:
        if edge.keyword in alone or (edge.keyword == "items" and edge.name is not None):
            kind = "properties" if edge.keyword == "properties" else "prefixItems"
            alone[kind] = max(alone[kind], weight)
        else:
            among += weight
    return max(alone.values()) + among


def _postorder(edges: Sequence[Sequence[Edge]]) -> tuple[list[int], set[tuple[int, int]]]:
    """Return all nodes, targets before sources, and the edges that close a cycle."""
    order: list[int] = []
    back: set[tuple[int, int]] = set()
    entered, left = [False] * len(edges), [False] * len(edges)
    for root in range(len(edges)):
        stack = [] if entered[root] else [(root, iter(edges[root]))]
        entered[root] = True
        while stack:
            source, rest = stack[-1]
            edge = next(rest, None)
            if edge is None:
                left[source] = True
                order.append(source)
                stack.pop()
            elif not entered[edge.target]:
                entered[edge.target] = True
                stack.append((edge.target, iter(edges[edge.target])))
            elif not left[edge.target]:
                back.add((source, edge.target))
    return order, back
