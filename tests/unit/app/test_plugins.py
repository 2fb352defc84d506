"""Plug-in stages: only those that are named, and none of those is left out."""

from importlib.metadata import EntryPoint

import pytest

from thoughtgate.app import plugins
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.ports import Next


async def stage(call: Call, call_next: Next) -> Result:
    return await call_next(call)


FOUND = (
    EntryPoint(name="good", value="tests.unit.app.test_plugins:stage", group=plugins.GROUP),
    EntryPoint(name="gone", value="no_such_module_here:stage", group=plugins.GROUP),
    EntryPoint(name="other", value="tests.unit.app.test_plugins:stage", group=plugins.GROUP),
)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda group: FOUND)


def test_only_named_plug_ins_are_loaded_in_the_named_order() -> None:
    names = [one.name for one in plugins.middleware(["other", "good"])]
    assert names == ["other", "good"]


@pytest.mark.parametrize("name", ["gone", "absent"])
def test_a_plug_in_that_is_missing_or_broken_stops_the_start(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        plugins.middleware(["good", name])
