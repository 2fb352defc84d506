"""What registration refuses of the official suite is a committed list, with reasons."""

import json
from collections import Counter
from pathlib import Path

from tests.support import jsts
from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonValue
from thoughtgate.schema.dialects import DIALECTS, Dialect
from thoughtgate.schema.registration import admit

LIST = Path(__file__).parents[2] / "data" / "jsts_lint_refusals.json"


def declared(schema: JsonValue, dialect: Dialect) -> JsonValue:
    """Declare the draft that the suite's folder implies."""
    if not isinstance(schema, dict) or "$schema" in schema:
        return schema
    return {"$schema": dialect.uri, **schema}


def refusals() -> list[tuple[str, str, str, str]]:
    """Return (draft, file, group, rule) of every group that registration refuses."""
    found = []
    for dialect in DIALECTS:
        for group in jsts.required(dialect.name) + jsts.optional(dialect.name):
            try:
                admit(declared(group.schema, dialect))
            except SchemaRejected as error:
                found.append((dialect.name, group.file, group.name, error.rule))
    return found


def test_registration_refuses_exactly_the_listed_schemas_of_the_suite() -> None:
    listed = json.loads(LIST.read_text(encoding="utf-8"))
    expected = Counter(
        (draft, rule, case)
        for draft, rules in listed["refused"].items()
        for rule, cases in rules.items()
        for case in cases
    )
    found = Counter((draft, rule, f"{file}: {name}") for draft, file, name, rule in refusals())

    assert found == expected
    assert set(listed["reasons"]) == {rule for _, rule, _ in expected}
