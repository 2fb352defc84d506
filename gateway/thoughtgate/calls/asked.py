"""What a call asks for, in the words of traces: its method, and the name or URI of its target.

Never holds an argument.
"""

from collections.abc import Mapping
from typing import Final

from thoughtgate.core.calls import Call, ItemName, ToolName
from thoughtgate.core.tools import Kind, Tool
from thoughtgate.telemetry import names
from thoughtgate.wire import methods

_METHODS: Final[Mapping[Kind, str]] = {
    Kind.PROMPT: methods.PROMPTS_GET,
    Kind.RESOURCE: methods.RESOURCES_READ,
    Kind.SUBSCRIBE: methods.SUBSCRIBE,
    Kind.UNSUBSCRIBE: methods.UNSUBSCRIBE,
    Kind.PROMPT_COMPLETION: methods.COMPLETE,
    Kind.RESOURCE_COMPLETION: methods.COMPLETE,
}
_PROMPTS: Final = frozenset({Kind.PROMPT, Kind.PROMPT_COMPLETION})
_NAMES: Final = (ToolName, ItemName)
KEPT: Final = 1024
"""Tools whose attributes are kept between calls, those that were called last."""

_MAX_NAME: Final = 128
_MAX_URI: Final = 512


def name_asked(call: Call) -> str:
    """Return the name that the client used."""
    named = isinstance(call.target, _NAMES)
    return call.target.name if named else call.advertised


def tool_asked(name: str, *, known: bool) -> tuple[str, dict[str, object]]:
    """Return what `asked_for` does for a tool, without what differs from call to call."""
    return names.request_span(names.METHOD_TOOLS_CALL, name if known else ""), {
        names.MCP_METHOD: names.METHOD_TOOLS_CALL,
        names.GEN_AI_OPERATION: names.OPERATION_EXECUTE_TOOL,
        names.GEN_AI_TOOL_NAME: name[:_MAX_NAME],
    }


def asked_for(call: Call, name: str, *, known: bool) -> tuple[str, dict[str, object]]:
    """Return a span's name and the attributes that say what is asked for.

    `name` is the target's, as this side of the gateway knows it. One that nothing has, not `known`,
    would make span names without end, and so would URIs.
    """
    target = call.target
    if isinstance(target, ToolName | Tool):
        title, attributes = tool_asked(name, known=known)
        attributes[names.GEN_AI_TOOL_CALL_ID] = call.id
        return title, attributes
    method = _METHODS.get(target.kind)
    if method is None:  # a method that only its server knows
        method = name[:_MAX_NAME] if known else "unknown"
        return names.request_span(method), {names.MCP_METHOD: method}
    if target.kind in _PROMPTS:
        attributes = {names.MCP_METHOD: method, names.GEN_AI_PROMPT_NAME: name[:_MAX_NAME]}
        return names.request_span(method, name[:_MAX_NAME] if known else ""), attributes
    return names.request_span(method), {
        names.MCP_METHOD: method,
        names.MCP_RESOURCE_URI: name[:_MAX_URI],
    }
