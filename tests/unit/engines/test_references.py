"""References between steps: found, joined, or missed with a reason."""

import pytest

from thoughtgate.core.json import JsonValue
from thoughtgate.engines.references import (
    Item,
    ReferenceMissed,
    Sourced,
    references,
    resolve,
    uses_item,
)

FILES = {"files": [{"path": "a"}, {"path": "b"}], "a/b": {"~": 1}, "total": 2, "": "empty name"}
SOURCES = {
    "find": Sourced(values=({"structuredContent": FILES},)),
    "read": Sourced(values=({"lines": [1, 2]}, {"lines": [3]}), fanned=True),
    "none": Sourced(values=(), fanned=True),
    "inputs": Sourced(values=({"directory": "/logs"},)),
}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"$from": "find#/structuredContent/files"}, FILES["files"]),
        ({"$from": "find#/structuredContent/files/1/path"}, "b"),
        ({"$from": "find#/structuredContent/a~1b/~0"}, 1),
        ({"$from": "find#/structuredContent/"}, "empty name"),
        ({"$from": "find"}, {"structuredContent": FILES}),
        ({"$from": "inputs#/directory"}, "/logs"),
        ({"deep": [{"$from": "inputs#/directory"}, 1]}, {"deep": ["/logs", 1]}),
        ({"$from": "read#/lines"}, [[1, 2], [3]]),
        ({"$from": "read#/lines", "$flat": True}, [1, 2, 3]),
        ({"$from": "none#/lines"}, []),
        ({"$literal": {"$from": "find"}}, {"$from": "find"}),
        ({"plain": None}, {"plain": None}),
    ],
)
def test_a_reference_becomes_what_it_points_at(value: JsonValue, found: JsonValue) -> None:
    assert resolve(value, SOURCES) == found


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"$from": "find#/structuredContent/file"}, "there is files, a/b, total"),
        ({"$from": "find#/structuredContent/files/2"}, "there is a list of 2"),
        ({"$from": "find#/structuredContent/files/01"}, "there is a list of 2"),
        ({"$from": "find#/structuredContent/files/-"}, "there is a list of 2"),
        ({"$from": "find#/structuredContent/total/x"}, "there is no object or list"),
        ({"$from": "gone#/x"}, "gone has no observation"),
        ({"$from": "read#/text"}, "there is lines"),
        ({"$from": "find#/structuredContent/files", "$flat": True}, "needs a list of lists"),
        ({"$from": "find#x"}, "starts with /"),
        ({"$from": 3}, "step#/pointer"),
        ({"$from": "find", "default": 1}, "unknown member default"),
        ({"$item": ""}, "inside a step with each"),
        ({"$literal": 1, "more": 2}, "stands alone"),
    ],
)
def test_a_reference_that_misses_says_what_was_there(value: JsonValue, reason: str) -> None:
    with pytest.raises(ReferenceMissed) as caught:
        resolve(value, SOURCES)
    assert reason in str(caught.value)


def test_an_item_is_the_current_element_of_each() -> None:
    item = Item(value={"path": "a", "size": None})
    assert resolve({"p": {"$item": "/path"}, "all": {"$item": ""}}, {}, item) == {
        "p": "a",
        "all": {"path": "a", "size": None},
    }


def test_references_are_found_at_any_depth_but_not_in_literals() -> None:
    value = {"a": [{"$from": "x#/1"}], "b": {"$literal": {"$from": "y"}}, "c": {"$item": ""}}
    assert [one.step for one in references(value)] == ["x"]
    assert uses_item(value)
    assert not uses_item({"b": {"$literal": {"$item": ""}}})


@pytest.mark.parametrize(
    ("one", "times"), [("x" * 100_000, 42), (list(range(10_000)), 50), ({"k" * 100_000: 1}, 42)]
)
def test_references_that_bring_too_much_are_refused_before_it_is_written(
    one: object, times: int
) -> None:
    sources = {"s": Sourced(values=(one,))}
    few = [{"$from": "s#"}] * (times // 2)
    assert resolve(few, sources) == [one] * (times // 2)
    with pytest.raises(ReferenceMissed, match="bring more than"):
        resolve([{"$from": "s#"}] * times, sources)


def test_references_that_multiply_from_step_to_step_are_refused_at_once() -> None:
    def multiplied(steps: int) -> object:
        value: object = ["x"]
        for _ in range(steps):
            value = resolve([{"$from": "s#"}] * 64, {"s": Sourced(values=(value,))})
        return value

    multiplied(2)
    with pytest.raises(ReferenceMissed, match="bring more than"):
        multiplied(12)
