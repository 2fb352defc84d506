"""The quick copy of a call is the standard library's copy, only quicker."""

from dataclasses import replace

import pytest

from thoughtgate.calls.altered import altered, made
from thoughtgate.core.calls import Call
from thoughtgate.testing.values import make_call, make_tool


def test_a_copy_has_the_changes_and_all_else_as_it_was() -> None:
    call = make_call(run_id="r", depth=2, log_level="info", wants_progress=True)
    before = replace(call)
    copy = altered(call, target=make_tool(), arguments={"a": 1}, deadline=5.0)
    assert copy == replace(call, target=make_tool(), arguments={"a": 1}, deadline=5.0)
    assert call == before
    assert altered(call) == call
    assert altered(call) is not call


def test_a_field_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AttributeError):
        altered(make_call(), argument={})


def test_a_call_made_quickly_is_the_call_that_the_constructor_makes() -> None:
    given = make_call(run_id="r", log_level="info").__dict__
    assert made(**given) == Call(**given)
    needed = ("id", "target", "arguments", "principal", "session", "domain", "deadline")
    least = {name: given[name] for name in (*needed, "listener", "meta")}
    assert made(**least) == Call(**least)


def test_a_call_is_not_made_without_a_field_or_with_one_that_does_not_exist() -> None:
    given = make_call().__dict__
    with pytest.raises(AttributeError, match="deadline"):
        made(**{name: value for name, value in given.items() if name != "deadline"})
    with pytest.raises(AttributeError, match="argument"):
        made(**{**given, "argument": {}})
