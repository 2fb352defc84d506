"""A plan: the steps of a run before any of them was made, and how to read one.

Never looks at tools: whether a plan can be carried out is for `plan_lint`.
"""

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from thoughtgate.core.errors import ConfigError, Malformed
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.engines.references import INPUTS, ReferenceMissed, references
from thoughtgate.wire.strict import parse

MAX_TEXT = 262_144
_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_STEP_KEYS = frozenset({"id", "goal", "tool", "depends_on", "arguments", "each", "check"})
_PLAN_KEYS = frozenset({"goal", "inputs", "steps", "answer", "answer_check"})
_MAX_DEPTH = 48
_KINDS: Mapping[str, tuple[type, ...]] = {"text": (str,), "a list": (list,), "an object": (dict,)}
_STEP_KINDS = {"goal": "text", "tool": "text", "depends_on": "a list", "arguments": "an object"}


class PlanSource(StrEnum):
    """Who made the plan."""

    GIVEN = "given"
    PLANNER = "planner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a plan.

    `tool` is the advertised name of the tool to use, a hint where `arguments` is None: then the
    model reasons. `arguments` and `each` may hold references (see `references`); `check` is a
    JSON Schema that each observation of the step must satisfy, None for no check.
    """

    id: str
    goal: str = ""
    tool: str = ""
    depends_on: tuple[str, ...] = ()
    arguments: JsonObject | None = None
    each: JsonValue = None
    check: JsonObject | bool | None = None

    @property
    def needs(self) -> frozenset[str]:
        """Return the ids of all steps that must be complete first, by name or by reference."""
        named = {one.step for one in references([self.arguments, self.each])}
        return frozenset(named | set(self.depends_on)) - {INPUTS}

    def as_json(self) -> JsonObject:
        """Return the step in the shape that plans are read from."""
        shown = {
            "id": self.id,
            "goal": self.goal,
            "tool": self.tool,
            "depends_on": list(self.depends_on),
            "arguments": self.arguments,
            "each": self.each,
            "check": self.check,
        }
        empty = {"goal": "", "tool": "", "depends_on": []}
        return {
            key: value
            for key, value in shown.items()
            if value is not None and value != empty.get(key)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps in order. `inputs` are defaults; `answer` is made of references, None: told freely.

    `faults` are what is wrong with it as it was written, although it can be read: the lint tells
    them with its own reasons, and such a plan is never carried out.
    """

    steps: tuple[Step, ...]
    goal: str = ""
    inputs: JsonObject = field(default_factory=dict)
    answer: JsonValue = None
    answer_check: JsonObject | bool | None = None
    source: PlanSource = PlanSource.GIVEN
    faults: tuple[str, ...] = ()

    def as_json(self) -> JsonObject:
        """Return the plan in the shape that it is read from."""
        shown: dict[str, JsonValue] = {"steps": [step.as_json() for step in self.steps]}
        shown |= {"goal": self.goal} if self.goal else {}
        shown |= {"inputs": self.inputs} if self.inputs else {}
        for key in ("answer", "answer_check"):
            if (value := getattr(self, key)) is not None:
                shown[key] = value
        return shown


def refused(reasons: list[str] | tuple[str, ...]) -> ConfigError:
    """Return the error that carries every reason why a plan is refused."""
    return ConfigError(
        message=f"the plan is refused: {'; '.join(reasons)}", data={"reasons": list(reasons)}
    )


def plan_from_toml(text: str) -> Plan:
    """Read a plan from TOML: `[[steps]]` tables, and `goal`, `[inputs]`, `answer` beside them.

    Raises:
        ConfigError: It is not TOML or not a plan; `data["reasons"]` lists every reason.
    """
    _fits(text)
    try:
        value = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # an integer of too many digits is a ValueError
        raise refused([f"it is not valid TOML: {str(error)[:200]}"]) from None
    return plan_from_json(value)


def plan_from_text(text: str) -> Plan:
    """Read a plan from JSON text, which begins with a brace, or from TOML.

    Raises:
        ConfigError: It is neither, or not a plan; `data["reasons"]` lists every reason.
    """
    if not text.lstrip().startswith("{"):
        return plan_from_toml(text)
    _fits(text)
    try:
        return plan_from_json(parse(text.encode()))
    except (Malformed, UnicodeEncodeError) as error:
        raise refused([f"it is not valid JSON: {str(error)[:200]}"]) from None


