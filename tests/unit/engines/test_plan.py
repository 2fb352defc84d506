"""Reading plans and linting them: every fault is said before anything is spent."""

import pytest

from tests.support.play import TOOLS, plan
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.json import JsonValue
from thoughtgate.engines.contract import EngineTool, Limits, Task
from thoughtgate.engines.plan import Plan, plan_from_json, plan_from_text, plan_from_toml
from thoughtgate.engines.plan_lint import lint

TOML = """
goal = "report errors"
answer = { "$from" = "send#/content/0/text" }

[inputs]
dir = "/var/log"

[[steps]]
id = "find"
goal = "find the files"
tool = "logs__find"
arguments = { dir = { "$from" = "inputs#/dir" } }
check = { required = ["structuredContent"] }

[[steps]]
id = "read"
tool = "logs__read"
each = { "$from" = "find#/structuredContent/files" }
arguments = { path = { "$item" = "/path" } }

[[steps]]
id = "send"
tool = "notify__send"
depends_on = ["find"]
arguments = { text = { "$from" = "read#/content/0/text" } }
"""


def problems(made: Plan, **task: JsonValue) -> str:
    given = Task(goal="g", tools=task.pop("tools", TOOLS), **task)
    return "; ".join(lint(made, given, Limits()))


def refusal(value: JsonValue) -> str:
    """Return why a value is no plan, or what is wrong with the plan that it is."""
    try:
        return problems(plan_from_json(value))
    except ConfigError as error:
        return "; ".join(error.data["reasons"])


def test_a_plan_is_read_from_toml_and_says_what_each_step_needs() -> None:
    made = plan_from_toml(TOML)
    assert [step.needs for step in made.steps] == [set(), {"find"}, {"find", "read"}]
    assert problems(made) == ""
    assert plan_from_json(made.as_json()) == made


def test_a_plan_is_written_as_it_was_read() -> None:
    step = {"id": "a", "tool": "logs__find", "each": [], "arguments": {}, "check": False}
    made = plan(step, answer="", answer_check={})
    assert plan_from_json(made.as_json()) == made


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("steps = 3", "steps is missing or not a list"),
        ("[[steps]", "not valid TOML"),
        ("x = " + "[" * 5_000, "not valid TOML"),
        ("[[steps]]\nid = 'a'\narguments = {d = 2020-01-01}", "write it as text"),
        ("[[steps]]\nid = 'a'\narguments = {d = nan}", "JSON cannot hold"),
        ("#" * 300_000, "longer than"),
        ('{"steps": [', "not valid JSON"),
        ('{"steps": 3}', "steps is missing or not a list"),
        ("{" * 300_000, "longer than"),
    ],
)
def test_a_text_that_is_no_plan_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_from_text(text)
    assert reason in caught.value.message


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({"goal": "no id"}, "needs an id"),
        ({"id": "two words"}, "needs an id"),
        ({"id": "inputs"}, "needs an id"),
        ({"id": "a", "tools": "x"}, "unknown key tools"),
        ({"id": "a", "goal": 3}, "goal is not text"),
        ({"id": "a", "arguments": [1]}, "arguments is not an object"),
        ({"id": "a", "depends_on": [1]}, "depends_on holds step ids"),
        ({"id": "a", "check": "yes"}, "a check is a JSON Schema"),
        ({"id": "a", "arguments": {"x": {"$from": "b#c"}}}, "starts with /"),
        ("a", "is not an object"),
    ],
)
def test_a_malformed_step_is_refused_by_name(step: JsonValue, reason: str) -> None:
    assert reason in refusal({"steps": [step]})


def test_all_faults_are_told_at_once() -> None:
    told = refusal({"stepz": 1, "steps": [{"id": "a", "goal": 1}, {"id": "b", "check": 2}]})
    assert all(part in told for part in ("stepz", "step a: goal", "step b: a check"))


