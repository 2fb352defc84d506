"""A model that is a program: it computes its replies from what it is sent, observations included.

Never holds a canned reply: another set of log files makes it plan the same and find other things.
"""

import json
import re

from thoughtgate.core.json import JsonObject, JsonValue

_DATA = re.compile(r"<data (\w+)>\n(.*?)\n</data \1>", re.DOTALL)
_STEP = re.compile(r"^Current step: (\w+)$", re.MULTILINE)
_FOUND = re.compile(r"^Found by (\w+):\n<data (\w+)>\n(.*?)\n</data \2>", re.MULTILINE | re.DOTALL)

PLAN: JsonObject = {
    "steps": [
        {"id": "find", "goal": "find the log files", "tool": "logs__find", "arguments": {}},
        {
            "id": "classify",
            "goal": "classify the errors of every file",
            "tool": "logs__classify",
            "each": {"$from": "find#/structuredContent/files"},
            "arguments": {"path": {"$item": ""}},
        },
        {
            "id": "count",
            "goal": "count the errors by type",
            "tool": "logs__count",
            "depends_on": ["classify"],
        },
        {
            "id": "send",
            "goal": "send the counts",
            "tool": "logs__send",
            "depends_on": ["count"],
        },
    ]
}


def think(request: JsonObject) -> str:
    """Return the reply to one request of a run in text form."""
    system, first, *later = [str(message["content"]) for message in request["messages"]]
    if "You plan a task" in system:
        return f"<think>Which tools are there?</think>\n```json\n{json.dumps(PLAN)}\n```"
    found = {step: text for step, _, text in _FOUND.findall(first)}
    step = _STEP.search(first)
    if step is None:
        return f"Thought: all is done\nFinal Answer: {_counts(found)}"
    observed = [text for turn in later for _, text in _DATA.findall(turn)]
    if observed:
        return f"Thought: that is done\nFinal Answer: {step[1]} brought {len(observed)} observation"
    if step[1] == "count":
        return _act("logs__count", {"types": _types(found["classify"])})
    return _act("logs__send", {"text": _counts(found)})


def _types(text: str) -> list[str]:
    return [one for line in text.splitlines() for one in json.loads(line)["types"]]


def _counts(found: JsonObject) -> str:
    lines = [line for line in found["count"].splitlines() if line.startswith("{")]
    counts: JsonValue = json.loads(lines[-1])["counts"]
    return ", ".join(f"{name} {counts[name]}" for name in sorted(counts))


def _act(tool: str, arguments: JsonObject) -> str:
    """Return an action, followed by an observation that is only imagined."""
    written = (
        "Thought：I have what I need",
        f"Action：{tool}",
        f"Action Input：{json.dumps(arguments, ensure_ascii=False)}",
        'Observation: {"counts": {"imagined": 99}}',
        "Final Answer: imagined 99",
    )
    return "\n".join(written)
