"""From a value that is not valid to at most ten problems, for people and for models.

Never shows a value of a secret subschema, never takes work without a bound: a big value, or a
schema of many paths, gets the one problem that the Rust engine finds first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import jsonschema_rs

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.problems import Problem
from thoughtgate.schema.equality import json_type
from thoughtgate.schema.hints import hint
from thoughtgate.schema.lint import Inspection
from thoughtgate.schema.phrases import Finding, expected, preview
from thoughtgate.schema.pointers import Step, pointer
from thoughtgate.schema.reference import Run, search
from thoughtgate.schema.weight import Weight

MAX_PROBLEMS: Final = 10

# above these the reference engine is not asked
_MAX_NODES = 20_000
_MAX_PRINTED = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """At most ten problems, missing members first; `truncated` says that there may be more."""

    problems: tuple[Problem, ...]
    truncated: bool = False


def explain(
    value: JsonValue,
    schema: Inspection,
    rust: jsonschema_rs.Validator,
    weight: Weight,
    *,
    formats: bool,
) -> Report:
    """Return the problems of a value that is not valid: at least one."""
    run = Run(formats=formats, secrets=schema.secrets)
    found: list[Finding] = []
    finished = True
    if weight.nodes <= _MAX_NODES and weight.characters * schema.paths <= _MAX_PRINTED:
        errors, finished = search(schema.prepared, schema.dialect, value, run)
        found = [_finding(error) for error in errors]
    blind = not found and bool(schema.secrets)
    if not found and schema.explicable:
        found, finished = _first(value, schema, rust), False
    if not found:
        nothing = Finding(path=(), keyword="schema", argument=None, value=value, schema={})
        found, finished = [nothing], False
    found.sort(key=_rank)
    writer = _Writer(value=value, schema=schema, run=run, blind=blind)
    return Report(
        problems=tuple(map(writer.problem, found[:MAX_PROBLEMS])),
        truncated=not finished or len(found) > MAX_PROBLEMS,
    )


def too_big(value: JsonValue) -> Report:
    """Return the report of a value that is too big to be checked against its schema."""
    problem = Problem(
        pointer="",
        keyword="complexity",
        expected="a smaller value; checking one of this size takes too long",
        got_type=json_type(value),
        got_preview="",
    )
    return Report(problems=(problem,), truncated=True)


def arguments_report(
    tool: str, problems: Sequence[Problem], *, digest: str = "", truncated: bool = False
) -> tuple[str, JsonObject]:
    """Return what to tell the caller whose arguments break the input schema: text and data."""
    text = f"Arguments for '{tool}' are invalid ({_counted(problems, truncated)}). "
    data = _data("invalid_arguments", tool, problems, digest=digest, truncated=truncated)
    return text + _sentences(problems), data


def result_report(
    tool: str, problems: Sequence[Problem], *, digest: str = "", truncated: bool = False
) -> tuple[str, JsonObject]:
    """Return what to tell the caller when the tool broke its own output schema: text and data."""
    text = (
        f"The tool '{tool}' returned data that breaks its own schema; do not retry with other "
        f"arguments ({_counted(problems, truncated)}). "
    )
    data = _data("invalid_result", tool, problems, digest=digest, truncated=truncated)
    return text + _sentences(problems), data


def _counted(problems: Sequence[Problem], truncated: bool) -> str:
    more = " or more" if truncated else ""
    return f"{len(problems)}{more} problem{'' if len(problems) == 1 and not truncated else 's'}"


def _data(
    code: str, tool: str, problems: Sequence[Problem], *, digest: str, truncated: bool
) -> JsonObject:
    data: dict[str, object] = {
        "code": code,
        "tool": tool,
        "problems": [problem.as_json() for problem in problems],
        "truncated": truncated,
    }
    if digest:
        data["schema_digest"] = digest
    return data


def _sentences(problems: Sequence[Problem]) -> str:
    return " ".join(f"{number}) {_sentence(item)}" for number, item in enumerate(problems, 1))


def _sentence(problem: Problem) -> str:
    got = "missing" if problem.got_type == "absent" else f"got {problem.got_type}"
    shown = f" {problem.got_preview}" if problem.got_preview not in {"", "null"} else ""
    advice = f" {problem.hint[0].upper()}{problem.hint[1:]}" if problem.hint else ""
    stop = "." if advice and not advice.endswith("?") else ""
    place = problem.pointer or "The value"
    return f"{place}: {got}{shown}; expected {problem.expected}.{advice}{stop}"


def _rank(finding: Finding) -> int:
    return 0 if finding.missing else 2 if finding.unknown else 1


def _finding(error: Any) -> Finding:
    path = tuple(error.absolute_path)
    return Finding(
        path=path,
        keyword="false" if error.validator is None else str(error.validator),
        argument=error.validator_value,
        value=error.instance,
        schema=error.schema,
    )


def _first(value: JsonValue, schema: Inspection, rust: jsonschema_rs.Validator) -> list[Finding]:
    """Return what the Rust engine finds first."""
    try:
        rust.validate(value)
    except jsonschema_rs.ValidationError as error:
        return _translated(error, value, schema.prepared)
    return []


def _translated(
    error: jsonschema_rs.ValidationError, value: JsonValue, root: JsonValue
) -> list[Finding]:
    path = tuple(error.instance_path)
    steps = list(error.schema_path)
    keyword = str(steps[-1]) if steps else "schema"
    around = _at(root, steps[:-1])
    argument = around.get(keyword) if isinstance(around, dict) else None
    here = _at(value, path)
    kind = error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        argument = kind.property
    unexpected = getattr(kind, "unexpected", None)
    if isinstance(unexpected, list) and isinstance(here, dict):
        return [
            Finding(
                path=(*path, name),
                keyword=keyword,
                argument=argument,
                value=here.get(name),
                schema=around,
            )
            for name in unexpected[:MAX_PROBLEMS]
        ]
    return [Finding(path=path, keyword=keyword, argument=argument, value=here, schema=around)]


def _at(value: JsonValue, steps: Sequence[Step]) -> JsonValue:
    for step in steps:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return {}
    return value


def _is_container_text(value: JsonValue) -> bool:
    return isinstance(value, str) and value.lstrip()[:1] in {"{", "["}


def _names_no_value(value: JsonValue) -> bool:
    """Tell whether the advice for such a value never repeats it."""
    return value is None or _is_container_text(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    """Turns findings into problems, knowing what must not be shown."""

    value: JsonValue
    schema: Inspection
    run: Run
    blind: bool

    def problem(self, finding: Finding) -> Problem:
        path = finding.path
        if finding.missing:
            path = (*path, finding.argument)
        shown = not finding.missing and self._may_show(finding)
        siblings = self._siblings(path)
        advice = ""
        if shown or finding.missing or finding.unknown or _names_no_value(finding.value):
            advice = hint(finding, siblings, optional=self._optional(siblings, path))
        return Problem(
            pointer=pointer(path),
            keyword=finding.keyword,
            expected=expected(finding, self.schema.prepared),
            got_type="absent" if finding.missing else json_type(finding.value),
            got_preview=preview(finding.value) if shown else "",
            hint=advice,
        )

    def _siblings(self, path: tuple[Step, ...]) -> JsonValue:
        return _at(self.value, path[:-1]) if path else None

    def _optional(self, siblings: JsonValue, path: tuple[Step, ...]) -> bool:
        if not path:
            return False
        member = (id(siblings), str(path[-1]))
        return member in self.run.optional and member not in self.run.wanted

    def _may_show(self, finding: Finding) -> bool:
        """Tell whether a preview gives nothing away."""
        if not self.schema.secrets:
            return True
        if self.blind or finding.unknown or _is_container_text(finding.value):
            # a misspelt name or an object sent as text may carry what another member hides
            return False
        values = [_at(self.value, finding.path[:end]) for end in range(len(finding.path) + 1)]
        return all(id(value) not in self.run.hidden for value in values)
