"""The official JSON Schema suite through both engines, the reporter and the whole check."""

import re

import pytest
from jsonschema.protocols import Validator

from tests.support import jsts
from tests.unit.schema.test_lint_refusals import declared
from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonValue
from thoughtgate.schema.checks import Check
from thoughtgate.schema.dialects import DIALECTS, registry, rust
from thoughtgate.schema.patterns import BOUNDED
from thoughtgate.schema.reference import Run, search
from thoughtgate.schema.registration import admit_unlinted

TOTALS = {
    "draft4": 618,
    "draft6": 839,
    "draft7": 927,
    "draft2019-09": 1259,
    "draft2020-12": 1299,
}
DRAFTS = sorted(TOTALS)
# what jsonschema 4.26 alone cannot: \p{…} in Python's re, a custom vocabulary, one annotation
REFERENCE_MISSES = {"draft2019-09": 2, "draft2020-12": 6}
# the reporter has the Rust engine's patterns, but jsonschema's vocabularies
REPORTER_MISSES = {"draft2019-09": 1, "draft2020-12": 1}


def test_every_draft_that_we_speak_is_tested() -> None:
    assert {dialect.name for dialect in DIALECTS} == set(DRAFTS)


@pytest.mark.parametrize("name", DRAFTS)
def test_the_suite_is_whole(name: str) -> None:
    assert sum(len(group.tests) for group in jsts.required(name)) == TOTALS[name]


@pytest.mark.parametrize("name", DRAFTS)
def test_yes_and_no_are_right_on_every_required_case(name: str) -> None:
    dialect, remotes = jsts.dialect(name), jsts.remotes(name)
    wrong = []
    for group in jsts.required(name):
        engine = rust(group.schema, dialect, patterns=BOUNDED, remotes=remotes)
        wrong += [
            (group.file, group.name, what)
            for what, value, valid in group.tests
            if engine.is_valid(value) != valid
        ]

    assert wrong == []


@pytest.mark.parametrize("name", DRAFTS)
def test_without_the_lint_both_engines_take_every_schema_of_their_vocabulary(name: str) -> None:
    dialect, remotes = jsts.dialect(name), jsts.remotes(name)
    refused = []
    for group in jsts.required(name):
        try:
            admit_unlinted(group.schema, dialect=dialect, remotes=remotes)
        except SchemaRejected as error:
            refused.append((group.file, group.name, error.rule))

    assert refused == []


@pytest.mark.parametrize("name", DRAFTS)
def test_the_reference_engine_misses_no_more_than_is_known(name: str) -> None:
    dialect = jsts.dialect(name)
    served = registry(dialect, jsts.remotes(name))
    wrong = 0
    for group in jsts.required(name):
        engine = dialect.reference(group.schema, registry=served)
        for _, value, valid in group.tests:
            wrong += _verdict(engine, value) is not valid

    assert wrong == REFERENCE_MISSES.get(name, 0)


@pytest.mark.parametrize("name", DRAFTS)
def test_the_reporter_finds_errors_exactly_in_what_is_invalid(name: str) -> None:
    dialect, remotes = jsts.dialect(name), jsts.remotes(name)
    wrong = []
    for group in jsts.required(name):
        for what, value, valid in group.tests:
            errors, finished = search(group.schema, dialect, value, Run(seen=None), remotes)
            if (not errors and finished) is not valid:
                wrong.append((group.file, what))

    assert len(wrong) == REPORTER_MISSES.get(name, 0)
    assert all(file == "vocabulary" for file, _ in wrong)


@pytest.mark.parametrize("name", DRAFTS)
def test_a_check_of_what_registration_takes_is_right_and_explains_every_no(name: str) -> None:
    dialect = jsts.dialect(name)
    wrong = []
    for group in jsts.required(name):
        try:
            check = Check(declared(group.schema, dialect))
        except SchemaRejected:
            continue
        for what, value, valid in group.tests:
            problems = check.problems(value)
            if check.is_valid(value) is not valid or (not problems) is not valid:
                wrong.append((group.file, group.name, what))

    assert wrong == []


def _verdict(engine: Validator, value: JsonValue) -> bool | None:
    try:
        return bool(engine.is_valid(value))
    except re.error:
        return None
