"""References held against output schemas: only what a closed one rules out is a fault."""

import pytest

from tests.support.play import plan
from thoughtgate.core.json import JsonObject
from thoughtgate.engines.contract import EngineTool, Limits, Task
from thoughtgate.engines.plan_lint import lint

FILE = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "more": {"type": "object"}},
    "additionalProperties": False,
}
CLOSED = {
    "type": "object",
    "properties": {"files": {"type": "array", "items": FILE}, "a/b": {}},
    "additionalProperties": False,
}


def told(pointer: str, output: JsonObject | None) -> str:
    """Lint a plan whose second step and answer take what `pointer` finds in the first."""
    find = EngineTool(name="find", description="", parameters={"type": "object"}, output=output)
    reference = {"$from": f"look#{pointer}"}
    made = plan(
        {"id": "look", "tool": "find", "arguments": {}},
        {"id": "next", "tool": "find", "arguments": {"x": reference}},
        answer=reference,
    )
    return "; ".join(lint(made, Task(goal="g", tools=(find,)), Limits()))


@pytest.mark.parametrize(
    ("pointer", "reason"),
    [
        ("/structuredContent/file", "the tool returns no file there; nearest: files"),
        ("/structuredContent/weather", "no weather there; there is files, a/b"),
        ("/structuredContent/files/0/pth", "the tool returns no pth there; nearest: path"),
        ("/structuredContent/files/path", "the tool returns array where path is looked for"),
        ("/structuredContent/files/0/path/x", "the tool returns string where x is looked for"),
    ],
)
def test_what_no_result_can_hold_is_a_fault(pointer: str, reason: str) -> None:
    found = told(pointer, CLOSED)
    assert reason in found
    assert f"step next: look#{pointer}: " in found
    assert f"answer: look#{pointer}: " in found


@pytest.mark.parametrize(
    "pointer",
    [
        "", "/content/0/text", "/structuredContent", "/structuredContent/files",
        "/structuredContent/files/7/path", "/structuredContent/a~1b/x",
        "/structuredContent/files/0/more/x",
    ],
)  # fmt: skip
def test_what_a_result_may_hold_is_none(pointer: str) -> None:
    assert told(pointer, CLOSED) == ""


@pytest.mark.parametrize(
    "output",
    [
        None,
        {},
        {"type": "object", "properties": {"files": {}}},
        {**CLOSED, "patternProperties": {"^x": {}}},
        {**CLOSED, "$ref": "#/$defs/a", "$defs": {"a": {}}},
        {**CLOSED, "type": ["object", "array"]},
    ],
)
def test_a_schema_that_leaves_it_open_rules_nothing_out(output: JsonObject | None) -> None:
    assert told("/structuredContent/x", output) == ""
