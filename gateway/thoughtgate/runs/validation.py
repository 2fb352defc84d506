"""The verdict on what a run found: output schemas and the plan's checks.

Never says `passed` where there was nothing to hold a value against.
"""

from collections.abc import Iterable, Iterator, Mapping

from thoughtgate.core.json import JsonObject, JsonValue, digest
from thoughtgate.core.tools import Tool
from thoughtgate.engines.contract import Subject, Validate, Verdict, VerdictStatus
from thoughtgate.engines.observations import is_error
from thoughtgate.schema.checks import Check, compiled

_PROBLEMS = 10


def verdicts(effect: Validate, tools: Mapping[str, Tool]) -> tuple[Verdict, ...]:
    """Return one verdict per value."""
    if effect.what is Subject.OBSERVATION:
        return tuple(
            _observation(value, tools.get(name), effect.check)
            for value, name in zip(effect.values, effect.tools, strict=True)
        )
    return tuple(_verdict(_problems(value, effect.check), effect.check) for value in effect.values)


def _observation(value: JsonValue, tool: Tool | None, check: JsonObject | bool | None) -> Verdict:
    if is_error(value):
        return Verdict(status=VerdictStatus.FAILED, problems=("the call failed",))
    schema = tool.output_schema if tool else None
    problems: list[str] = []
    if schema is not None and isinstance(value, Mapping):
        if "structuredContent" in value:
            key = f"{tool.digest}#out" if tool else ""
            found = _found(compiled(key, schema), value["structuredContent"])
            problems += [f"/structuredContent{one}" for one in found]
        else:
            problems.append("/structuredContent: missing, though the tool declares its schema")
    problems += _problems(value, check)
    return _verdict(problems, schema if check is None else check)


def _verdict(problems: Iterable[str], against: JsonValue) -> Verdict:
    found = tuple(problems)[:_PROBLEMS]
    if found:
        return Verdict(status=VerdictStatus.FAILED, problems=found)
    skipped = against is None
    return Verdict(status=VerdictStatus.SKIPPED if skipped else VerdictStatus.PASSED)


def _problems(value: JsonValue, schema: JsonObject | bool | None) -> Iterator[str]:
    if schema is not None:
        yield from _found(compiled(digest(schema), schema), value)


def _found(check: Check, value: JsonValue) -> Iterator[str]:
    """Yield what is wrong, without a word of the value: these sentences stand outside the data."""
    if check.is_valid(value):
        return
    for problem in check.problems(value):
        yield f"{problem.pointer}: expected {problem.expected}, got {problem.got_type}"
