"""The two engines over the whole suite, schema by instance: they differ in named classes only."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from tests.support import jsts
from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonValue
from thoughtgate.schema.checks import Check
from thoughtgate.schema.dialects import DIALECTS, Dialect, registry, rust
from thoughtgate.schema.patterns import BOUNDED
from thoughtgate.schema.structure import mapped

PATTERN, DECIMAL, VOCABULARY, DEPENDENCIES, CONTENT = (
    "regular expressions: ECMA 262 against Python's re",
    "multipleOf on floats: decimal against binary",
    "a custom vocabulary",
    "`dependencies`, which 2020-12 dropped",
    "content keywords, which draft 7 lets an engine assert",
)
"""The fourth class of old, `format` asserted by default, is gone: both are told."""


def keywords(schema: JsonValue) -> set[str]:
    found: set[str] = set()

    def note(part: JsonValue) -> JsonValue:
        found.update(part)
        return part

    mapped(schema, note)
    return found


def class_of(schema: JsonValue, value: JsonValue) -> str:
    """Name the class of a disagreement by what the schema says; empty for a new one."""
    used = keywords(schema)
    if "multipleOf" in used and isinstance(value, int | float):
        return DECIMAL
    if {"pattern", "patternProperties"} & used:
        return PATTERN
    if {"contentEncoding", "contentMediaType"} & used:
        return CONTENT
    if "dependencies" in used:
        return DEPENDENCIES
    if "localhost" in str(schema.get("$schema")):
        return VOCABULARY
    return ""


def disagreements(name: str) -> Iterator[tuple[JsonValue, JsonValue]]:
    dialect, remotes = jsts.dialect(name), jsts.remotes(name)
    served = registry(dialect, remotes)
    groups = jsts.required(name) + jsts.optional(name)
    instances: dict[str, list[JsonValue]] = defaultdict(list)
    for group in groups:
        instances[group.file] += [value for _, value, _ in group.tests]
    for group in groups:
        try:
            fast = rust(group.schema, dialect, patterns=BOUNDED, remotes=remotes)
        except SchemaRejected:
            assert group.file == "cross-draft", group.name
            continue
        reference = dialect.reference(group.schema, registry=served)
        for value in instances[group.file]:
            try:
                same = fast.is_valid(value) == reference.is_valid(value)
            except re.error:
                same = False
            if not same:
                yield group.schema, value


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("draft4", {PATTERN, DECIMAL}),
        ("draft6", {PATTERN, DECIMAL}),
        ("draft7", {PATTERN, DECIMAL, CONTENT}),
        ("draft2020-12", {PATTERN, DECIMAL, VOCABULARY, DEPENDENCIES}),
    ],
)
def test_the_engines_disagree_in_named_classes_only(name: str, classes: set[str]) -> None:
    found = Counter(class_of(schema, value) for schema, value in disagreements(name))

    assert set(found) == classes


def test_a_check_enforces_dependencies_in_every_dialect() -> None:
    check = Check({"dependencies": {"a": ["b"]}})

    (problem,) = check.problems({"a": 1})

    assert (problem.pointer, problem.keyword) == ("/b", "required")


@pytest.mark.parametrize("draft", ["06", "07"])
def test_a_check_asserts_no_content_keyword(draft: str) -> None:
    check = Check({
        "$schema": f"http://json-schema.org/draft-{draft}/schema#",
        "properties": {"data": {"contentEncoding": "base64", "contentMediaType": "text/plain"}},
    })

    assert check.is_valid({"data": "!"})


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_format_is_asserted_only_when_asked(dialect: Dialect) -> None:
    schema = {"$schema": dialect.uri, "format": "email"}

    assert Check(schema).is_valid("nope")
    (problem,) = Check(schema, formats=True).problems("nope")
    assert problem.keyword == "format"
