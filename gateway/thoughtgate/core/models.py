"""What is asked of a language model, and what it says.

Never a provider's shape: adapters in `thoughtgate.models` translate.
"""

from dataclasses import dataclass
from enum import StrEnum

from thoughtgate.core.json import JsonObject


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool call that a model wrote. `arguments` is its text, not yet parsed."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn. `uses` only on assistant turns, `use_id` only on tool turns."""

    role: Role
    text: str
    uses: tuple[ToolUse, ...] = ()
    use_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One question. `max_tokens` bounds each reply; `stop` are strings that end it.

    `n` is how many replies are wanted.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    response_schema: JsonObject | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int = 2048
    temperature: float = 0.0
    seed: int | None = None
    purpose: str = "reason"
    n: int = 1


class FinishReason(StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    FILTER = "content_filter"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens; None is unknown, which is not zero.

    `cached_tokens` are those of `input_tokens` that the server had read before.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """One reply. `reasoning` is kept apart from `text`.

    `others` are the further replies where more than one was asked for; `usage` and `cost_micros`
    are for all of them. `cost_micros` are millionths of the currency that prices are given in,
    None for unknown.
    """

    text: str
    uses: tuple[ToolUse, ...] = ()
    reasoning: str = ""
    usage: Usage = Usage()
    finish: FinishReason = FinishReason.UNKNOWN
    model: str = ""
    others: tuple["ModelResponse", ...] = ()
    cost_micros: int | None = None
