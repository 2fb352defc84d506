"""What hostile schemas and values can make us do, counted in work and size, never in time."""

from typing import Any

import pytest

from thoughtgate.core.errors import Malformed
from thoughtgate.core.json import JsonValue
from thoughtgate.schema import explain
from thoughtgate.schema.checks import Check
from thoughtgate.schema.dialects import DRAFT_2020_12
from thoughtgate.schema.growth import MAX_EVALUATIONS
from thoughtgate.schema.lint import inspect
from thoughtgate.schema.patterns import is_linear, matcher
from thoughtgate.schema.reference import MAX_ERRORS, MAX_WORK, Run, search
from thoughtgate.schema.weight import MAX_DEPTH, guard, weigh


def nested(levels: int, leaf: JsonValue, name: str = "c") -> JsonValue:
    value = leaf
    for _ in range(levels):
        value = {name: value}
    return value


def doubling(levels: int) -> dict[str, Any]:
    target = [{"$ref": f"#/$defs/d{i + 1}"} for i in range(levels)]
    steps: dict[str, Any] = {f"d{i}": {"anyOf": [target[i], target[i]]} for i in range(levels)}
    return {"$defs": {**steps, f"d{levels}": {"type": "string"}}, "$ref": "#/$defs/d0"}


def recursive(keyword: str) -> dict[str, Any]:
    """Return a schema that looks twice at each level of a value, by one recursive reference."""
    branch = {"type": "object", "properties": {"c": {"$ref": "#"}}, "required": ["c"]}
    return {keyword: [branch, {**branch, "minProperties": 1}]}


def work_of(schema: JsonValue, value: JsonValue) -> int:
    seen = inspect(schema)
    run = Run(secrets=seen.secrets)
    search(seen.prepared, seen.dialect, value, run)
    return MAX_WORK - run.left


def test_a_flood_of_errors_ends_at_the_first_few() -> None:
    schema = {"items": {"type": "integer"}}
    flood = ["x"] * 15_000

    report = Check(schema).report(flood)

    assert work_of(schema, flood) <= 2 * MAX_ERRORS + 2
    assert len(report.problems) == explain.MAX_PROBLEMS
    assert report.truncated


def test_a_flood_inside_a_union_ends_too() -> None:
    branches = [{"items": {"type": kind}, "minItems": i} for i, kind in enumerate(["null"] * 50)]

    assert work_of({"anyOf": branches}, ["x"] * 15_000) <= 50 * (MAX_ERRORS + 3)


def test_a_search_that_finds_nothing_in_its_budget_leaves_the_answer_to_the_fast_engine() -> None:
    value = [1] * 19_000 + ["x"]
    schema = {"items": {"type": "integer", "minimum": 0, "maximum": 5}}

    assert work_of(schema, value) == MAX_WORK + 1
    (problem,) = Check(schema).problems(value)
    assert (problem.pointer, problem.keyword) == ("/19000", "type")


def test_a_value_too_big_for_the_reference_engine_gets_the_fast_engines_problem() -> None:
    value = {"a": [1] * 30_000, "b": "x", "c": 1}
    schema = {
        "properties": {"a": {"items": {"type": "integer"}}},
        "additionalProperties": False,
        "required": ["d"],
    }

    report = Check(schema).report(value)

    assert report.problems[0].pointer in {"/b", "/d"}
    assert report.truncated


def test_paths_of_references_cost_the_size_of_the_schema_and_not_their_number() -> None:
    """2^12 paths, at one level twelve references: the reporter remembers each."""
    assert work_of(doubling(12), 1) < 100


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_recursion_on_two_branches_costs_no_more_than_the_value_is_deep(keyword: str) -> None:
    """Neither engine may take 2^60 steps; the fast one would hold the whole process."""
    check, value = Check(recursive(keyword)), nested(60, 1)

    assert not check.is_valid(value)
    assert work_of(recursive(keyword), value) < 60 * 20
    assert check.problems(value)


@pytest.mark.parametrize("dialect", ["draft/2019-09", "draft/2020-12"])
def test_the_fast_engine_remembers_recursive_references_of_every_kind(dialect: str) -> None:
    """The count of evaluations takes this for granted: without it, these would never end."""
    dynamic = {"$recursiveRef": "#"} if "2019" in dialect else {"$dynamicRef": "#node"}
    anchors = {"$recursiveAnchor": True} if "2019" in dialect else {"$dynamicAnchor": "node"}
    for target in ({"$ref": "#"}, dynamic, {"allOf": [{"$ref": "#"}]}):
        branch = {"type": "object", "properties": {"c": target}}
        schema = {
            "$schema": f"https://json-schema.org/{dialect}/schema",
            **anchors,
            "anyOf": [branch, {**branch, "additionalProperties": target}],
            "unevaluatedProperties": target,
        }
        assert not Check(schema).is_valid(nested(60, 1))


