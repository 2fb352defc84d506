"""The names of spans and attributes, in one place: conventions of others first, then our own.

Never computes a value. The `gen_ai.*` and `mcp.*` names are those of the OpenTelemetry GenAI
conventions (all of them in development; the Python package marks its own constants as
deprecated); `openinference.*` makes Phoenix and MLflow show kinds, inputs and outputs.
"""

from typing import Final

# --- MCP and JSON-RPC ---------------------------------------------------------------------
MCP_METHOD: Final = "mcp.method.name"
MCP_PROTOCOL_VERSION: Final = "mcp.protocol.version"
MCP_SESSION_ID: Final = "mcp.session.id"
JSONRPC_REQUEST_ID: Final = "jsonrpc.request.id"
RPC_STATUS_CODE: Final = "rpc.response.status_code"

# --- gRPC ----------------------------------------------------------------------------------
RPC_SYSTEM: Final = "rpc.system.name"
SYSTEM_GRPC: Final = "grpc"
RPC_METHOD: Final = "rpc.method"
"""With its service: `thoughtgate.gateway.v1.GatewayServer/CallTool`."""

MCP_RESOURCE_URI: Final = "mcp.resource.uri"
METHOD_TOOLS_CALL: Final = "tools/call"

# --- general ------------------------------------------------------------------------------
ERROR_TYPE: Final = "error.type"
ERROR_TOOL: Final = "tool_error"
"""Value of `error.type` when the result says `isError`."""
ERROR_CANCELLED: Final = "cancelled"
"""Value of `error.type` when the caller gave up; the exporter sets it from `cancelled`."""

NETWORK_TRANSPORT: Final = "network.transport"
TRANSPORT_TCP: Final = "tcp"
TRANSPORT_PIPE: Final = "pipe"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

# --- GenAI --------------------------------------------------------------------------------
GEN_AI_OPERATION: Final = "gen_ai.operation.name"
OPERATION_CHAT: Final = "chat"
OPERATION_EXECUTE_TOOL: Final = "execute_tool"
OPERATION_INVOKE_AGENT: Final = "invoke_agent"
OPERATION_PLAN: Final = "plan"

GEN_AI_PROVIDER: Final = "gen_ai.provider.name"
GEN_AI_AGENT_NAME: Final = "gen_ai.agent.name"
GEN_AI_CONVERSATION_ID: Final = "gen_ai.conversation.id"
GEN_AI_PROMPT_NAME: Final = "gen_ai.prompt.name"
GEN_AI_TOOL_NAME: Final = "gen_ai.tool.name"
GEN_AI_TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_TYPE_FUNCTION: Final = "function"
GEN_AI_TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
GEN_AI_TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
"""Only when capture is on; a JSON string."""
GEN_AI_TOOL_RESULT: Final = "gen_ai.tool.call.result"
"""Only when capture is on; a JSON string."""
GEN_AI_REQUEST_MODEL: Final = "gen_ai.request.model"
GEN_AI_REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
GEN_AI_REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
GEN_AI_REQUEST_SEED: Final = "gen_ai.request.seed"
GEN_AI_RESPONSE_MODEL: Final = "gen_ai.response.model"
GEN_AI_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
GEN_AI_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
GEN_AI_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
GEN_AI_INPUT_MESSAGES: Final = "gen_ai.input.messages"
"""Only when capture is on; a JSON string of `[{role, parts}]`."""
GEN_AI_OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
"""Only when capture is on; each message needs a `finish_reason`, else Phoenix drops them."""

# --- OpenInference ------------------------------------------------------------------------
OPENINFERENCE_KIND: Final = "openinference.span.kind"
KIND_AGENT: Final = "AGENT"
KIND_CHAIN: Final = "CHAIN"
KIND_EVALUATOR: Final = "EVALUATOR"
KIND_LLM: Final = "LLM"
KIND_TOOL: Final = "TOOL"
INPUT_VALUE: Final = "input.value"
INPUT_MIME_TYPE: Final = "input.mime_type"
OUTPUT_VALUE: Final = "output.value"
OUTPUT_MIME_TYPE: Final = "output.mime_type"
MIME_JSON: Final = "application/json"
MIME_TEXT: Final = "text/plain"

