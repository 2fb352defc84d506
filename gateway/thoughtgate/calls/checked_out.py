"""The stage that holds a structured result against the tool's output schema.

Never touches the result: what came is what goes up, or nothing does. Never judges a result that
says of itself that it is an error.
"""

from dataclasses import replace

from thoughtgate.core.calls import Call, Result, Source
from thoughtgate.core.errors import InvalidResult
from thoughtgate.core.ports import Next
from thoughtgate.core.problems import Problem
from thoughtgate.core.servers import ResultPolicy
from thoughtgate.core.tools import Tool
from thoughtgate.schema.checks import compiled
from thoughtgate.schema.explain import Report, result_report
from thoughtgate.wire.results import inside

NOTE = "invalid_result"
_INTERIM = "task"
"""The result type that promises the tool's answer for later (extension of the stateless era)."""

_MISSING = Report(
    problems=(
        Problem(
            pointer="",
            keyword="outputSchema",
            expected="structuredContent",
            got_type="absent",
            got_preview="",
        ),
    )
)


async def checked_out(call: Call, call_next: Next) -> Result:
    """Pass on a result that fits; one that does not is noted, or refused.

    For an engine every server is strict: what it builds on must hold.

    Raises:
        InvalidResult: It does not fit and the policy is strict.
    """
    result = await call_next(call)
    tool = call.target
    if not isinstance(tool, Tool) or not result.final:
        return result
    policy = ResultPolicy.STRICT if call.source is Source.ENGINE else tool.results
    if policy is ResultPolicy.OFF or tool.output_schema is None or result.is_error:
        return result
    report = _report(tool, result)
    if report is None:
        return result
    if policy is ResultPolicy.WARN:
        return replace(result, notes=(*result.notes, NOTE))
    text, data = result_report(
        call.advertised, report.problems, digest=tool.digest, truncated=report.truncated
    )
    raise InvalidResult(message=text, problems=report.problems, data=data)


def _report(tool: Tool, result: Result) -> Report | None:
    """Return what is wrong with a result, None when nothing is."""
    value = inside(result.raw) if result.value is None else result.value
    if value.get("resultType") == _INTERIM:
        return None
    if "structuredContent" not in value:
        return _MISSING
    check, structured = (
        compiled(tool.digest + "#out", tool.output_schema),
        value["structuredContent"],
    )
    return None if check.is_valid(structured) else check.report(structured)