def test_the_explosion_of_unevaluated_members_is_counted_before_it_happens() -> None:
    """The fast engine took 11 s for 20 levels; seven stay within 3^7 paths."""
    schema: dict[str, Any] = {"properties": {"a": True}}
    for _ in range(7):
        schema = {"allOf": [schema], "unevaluatedProperties": False}

    assert inspect(schema).paths == 3**7
    assert Check(schema).is_valid({"a": 1})


def test_many_places_under_many_paths_are_refused_and_not_tried() -> None:
    """4,096 paths at each of 100,000 places would hold the process for half a minute."""
    schema = {"items": doubling(12), "$defs": doubling(12)["$defs"]}
    check, value = Check(schema), [1] * 100_000

    assert not check.is_valid(value)
    (problem,) = check.problems(value)
    assert problem.keyword == "complexity"
    assert check.is_valid(["x"] * 100)


def test_disjoint_members_do_not_add_up() -> None:
    schema = {"properties": {f"p{i}": {"type": ["string", "null"]} for i in range(500)}}

    assert inspect(schema).evaluations < 5 < MAX_EVALUATIONS


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*b", "(.*a){20}", r"^(\d+)*$"])
def test_a_pattern_that_kills_a_backtracking_engine_runs_on_an_automaton(pattern: str) -> None:
    text = "a" * 100_000 + "!"

    assert is_linear(pattern)
    assert Check({"pattern": pattern}).is_valid(text) is matcher(pattern)(text)


@pytest.mark.parametrize("pattern", [r"^(?:(?=a)a|(?=a)a)*b$", r"^(a|a\1?)+$(?!b)c"])
def test_a_pattern_that_needs_backtracking_gives_up_at_its_limit(pattern: str) -> None:
    assert not is_linear(pattern)
    assert not Check({"pattern": pattern}).is_valid("a" * 100)
    assert inspect({"pattern": pattern}).evaluations > 100


def test_a_pattern_never_reaches_pythons_engine() -> None:
    schema = {
        "patternProperties": {r"^\p{L}+$": {"pattern": r"^\p{L}+$"}},
        "additionalProperties": {"pattern": "^(a+)+$"},
        "unevaluatedProperties": False,
    }
    value = {"ключ": "1", "1": "a" * 40 + "!"}

    assert {p.keyword for p in Check(schema).problems(value)} == {"pattern"}


def test_equal_items_are_found_without_comparing_all_pairs() -> None:
    items: list[JsonValue] = [{"k": i, "n": [i]} for i in range(3_000)]
    check = Check({"uniqueItems": True})

    assert check.is_valid(items)
    (problem,) = check.problems([*items, {"n": [7.0], "k": 7}])
    assert problem.keyword == "uniqueItems"


def test_a_huge_text_is_never_copied_into_a_report() -> None:
    schema = {"anyOf": [{"type": "integer"}, {"not": {}}, {"items": False, "type": "array"}]}

    (problem,) = Check(schema).problems("x" * 1_000_000)

    assert len(problem.got_preview) <= 80


def test_a_deep_value_from_elsewhere_is_refused_before_it_can_crash_the_engine() -> None:
    check = Check({"properties": {"c": {"$ref": "#"}}})

    assert check.guarded(nested(MAX_DEPTH, 1))
    for levels in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(Malformed):
            check.guarded(nested(levels, 1))


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        {"a": [float("-inf")]},
        {1: 2},
        (1, 2),
        b"x",
        "\ud800",
        {"\udfff": 1},
        object(),
        [10**5_000],
    ],
)
def test_what_json_cannot_say_is_refused(value: JsonValue) -> None:
    with pytest.raises(Malformed):
        guard(value)


@pytest.mark.parametrize("value", [None, True, [10**4_000], -1.5e308, "é\U0001f600", [], {"": {}}])
def test_what_json_can_say_is_judged(value: JsonValue) -> None:
    assert Check({}).guarded(value)
    assert not Check({"not": {}}).guarded(value)


def test_a_value_is_weighed_no_further_than_asked() -> None:
    assert weigh({"ab": ["c", 1]}, 100) == (4, 3)
    assert weigh(list(range(1_000)), 10).nodes == 11


def test_a_stack_that_runs_out_ends_the_search_and_nothing_else() -> None:
    """The lint refuses such a loop; the search must bear it all the same."""
    errors, finished = search({"$ref": "#"}, DRAFT_2020_12, {}, Run())

    assert (errors, finished) == ([], False)
