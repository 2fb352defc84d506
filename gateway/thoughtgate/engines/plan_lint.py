"""What is wrong with a plan before anything was spent on it.

Never stops at the first fault: whoever wrote the plan sees all of them at once.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonValue
from thoughtgate.engines.contract import ByName, EngineTool, Limits, Task
from thoughtgate.engines.names import suggestion
from thoughtgate.engines.plan import Plan, Step
from thoughtgate.engines.plan_pointers import lost_pointers
from thoughtgate.engines.references import (
    INPUTS,
    ReferenceMissed,
    is_stand_in,
    point,
    references,
    uses_item,
)
from thoughtgate.schema.registration import admit


def lint(plan: Plan, task: Task, limits: Limits) -> tuple[str, ...]:
    """Return every reason why `plan` cannot be carried out for `task`; empty when it can."""
    tools = {tool.name: tool for tool in task.tools}
    inputs = {**plan.inputs, **task.inputs}
    reasons = [*plan.faults, *_shape(plan, limits)]
    for step in plan.steps:
        reasons += [f"step {step.id}: {reason}" for reason in _step(step, tools, task.has_model)]
        reasons += [
            f"step {step.id}: {reason}"
            for reason in _references(step.id, [step.arguments, step.each], plan, inputs, tools)
        ]
    reasons += [f"answer: {reason}" for reason in _references("", plan.answer, plan, inputs, tools)]
    reasons += [f"answer_check: {reason}" for reason in _schema(plan.answer_check)]
    if uses_item(plan.answer):
        reasons.append("answer: $item stands only in a step with each")
    return tuple(reasons) or _cycle(plan)


def unknown_inputs(plan: Plan, given: Collection[str]) -> tuple[str, ...]:
    """Return the inputs among `given` that `plan` neither has a default for nor refers to."""
    used = set(plan.inputs)
    sought = [plan.answer, *(value for step in plan.steps for value in (step.arguments, step.each))]
    try:
        found = [one for value in sought for one in references(value) if one.step == INPUTS]
    except ReferenceMissed:  # `lint` says so
        return ()
    for reference in found:
        if not reference.pointer:
            return ()
        name = reference.pointer.split("/", 2)[1]
        used.add(name.replace("~1", "/").replace("~0", "~"))
    return tuple(name for name in given if name not in used)


def _shape(plan: Plan, limits: Limits) -> Iterator[str]:
    if not plan.steps:
        yield "it has no steps"
    if len(plan.steps) > limits.max_steps:
        yield f"it has {len(plan.steps)} steps, more than max_steps = {limits.max_steps}"
    for name, count in Counter(step.id for step in plan.steps).items():
        if count > 1:
            yield f"the id {name} is used {count} times"


def _step(step: Step, tools: ByName, has_model: bool) -> Iterator[str]:
    tool = tools.get(step.tool)
    if step.tool and tool is None:
        yield f"unknown tool {step.tool[:80]}; {suggestion(step.tool, tools)}"
    if step.arguments is None:
        if step.each is not None:
            yield "each needs arguments"
        if not has_model:
            yield "it has no arguments, and no model is configured to find them"
    else:
        if not step.tool:
            yield "arguments need a tool"
        if step.each is None and uses_item(step.arguments):
            yield "$item stands only in a step with each"
        if tool is not None:
            yield from _arguments(step, tool)
    if uses_item(step.each):
        yield "each cannot hold $item"
    elif step.each is not None and not isinstance(step.each, list) and not is_stand_in(step.each):
        yield "each needs a list, or a reference to one"
    yield from _schema(step.check)


def _arguments(step: Step, tool: EngineTool) -> Iterator[str]:
    given = step.arguments or {}
    if is_stand_in(given):
        return
    schema = tool.parameters
    required, properties = schema.get("required"), schema.get("properties")
    for name in required if isinstance(required, list) else ():
        if name not in given:
            yield f"missing input {name} of {tool.name}"
    if schema.get("additionalProperties") is False and isinstance(properties, Mapping):
        for name in given:
            if name not in properties and "patternProperties" not in schema:
                yield f"{tool.name} takes no {name[:40]}; {suggestion(name, properties)}"


def _references(
    step_id: str, value: JsonValue, plan: Plan, inputs: JsonValue, tools: ByName
) -> Iterator[str]:
    try:
        yield from _sources(step_id, value, plan, inputs)
        yield from lost_pointers(value, plan, tools)
    except ReferenceMissed:  # not well formed: one of the plan's faults, told already
        return


def _sources(step_id: str, value: JsonValue, plan: Plan, inputs: JsonValue) -> Iterator[str]:
    known = {step.id for step in plan.steps}
    for reference in references(value):
        if reference.step == INPUTS:
            try:
                point(inputs, reference.pointer, f"inputs#{reference.pointer}")
            except ReferenceMissed as error:
                yield f"missing input: {error}"
        elif reference.step == step_id:
            yield "it refers to itself"
        elif reference.step not in known:
            yield f"reference to unknown step {reference.step[:40]}"
    step = next((one for one in plan.steps if one.id == step_id), None)
    for name in step.depends_on if step else ():
        if name not in known:
            yield f"depends on unknown step {name[:40]}"
        if name == step_id:
            yield "it depends on itself"


def _schema(check: JsonValue) -> Iterator[str]:
    if isinstance(check, Mapping):
        try:
            admit(check, where="check")
        except SchemaRejected as error:
            yield f"the check is not a schema that can be used: {error.message}"


def _cycle(plan: Plan) -> tuple[str, ...]:
    waiting = {step.id: set(step.needs) for step in plan.steps}
    while ready := [name for name, needs in waiting.items() if not needs & waiting.keys()]:
        for name in ready:
            del waiting[name]
    if not waiting:
        return ()
    return (f"these steps wait for each other: {', '.join(waiting)}",)