def test_how_a_plan_is_written_and_what_it_asks_for_are_told_at_once() -> None:
    told = refusal({
        "answr": 1,
        "steps": [
            {"id": "a", "tool": "logs__read", "arguments": {}, "tol": 1},
            {"id": "b", "tool": "logs__fnd", "arguments": {"dir": {"$from": "a#x"}}},
            {"id": "c", "tool": "logs__read", "arguments": {"path": {"$from": "z#/x"}}},
        ],
    })  # fmt: skip
    assert told.split("; ")[:3] == [
        "unknown key answr", "step a: unknown key tol",
        "step b: a#x: a pointer is empty or starts with /",
    ]  # fmt: skip
    for later in ("missing input path of", "unknown tool logs__fnd", "unknown step z"):
        assert later in told


def test_a_plan_nested_too_deep_is_refused_not_followed() -> None:
    value: JsonValue = {}
    for _ in range(60):
        value = {"x": value}
    assert "nested too deep" in refusal({"steps": [{"id": "a", "arguments": value}]})


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([], "it has no steps"),
        ([{"id": "a", "tool": "logs_find", "arguments": {}}], "nearest: logs__find"),
        ([{"id": "a", "tool": "logs__read", "arguments": {}}], "missing input path of logs__read"),
        (
            [{"id": "a", "tool": "logs__find", "arguments": {"dirr": "x"}}],
            "logs__find takes no dirr; nearest: dir",
        ),
        ([{"id": "a", "arguments": {}}], "arguments need a tool"),
        ([{"id": "a", "tool": "logs__find"}], "no model is configured"),
        ([{"id": "a", "each": [1]}], "each needs arguments"),
        ([{"id": "a", "tool": "logs__find", "each": "x", "arguments": {}}], "each needs a list"),
        (
            [{"id": "a", "tool": "logs__find", "arguments": {"dir": {"$item": ""}}}],
            "$item stands only in a step with each",
        ),
        (
            [{"id": "a", "tool": "logs__find", "arguments": {"dir": {"$from": "zz#/x"}}}],
            "unknown step zz",
        ),
        (
            [{"id": "a", "tool": "logs__find", "arguments": {"dir": {"$from": "a#/x"}}}],
            "refers to itself",
        ),
        (
            [{"id": "a", "tool": "logs__find", "arguments": {"dir": {"$from": "inputs#/d"}}}],
            "missing input: inputs#/d",
        ),
        (
            [{"id": "a", "tool": "logs__find", "arguments": {}, "depends_on": ["b"]}],
            "depends on unknown step b",
        ),
        (
            [{"id": "a", "tool": "logs__find", "arguments": {}, "check": {"type": "objekt"}}],
            "not a schema that can be used",
        ),
        (
            [
                {"id": "a", "tool": "logs__find", "arguments": {}},
                {"id": "a", "tool": "logs__find", "arguments": {}},
            ],
            "the id a is used 2 times",
        ),
        (
            [
                {"id": "a", "tool": "logs__find", "arguments": {}, "depends_on": ["b"]},
                {"id": "b", "tool": "logs__find", "arguments": {"dir": {"$from": "a#/x"}}},
                {"id": "c", "tool": "logs__find", "arguments": {}},
            ],
            "these steps wait for each other: a, b",
        ),
        (
            [{"id": f"s{n}", "tool": "logs__find", "arguments": {}} for n in range(13)],
            "13 steps, more than max_steps = 12",
        ),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(steps: JsonValue, reason: str) -> None:
    assert reason in problems(plan(*steps))


def test_an_input_of_the_run_stands_in_for_the_plans_default() -> None:
    made = plan({"id": "a", "tool": "logs__find", "arguments": {"dir": {"$from": "inputs#/dir"}}})
    assert "missing input" in problems(made)
    assert problems(made, inputs={"dir": "/x"}) == ""


def test_a_step_without_arguments_is_fine_where_a_model_can_find_them() -> None:
    assert problems(plan({"id": "a", "goal": "look"}), has_model=True) == ""


def test_a_plan_for_no_tools_at_all_says_that_there_are_none() -> None:
    tools: tuple[EngineTool, ...] = ()
    made = plan({"id": "a", "tool": "x", "arguments": {}})
    assert "there are no tools" in problems(made, tools=tools)
