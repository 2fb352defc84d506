"""How the fixture asks its client for input: by a request, or by an `input_required` result.

Never asks for what the client has not declared.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

Context: TypeAlias = ServerRequestContext[Any, Any]
Params: TypeAlias = types.CallToolRequestParams | types.GetPromptRequestParams
Stage: TypeAlias = Mapping[str, types.InputRequest]
Answers: TypeAlias = dict[str, BaseModel]

_RESULTS: dict[str, type[BaseModel]] = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResult,
    "roots/list": types.ListRootsResult,
}
_NEEDS: dict[str, str] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


def elicitation(message: str, schema: dict[str, Any]) -> types.ElicitRequest:
    """Return the request for a form to be filled in."""
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=message, requested_schema=schema)
    )


def sampling(prompt: str, limit: int = 100) -> types.CreateMessageRequest:
    """Return the request for a model's words."""
    words = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[words], max_tokens=limit)
    )


def roots() -> types.ListRootsRequest:
    """Return the request for the client's folders."""
    return types.ListRootsRequest(params=types.RequestParams())


def modern(context: Context) -> bool:
    """Tell whether requests carry everything themselves."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def declared(context: Context, method: str) -> bool:
    """Tell whether the client declared what a request of `method` needs."""
    capabilities = context.session.client_capabilities
    return capabilities is not None and getattr(capabilities, _NEEDS[method]) is not None


def require(context: Context, method: str) -> None:
    """Refuse a call that needs a capability which the client has not declared.

    Raises:
        MCPError: The capability is missing.
    """
    if declared(context, method):
        return
    name = _NEEDS[method]
    raise MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"the call needs the client's {name}",
        {"requiredCapabilities": {name: {}}},
    )


async def asked(
    context: Context, params: Params, stages: Sequence[Stage], *, stateful: bool
) -> Answers | types.InputRequiredResult:
    """Ask stage after stage, and return all answers, or what to answer for now.

    In the stateless era the state counts the stages that were asked; without one there is a
    single stage and the answers alone tell.
    """
    for stage in stages:
        for request in stage.values():
            require(context, request.method)
    if not modern(context):
        return await _by_requests(context, stages)
    given = cast("Answers", params.input_responses or {})
    last = int(params.request_state) - 1 if stateful and params.request_state else 0
    if any(key not in given for key in stages[last]):
        return _required(stages, last, stateful=stateful)
    if last + 1 < len(stages):
        return _required(stages, last + 1, stateful=stateful)
    return {key: given[key] for key in stages[last]}


async def _by_requests(context: Context, stages: Sequence[Stage]) -> Answers:
    answers: Answers = {}
    for stage in stages:
        for key, request in stage.items():
            answers[key] = await context.session.send_request(
                cast("types.ServerRequest", request),
                _RESULTS[request.method],
                metadata=ServerMessageMetadata(related_request_id=context.request_id),
            )
    return answers


def _required(stages: Sequence[Stage], number: int, *, stateful: bool) -> types.InputRequiredResult:
    state = str(number + 1) if stateful else None
    return types.InputRequiredResult(input_requests=dict(stages[number]), request_state=state)
