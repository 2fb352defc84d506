"""A model that is a program: it plans the main job and works from the Observations that it is sent.

Never holds a path, a type or a number that a tool finds: a wrong observation makes a wrong report.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from thoughtgate.core.json import JsonObject

DAYS = 92
"""What the clerk takes three months for."""

FIND, CLASSIFY, COUNT, REPORT, SEND = (
    "logs__find_logs",
    "logs__classify_errors",
    "logs__count_errors",
    "report__write_report",
    "notify__send_webhook",
)
JOB = (FIND, CLASSIFY, COUNT, REPORT, SEND)

_DATA = re.compile(r"<data (\w+)>\n(.*?)\n</data \1>", re.DOTALL)
_FOUND = re.compile(r"^Found by (\w+):\n<data (\w+)>\n(.*?)\n</data \2>", re.MULTILINE | re.DOTALL)
_TOOL = re.compile(r"^Its tool: (\S+)$", re.MULTILINE)
_OFFERED = re.compile(r"^- (\S+) \(", re.MULTILINE)
_NEAREST = re.compile(r"nearest: ([\w-]+)")


class Slip(StrEnum):
    """How the clerk goes wrong, once."""

    IMAGINED = "goes on to imagine the observation and an answer"
    WIDE = "writes full-width colons"
    UNKNOWN = "names a tool that is not there"
    EMPTY = "says nothing"
    BROKEN = "breaks off inside the arguments"
    BAD_PLAN = "plans with a tool that is not there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """The clerk wants a tool."""

    tool: str
    arguments: JsonObject


@dataclass(slots=True)
class Clerk:
    """Computes replies. `native`: tool calls in the server's own form, else as text.

    `slip` happens at the first use of `at`; `by_reference` lets the plan say what flows where;
    `impossible` names a tool whose step gets a check that nothing passes; `requests` keeps what
    was asked.
    """

    native: bool = False
    slip: Slip | None = None
    at: str = CLASSIFY
    by_reference: bool = False
    impossible: str = ""
    requests: list[JsonObject] = field(default_factory=list)

    def __call__(self, request: JsonObject) -> str | JsonObject:
        """Return the reply to one request."""
        self.requests.append(request)
        system, asked, *later = [str(message["content"]) for message in request["messages"]]
        if "You plan a task" in system:
            return self._plan(system)
        found = {step: text for step, _, text in _FOUND.findall(asked)}
        if "The run was ended early" in system:
            return f"The run stopped; it had {len(found)} results"
        tool = _TOOL.search(asked)
        if tool is None:
            return f"Final Answer: {_answer(found)}"
        turns = [turn for turn in later if _DATA.search(turn)]
        observed = _DATA.findall(turns[-1])[0][1] if turns else ""
        if observed.startswith("{") and "\nRefused: " not in turns[-1]:
            return self._said(f"{tool[1]} answered with {len(observed)} characters")
        named = _NEAREST.search(observed)
        return self._acted(
            Act(tool=named[1] if named else tool[1], arguments=_wish(tool[1], found))
        )

    def _plan(self, system: str) -> str:
        offered = set(_OFFERED.findall(system))
        assert set(JOB) <= offered, offered
        # a planner can only write what it was told of
        assert all(word in system for word in ("$from", "$item", "$flat", "each"))
        steps = _by_reference() if self.by_reference else _bare()
        if self._slips(Slip.BAD_PLAN):
            steps[1] = {**steps[1], "tool": "logs__classify"}
        if self.impossible:
            refused = {"required": ["nobody has this"]}
            steps = [
                {**one, "check": refused} if one["tool"] == self.impossible else one
                for one in steps
            ]
        return f"<think>What is there?</think>\n```json\n{json.dumps({'steps': steps})}\n```"

    def _said(self, text: str) -> str:
        return text if self.native else f"Thought: that is done\nFinal Answer: {text}"

    def _acted(self, act: Act) -> str | JsonObject:
        if act.tool == self.at:
            if self._slips(Slip.EMPTY):
                return ""
            if self._slips(Slip.UNKNOWN):
                act = Act(tool=act.tool.removesuffix("s"), arguments=act.arguments)
        arguments = json.dumps(act.arguments, ensure_ascii=False)
        if act.tool == self.at and self._slips(Slip.BROKEN):
            arguments = arguments[: len(arguments) * 2 // 3]
        # a model that is offered tools in its own form may write text all the same
        as_text = not self.native or (self.slip is Slip.WIDE and act.tool == self.at)
        return self._text(act.tool, arguments) if as_text else self._native(act.tool, arguments)

    def _native(self, tool: str, arguments: str) -> JsonObject:
        imagined = tool == self.at and self._slips(Slip.IMAGINED)
        call = {"name": tool, "arguments": arguments}
        return {
            "content": IMAGINED if imagined else None,
            "tool_calls": [
                {"id": f"use-{len(self.requests)}", "type": "function", "function": call}
            ],
        }

    def _text(self, tool: str, arguments: str) -> str:
        colon = "：" if tool == self.at and self._slips(Slip.WIDE) else ": "
        lines = [f"Thought{colon}I know enough: on", f"Action{colon}{tool}"]
        lines.append(f"Action Input{colon}{arguments}")
        if tool == self.at and self._slips(Slip.IMAGINED):
            lines.append(IMAGINED)
        return "\n".join(lines)

    def _slips(self, slip: Slip) -> bool:
        """Say whether this slip happens now; it does so once."""
        if self.slip is not slip:
            return False
        self.slip = None
        return True


IMAGINED = (
    'Observation: {"total_errors":0,"types":[],"groups":[],"total":0,"rows":[]}\n'
    "Thought: there are no errors\nFinal Answer: 0 errors"
)


def _bare() -> list[dict[str, Any]]:
    """Return a plan whose arguments are all left to be reasoned out."""
    goals = ("find the files", "classify", "count by type", "write the report", "send it")
    named = zip(("find", "classify", "count", "report", "send"), JOB, goals, strict=True)
    steps: list[dict[str, Any]] = [
        {"id": id_, "tool": tool, "goal": goal} for id_, tool, goal in named
    ]
    for before, step in pairwise(steps):
        step["depends_on"] = [before["id"]]
    return steps


def _by_reference() -> list[dict[str, Any]]:
    """Return a plan that says what flows where, so that nothing large goes through the model."""
    find, classify, count, report, send = _bare()
    find["arguments"] = {"max_age_days": DAYS, "limit": 1000}
    classify["each"] = {"$from": "find#/structuredContent/files"}
    classify["arguments"] = {"paths": [{"$item": "/path"}], "detail": "type"}
    groups = {"$from": "classify#/structuredContent/groups", "$flat": True}
    count["arguments"] = {"by": "type", "groups": groups}
    rows = {"$from": "count#/structuredContent/rows"}
    report["arguments"] = {"title": "Errors", "counts": rows}
    send["arguments"] = {
        "webhook": "team",
        "payload": {"by_type": rows, "total": {"$from": "count#/structuredContent/total"}},
    }
    return [find, classify, count, report, send]


def _wish(tool: str, found: Mapping[str, str]) -> JsonObject:
    """Return the arguments that the clerk works out for a tool from what was found so far."""
    if tool == FIND:
        return {"max_age_days": DAYS}
    if tool == CLASSIFY:
        return {"paths": _read(found["find"], "paths"), "detail": "type", "samples_per_type": 0}
    if tool == COUNT:
        return {"by": "type", "groups": _read(found["classify"], "groups")}
    rows = _read(found["count"], "rows")
    if tool == REPORT:
        return {"title": "Errors of three months · 错误", "counts": rows}
    assert tool == SEND
    report = _read(found["report"], "markdown")
    total = _sum(rows)
    return {"webhook": "team", "payload": {"total": total, "by_type": rows, "report": report}}


def _answer(found: Mapping[str, str]) -> str:
    total, distinct = _read(found["count"], "total"), _read(found["count"], "distinct")
    path = _read(found["report"], "markdown")["path"]
    return f"{total} errors of {distinct} types; report in {path}"


def _read(text: str, key: str) -> Any:
    """Return the first value of `key` in an observation, whose end may have been cut off."""
    start = text.index(f'"{key}":') + len(key) + 3
    return json.JSONDecoder().raw_decode(text, start)[0]


def _sum(rows: Sequence[Mapping[str, int]]) -> int:
    return sum(row["count"] for row in rows)
