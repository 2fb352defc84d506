"""Views within the limits of a provider or an older client, and the way back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.catalog import Part, merge
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.errors import InvalidArguments
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.servers import Era
from thoughtgate.testing.values import make_definition, make_tool
from thoughtgate.views import View, build

PROPERTIES = {
    "plain": {"type": "string"},
    "naïve key": {"type": "integer"},
    "tenant id": {"type": "string"},
}
ODD = make_definition("odd.name", inputSchema={"type": "object", "properties": PROPERTIES})


def view_of(definition: JsonObject, **fields: JsonValue) -> View:
    tool = make_tool(name=definition["name"], definition=definition)
    domain = Domain(name="d", **fields)
    return build(domain, merge([Part(server="files", tools=(tool,))]))


def test_property_names_outside_a_providers_alphabet_get_aliases() -> None:
    (entry,) = view_of(ODD, limits="anthropic").entries
    shown = entry.shown["inputSchema"]["properties"]
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in shown)
    assert entry.tool.definition is ODD


@given(values=st.fixed_dictionaries({}, optional=dict.fromkeys(PROPERTIES, st.integers())))
def test_arguments_under_aliases_lead_back_to_the_true_names(values: JsonObject) -> None:
    (entry,) = view_of(ODD, limits="anthropic").entries
    aliases = dict(zip(PROPERTIES, entry.shown["inputSchema"]["properties"], strict=True))
    sent = {aliases[name]: value for name, value in values.items()}
    assert entry.to_true(sent) == values


def test_a_hidden_argument_is_refused_by_its_true_name_and_added_behind_the_alias() -> None:
    dress = {"files/odd.name": ToolDress(fixed={"tenant id": "blue"})}
    (entry,) = view_of(ODD, limits="anthropic", dress=dress).entries
    assert len(entry.shown["inputSchema"]["properties"]) == 2
    assert entry.to_true({"plain": "x"}) == {"plain": "x", "tenant id": "blue"}
    with pytest.raises(InvalidArguments):
        entry.to_true({"tenant id": "red"})


@pytest.mark.parametrize("limits", ["anthropic", "openai", "openai-strict", "gemini"])
def test_own_names_within_limits_are_safe_names(limits: str) -> None:
    (entry,) = view_of(ODD, limits=limits, prefixed=False).entries
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,60}", entry.name)


def test_what_a_limited_schema_no_longer_tells_is_said() -> None:
    union = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}}
    view = view_of(make_definition("u", inputSchema=union), limits="openai")
    assert view.entries[0].notes
    assert any("files__u" in warning for warning in view.warnings)


@pytest.mark.parametrize(
    ("schema", "kept"),
    [({"type": "object"}, True), ({"type": "array"}, False), ({"$ref": "#"}, False), (True, False)],
)
def test_an_older_client_is_spared_output_schemas_that_it_would_refuse(
    schema: JsonObject, kept: bool
) -> None:
    (entry,) = view_of(make_definition("t", outputSchema=schema)).entries
    assert ("outputSchema" in entry.shown_to(Era.HANDSHAKE)) is kept
    assert entry.shown["outputSchema"] is schema


def test_a_client_of_today_sees_every_output_schema() -> None:
    (entry,) = view_of(make_definition("t", outputSchema={"type": "array"})).entries
    assert entry.shown_to(Era.STATELESS) is entry.shown
