"""What the library returns: frozen values, nothing of the SDK in them.

Never changed after they were built.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that may be called. `read_only` and `idempotent` are the server's own claims."""

    name: str
    title: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None
    read_only: bool
    idempotent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool returned.

    `text` is its text blocks joined by newlines, `structured` its structured content (None when
    it has none), `content` every content block as JSON, `meta` its `_meta`.
    """

    text: str
    structured: Any
    is_error: bool
    content: tuple[JsonObject, ...]
    meta: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a call is. `total` is None when nobody knows."""

    done: float
    total: float | None
    message: str


class StepKind(StrEnum):
    """What a run reports while it goes on."""

    THOUGHT = "thought"
    ACTION = "action"
    OBSERVATION = "observation"
    PROGRESS = "progress"
    PLAN = "plan"
    VALIDATION = "validation"
    OTHER = "other"


_KIND = re.compile(
    r"\s*(thought|action|observation|progress|plan|validation)\b[ ]*([^:：\n]{0,80})[:：]\s*",
    re.IGNORECASE,
)
_LABEL_NOTES = re.compile(r"( ?\bfailed)?( ?\(attempt \d+\))?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One message of a run, such as `Observation count: 7 errors`.

    `text` is the whole, `kind` and `label` what stands before the colon (the label names the
    plan's step), `body` what stands after it.
    """

    kind: StepKind
    label: str
    text: str
    body: str
    progress: Progress


def step(progress: Progress) -> Step:
    """Read a progress message of a run."""
    found = _KIND.match(progress.message)
    kind = StepKind(found[1].lower()) if found else StepKind.OTHER
    body = progress.message[found.end() :] if found else progress.message
    label = _LABEL_NOTES.sub("", found[2].strip()) if found else ""
    return Step(kind=kind, label=label, text=progress.message, body=body, progress=progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a run ended. `answer` is text or JSON; `partial` says that a limit cut the run short."""

    run_id: str
    status: str
    stop_reason: str
    answer: Any
    partial: bool
    steps: tuple[JsonObject, ...]
    result: ToolResult
