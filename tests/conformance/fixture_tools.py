"""The tools of the fixture server, one per thing that the official suite wants to see.

Never keeps state beyond the lists that two of the tools change on purpose.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ToolsListChanged,
)

from tests.conformance import samples
from tests.conformance.asking import (
    Answers,
    Context,
    Stage,
    asked,
    declared,
    elicitation,
    modern,
    require,
    roots,
    sampling,
)
from tests.conformance.task_tools import COMPUTES, Behave, Reply, TaskTools
from tests.conformance.tasks import Tasks

PAUSE: Final = 0.05
"""Seconds between the steps of a tool that tells of its work."""

APPEARS: Final = "appears_and_goes"
"""Name of the tool and of the prompt that the two triggers add and take away."""


@dataclass(slots=True)
class Lists:
    """What changes: whether the extra tool and the extra prompt are there, and who is told."""

    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    extra_tool: bool = False
    extra_prompt: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One tool: what is listed, and what a call does."""

    definition: types.Tool
    behave: Behave


def table(lists: Lists, tasks: Tasks) -> Mapping[str, Act]:
    """Return all tools by name, in the order of the list.

    The first one takes no arguments: the suite calls it with none.
    """
    acts = (*_plain(), *_telling(), *_asking(), *_changing(lists), *_schemas(), *_long(tasks))
    return {act.definition.name: act for act in acts}


def extra_tool() -> types.Tool:
    """Return the tool that comes and goes."""
    return types.Tool(name=APPEARS, description="Comes and goes.", input_schema=samples.OPEN)


def _act(name: str, description: str, behave: Behave, schema: dict[str, Any] = samples.OPEN) -> Act:
    listed = types.Tool(name=name, description=description, input_schema=schema)
    return Act(definition=listed, behave=behave)


def _saying(*blocks: types.ContentBlock, is_error: bool = False) -> Behave:
    async def say(context: Context, params: types.CallToolRequestParams) -> Reply:
        return types.CallToolResult(content=list(blocks), is_error=is_error)

    return say


def _plain() -> tuple[Act, ...]:
    simple = samples.text("This is a simple text response for testing.")
    inside = samples.embedded("test://embedded-resource", "This is an embedded resource content.")
    mixed = samples.embedded(
        "test://mixed-content-resource", '{"test":"data","value":123}', "application/json"
    )
    several = (samples.text("Multiple content types test:"), samples.image(), mixed)
    failure = samples.text("This tool intentionally returns an error for testing")
    return (
        _act("test_simple_text", "Returns text.", _saying(simple)),
        _act("test_image_content", "Returns a picture.", _saying(samples.image())),
        _act("test_audio_content", "Returns a sound.", _saying(samples.audio())),
        _act("test_embedded_resource", "Returns a resource.", _saying(inside)),
        _act("test_multiple_content_types", "Returns text, picture, resource.", _saying(*several)),
        _act("test_error_handling", "Fails.", _saying(failure, is_error=True)),
    )


def _telling() -> tuple[Act, ...]:
    return (
        _act("test_tool_with_logging", "Logs three times.", _logs),
        _act("test_logging_tool", "Logs three times.", _logs),
        _act("test_tool_with_progress", "Reports progress.", _progresses),
        _act("test_reconnection", "Closes its stream in the middle of the call.", _reconnects),
    )


async def _pause() -> None:
    """Take the time that the suite wants between two things."""
    with anyio.move_on_after(PAUSE):
        await anyio.sleep_forever()


async def _logs(context: Context, params: types.CallToolRequestParams) -> Reply:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # logging is deprecated, and served nevertheless
            await context.session.send_log_message(
                "info", words, related_request_id=context.request_id
            )
        await _pause()
    return types.CallToolResult(content=[samples.text("logged three times")])


async def _progresses(context: Context, params: types.CallToolRequestParams) -> Reply:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
        await _pause()
    return types.CallToolResult(content=[samples.text("went all the way")])


async def _reconnects(context: Context, params: types.CallToolRequestParams) -> Reply:
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
        await _pause()
    return types.CallToolResult(content=[samples.text("Reconnection test completed")])


def _asks(*stages: Stage, stateful: bool = False) -> Behave:
    async def ask(context: Context, params: types.CallToolRequestParams) -> Reply:
        answers = await asked(context, params, stages, stateful=stateful)
        return _told(answers)

    return ask


def _told(answers: Answers | types.InputRequiredResult) -> Reply:
    if isinstance(answers, types.InputRequiredResult):
        return answers
    words = [f"{key}: {answer.model_dump_json(by_alias=True)}" for key, answer in answers.items()]
    return types.CallToolResult(content=[samples.text("state-ok " + "; ".join(words))])


