"""Public faults as small inputs: what may be registered, and what is valid."""

import json
from pathlib import Path
from typing import Any

import pytest

from thoughtgate.core.errors import Malformed, SchemaRejected
from thoughtgate.schema.checks import Check
from thoughtgate.schema.registration import admit
from thoughtgate.wire.strict import parse

CASES = json.loads(
    (Path(__file__).parents[2] / "data" / "schema_cases.json").read_text(encoding="utf-8")
)
BY_ID = {case["id"]: case for case in CASES}
# where the list leaves the verdict to us, this is what we decided
DECIDED = {"2020-dependencies": False, "format-draft7": True}
RAW = [case for case in CASES if case["raw_instance_text"] is not None]
TAKEN = [case for case in CASES if case["want_register"] and case not in RAW]


def ids(case: dict[str, Any]) -> str:
    return str(case["id"])


def test_no_case_is_left_out() -> None:
    open_ended = {case["id"] for case in TAKEN if case["want_valid"] is None}

    assert open_ended == set(DECIDED)
    assert {case["id"] for case in RAW} == {"dup-keys", "nan", "huge-int"}


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_a_schema_is_registered_or_refused_as_it_should(case: dict[str, Any]) -> None:
    if case["want_register"]:
        admit(case["schema"])
    else:
        with pytest.raises(SchemaRejected):
            admit(case["schema"])


@pytest.mark.parametrize("case", TAKEN, ids=ids)
def test_an_instance_is_judged_as_it_should(case: dict[str, Any]) -> None:
    check = Check(case["schema"])
    wanted = DECIDED.get(case["id"], case["want_valid"])

    assert check.is_valid(case["instance"]) is wanted
    assert (check.problems(case["instance"]) == ()) is wanted


@pytest.mark.parametrize("case", RAW, ids=ids)
def test_text_that_is_not_strict_json_never_reaches_a_schema(case: dict[str, Any]) -> None:
    """The parser's promise, which the checks build on."""
    with pytest.raises(Malformed):
        parse(case["raw_instance_text"].encode())


def test_a_big_integer_is_passed_and_judged_exactly() -> None:
    case = BY_ID["int64"]
    check = Check({**case["schema"], "properties": {"id": {"maximum": 9007199254740992}}})

    assert not check.is_valid(parse(b'{"id":9007199254740993}'))
    assert check.is_valid(parse(b'{"id":9007199254740992}'))


def test_the_hint_for_stringified_json_says_what_to_send() -> None:
    for name, kind in (("stringified-array", "array"), ("stringified-object", "object")):
        case = BY_ID[name]
        (problem,) = Check(case["schema"]).problems(case["instance"])
        assert problem.hint == f"send the JSON {kind} itself, not a string that holds it"


def test_the_hint_for_a_null_says_omit() -> None:
    case = BY_ID["nulls-for-absent"]
    (problem,) = Check(case["schema"]).problems(case["instance"])

    assert (problem.pointer, problem.hint) == ("/age", "omit it instead of null")