def plan_from_json(value: JsonValue, source: PlanSource = PlanSource.GIVEN) -> Plan:
    """Read a plan from a JSON value; a member that is null is one that is absent.

    Unknown keys and references that are not well formed are `faults` of the plan.

    Raises:
        ConfigError: It is not a plan; `data["reasons"]` lists every reason.
    """
    if not isinstance(value, Mapping):
        raise refused(["it is not an object with steps"])
    if reason := _not_json(value, _MAX_DEPTH):
        raise refused([reason])
    faults = [f"unknown key {key[:40]}" for key in value if key not in _PLAN_KEYS]
    entries = value.get("steps")
    if not isinstance(entries, list):
        raise refused([*faults, "steps is missing or not a list"])
    reasons = _type_reasons("the plan", value, {"goal": "text", "inputs": "an object"})
    reasons += _check_reason("answer_check", value.get("answer_check"))
    for number, entry in enumerate(entries, start=1):
        reasons += _step_reasons(number, entry)
        faults += _step_faults(number, entry)
    faults += _reference_reasons("answer", value.get("answer"))
    if reasons:
        raise refused([*faults, *reasons])
    return Plan(
        steps=tuple(_step(entry) for entry in entries),
        goal=value.get("goal") or "",
        inputs=value.get("inputs") or {},
        answer=value.get("answer"),
        answer_check=value.get("answer_check"),
        source=source,
        faults=tuple(faults),
    )


def _fits(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise refused([f"it is longer than {MAX_TEXT} characters"])


def _step(entry: JsonObject) -> Step:
    return Step(
        id=entry["id"],
        goal=entry.get("goal") or "",
        tool=entry.get("tool") or "",
        depends_on=tuple(entry.get("depends_on") or ()),
        arguments=entry.get("arguments"),
        each=entry.get("each"),
        check=entry.get("check"),
    )


def _step_reasons(number: int, entry: JsonValue) -> list[str]:
    if not isinstance(entry, Mapping):
        return [f"step {number} is not an object"]
    name = entry.get("id")
    if not isinstance(name, str) or not _ID.fullmatch(name) or name == INPUTS:
        return [f"step {number} needs an id of letters, digits, _ and - other than {INPUTS}"]
    where = f"step {name}"
    reasons = _type_reasons(where, entry, _STEP_KINDS)
    if not all(isinstance(one, str) for one in entry.get("depends_on") or ()):
        reasons.append(f"{where}: depends_on holds step ids")
    return reasons + _check_reason(where, entry.get("check"))


def _step_faults(number: int, entry: JsonValue) -> list[str]:
    if not isinstance(entry, Mapping):
        return []
    name = entry.get("id")
    where = f"step {name[:40] if isinstance(name, str) else number}"
    faults = [f"{where}: unknown key {key[:40]}" for key in entry if key not in _STEP_KEYS]
    return faults + _reference_reasons(where, [entry.get("arguments"), entry.get("each")])


def _type_reasons(where: str, value: JsonObject, wanted: Mapping[str, str]) -> list[str]:
    return [
        f"{where}: {key} is not {kind}"
        for key, kind in wanted.items()
        if value.get(key) is not None and not isinstance(value[key], _KINDS[kind])
    ]


def _check_reason(where: str, check: JsonValue) -> list[str]:
    if check is None or isinstance(check, (bool, Mapping)):
        return []
    return [f"{where}: a check is a JSON Schema, an object or true or false"]


def _reference_reasons(where: str, value: JsonValue) -> list[str]:
    try:
        list(references(value))
    except ReferenceMissed as error:
        return [f"{where}: {error}"]
    return []


def _not_json(value: JsonValue, depth: int) -> str:
    """Return why `value` is not JSON (a date from TOML, a NaN, too deep), or an empty string."""
    if depth == 0:
        return "it is nested too deep"
    if isinstance(value, (Mapping, list)):
        members = value.values() if isinstance(value, Mapping) else value
        return next((reason for one in members if (reason := _not_json(one, depth - 1))), "")
    if value is None or isinstance(value, (str, int)):
        return ""
    if isinstance(value, float) and math.isfinite(value):
        return ""
    return f"it holds a {type(value).__name__}, which JSON cannot hold; write it as text"