def _asking() -> tuple[Act, ...]:
    name = elicitation("What is your name?", samples.form("name"))
    confirm = elicitation("Please confirm", samples.form("ok", "boolean"))
    step1 = elicitation("Step 1: What is your name?", samples.form("name"))
    step2 = elicitation("Step 2: What is your favorite color?", samples.form("color"))
    capital = sampling("What is the capital of France?")
    three: Stage = {
        "user_name": name,
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": roots(),
    }
    prefix = "test_input_required_result"
    rounds: dict[str, Behave] = {
        "elicitation": _asks({"user_name": name}),
        "sampling": _asks({"capital_question": capital}),
        "list_roots": _asks({"client_roots": roots()}),
        "request_state": _asks({"confirm": confirm}, stateful=True),
        "multiple_inputs": _asks(three, stateful=True),
        "multi_round": _asks({"step1": step1}, {"step2": step2}, stateful=True),
        "tampered_state": _asks({"confirm": confirm}, stateful=True),
        "capabilities": _asks_what_it_may,
    }
    forms = {"test_elicitation_sep1034_defaults": samples.DEFAULTS}
    forms["test_elicitation_sep1330_enums"] = samples.CHOICES
    return (
        _act("test_sampling", "Asks for a model's words.", _samples, samples.form("prompt")),
        _act("test_elicitation", "Asks the user.", _elicits, samples.form("message")),
        *(
            _act(each, "Asks the user.", _asks({"form": elicitation("Please fill in", schema)}))
            for each, schema in forms.items()
        ),
        _act("test_missing_capability", "Needs sampling.", _needs_sampling),
        _act("test_streaming_elicitation", "Asks the user.", _asks({"user_name": name})),
        *(_act(f"{prefix}_{end}", "Asks the client.", each) for end, each in rounds.items()),
    )


async def _samples(context: Context, params: types.CallToolRequestParams) -> Reply:
    prompt = str((params.arguments or {}).get("prompt"))
    return _told(await asked(context, params, [{"words": sampling(prompt)}], stateful=False))


async def _elicits(context: Context, params: types.CallToolRequestParams) -> Reply:
    message = str((params.arguments or {}).get("message"))
    schema = {
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    }
    stage = {"user": elicitation(message, schema)}
    return _told(await asked(context, params, [stage], stateful=False))


async def _needs_sampling(context: Context, params: types.CallToolRequestParams) -> Reply:
    require(context, "sampling/createMessage")
    return types.CallToolResult(content=[samples.text("sampling is declared")])


async def _asks_what_it_may(context: Context, params: types.CallToolRequestParams) -> Reply:
    wanted: dict[str, types.InputRequest] = {
        "words": sampling("Say something"),
        "confirm": elicitation("Please confirm", samples.form("ok", "boolean")),
    }
    stage = {key: each for key, each in wanted.items() if declared(context, each.method)}
    return _told(await asked(context, params, [stage], stateful=False) if stage else {})


def _changing(lists: Lists) -> tuple[Act, ...]:
    async def change_tools(context: Context, params: types.CallToolRequestParams) -> Reply:
        lists.extra_tool = not lists.extra_tool
        await lists.bus.publish(ToolsListChanged())
        if not modern(context):
            await context.session.send_tool_list_changed()
        return types.CallToolResult(content=[samples.text("the tools changed")])

    async def change_prompts(context: Context, params: types.CallToolRequestParams) -> Reply:
        lists.extra_prompt = not lists.extra_prompt
        await lists.bus.publish(PromptsListChanged())
        if not modern(context):
            await context.session.send_prompt_list_changed()
        return types.CallToolResult(content=[samples.text("the prompts changed")])

    return (
        _act("test_trigger_tool_change", "Changes the list of tools.", change_tools),
        _act("test_trigger_prompt_change", "Changes the list of prompts.", change_prompts),
    )


def _schemas() -> tuple[Act, ...]:
    mirrored = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    }
    heard = _saying(samples.text("heard"))
    return (
        _act("json_schema_2020_12_tool", "Has a rich input schema.", heard, samples.RICH),
        _act("test_mirrored_header", "Has an argument that is a header too.", heard, mirrored),
    )


def _long(tasks: Tasks) -> tuple[Act, ...]:
    tools = TaskTools(tasks)
    return (
        _act("greet", "Greets.", tools.greet, samples.form("name")),
        _act("slow_compute", "Takes its time.", tools.slow_compute, COMPUTES),
        _act("failing_job", "Fails as a tool.", tools.failing_job),
        _act("protocol_error_job", "Fails as a protocol.", tools.protocol_error_job),
        _act("confirm_delete", "Asks once.", tools.confirm_delete, samples.form("filename")),
        _act("multi_input", "Asks for two things.", tools.multi_input),
        _act("test_tool_with_task", "Asks, then works.", tools.test_tool_with_task),
    )