# --- ours: the call -----------------------------------------------------------------------
DOMAIN: Final = "thoughtgate.domain"
SERVER: Final = "thoughtgate.server"
CALL_DEPTH: Final = "thoughtgate.call.depth"
ORIGIN: Final = "thoughtgate.origin"
"""The face that the call came through: `mcp`, `grpc`, `cli` or `run`."""
TOOL_ADVERTISED: Final = "thoughtgate.tool.advertised"
TOOL_DIGEST: Final = "thoughtgate.tool.digest"
TOOL_EFFECT: Final = "thoughtgate.tool.effect"
CATALOGUE_REVISION: Final = "thoughtgate.catalogue.revision"
NOTES: Final = "thoughtgate.notes"
"""Remarks of our stages, such as `repaired:/x`; a list of strings."""
PRINCIPAL: Final = "thoughtgate.principal"
RESULT_BYTES: Final = "thoughtgate.result.bytes"
REMOTE_UNSAMPLED: Final = "thoughtgate.remote.unsampled"
"""True on a span whose caller's `traceparent` had the sampled flag off; we record all the same."""
TRUNCATED: Final = "thoughtgate.truncated"
"""Names of the attributes whose values the exporter cut; a list of strings."""
REDACTED: Final = "thoughtgate.redacted"
"""Names of the attributes whose values the exporter hid or changed; a list of strings."""

# --- ours: the run ------------------------------------------------------------------------
KIND: Final = "thoughtgate.kind"
"""What a span is in a run: one of the names below."""
KIND_RUN: Final = "run"
KIND_PLAN: Final = "plan"
KIND_THOUGHT: Final = "thought"
KIND_ACTION: Final = "action"
KIND_OBSERVATION: Final = "observation"
KIND_ANCHOR: Final = "anchor"
KIND_ANSWER: Final = "answer"
KIND_REFLECTION: Final = "reflection"

ENGINE: Final = "thoughtgate.engine"
RUN_ID: Final = "thoughtgate.run.id"
RUN_TASK: Final = "thoughtgate.run.task"
"""Only when capture is on."""
STEP_ID: Final = "thoughtgate.step.id"
STEP_GOAL: Final = "thoughtgate.step.goal"
STEP_STATE: Final = "thoughtgate.step.state"
ATTEMPT: Final = "thoughtgate.attempt"
"""Counted from 1."""
EFFECT_ID: Final = "thoughtgate.effect.id"
EACH_INDEX: Final = "thoughtgate.each.index"
STOP_REASON: Final = "thoughtgate.stop_reason"
PARTIAL: Final = "thoughtgate.partial"
THOUGHT_SOURCE: Final = "thoughtgate.thought.source"
SOURCE_MODEL: Final = "model"
SOURCE_PLAN: Final = "plan"
VALIDATION: Final = "thoughtgate.validation"
VALIDATION_PASSED: Final = "passed"
VALIDATION_FAILED: Final = "failed"
VALIDATION_SKIPPED: Final = "skipped"
VALIDATION_PROBLEMS: Final = "thoughtgate.validation.problems"


# --- names of spans -----------------------------------------------------------------------
def tool_call_span(tool: str) -> str:
    """Return the name of the SERVER and CLIENT spans of one call: `tools/call TOOL`."""
    return f"{METHOD_TOOLS_CALL} {tool}"


def request_span(method: str, target: str = "") -> str:
    """Return the name of the spans of another request: its method, and a prompt's name."""
    return f"{method} {target}" if target else method


def execute_tool_span(tool: str) -> str:
    """Return the name of an Action's span."""
    return f"{OPERATION_EXECUTE_TOOL} {tool}"


def chat_span(model: str) -> str:
    """Return the name of the span of one question to a model."""
    return f"{OPERATION_CHAT} {model}" if model else OPERATION_CHAT


def agent_span(engine: str) -> str:
    """Return the name of a run's root span."""
    return f"{OPERATION_INVOKE_AGENT} {engine}"


def plan_span(engine: str) -> str:
    """Return the name of the span of making a plan."""
    return f"{OPERATION_PLAN} {engine}"


def step_span(kind: str, step: str) -> str:
    """Return the name of the span of a Thought or Observation: `thought STEP`."""
    return f"{kind} {step}" if step else kind
