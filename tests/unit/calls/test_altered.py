"""The quick copy of a call is the standard library's copy, only quicker."""

from dataclasses import replace

import pytest

from thoughtgate.calls.altered import altered
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
