"""Whatever tools, checks and models answer: a run ends, and no write is sent twice."""

import json
import re
from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.play import FIND, READ, SEND, Play, action, answer, bad, judged, ok
from thoughtgate.core.json import JsonValue
from thoughtgate.core.models import ModelRequest
from thoughtgate.engines.contract import (
    EngineTool,
    Finish,
    Invocation,
    Limits,
    Outcome,
    OutcomeStatus,
    Task,
    Validate,
    Verdict,
    VerdictStatus,
)
from thoughtgate.engines.plan import plan_from_json

KEYED = EngineTool(name="k__send", description="", parameters={}, honours_key=True)
TOOLS = (FIND, READ, SEND, KEYED)
WRITES = {SEND.name, KEYED.name}
ARGUMENTS = {FIND.name: "dir", READ.name: "path", SEND.name: "text", KEYED.name: "text"}
CODES = {
    OutcomeStatus.TOOL_ERROR: "tool_error",
    OutcomeStatus.INVALID: "invalid_result",
    OutcomeStatus.UNKNOWN: "upstream_lost",
    OutcomeStatus.NOT_SENT: "upstream_unreachable",
}


class AnyRun:
    """One run in which chance decides; what was sent is counted by tool, text and key."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.steps = [self.step(number) for number in range(chance.randint(1, 6))]
        self.sent: Counter[tuple[str, str, str]] = Counter()

    def step(self, number: int) -> dict[str, JsonValue]:
        tool = self.chance.choice(TOOLS).name
        step: dict[str, JsonValue] = {"id": f"s{number}", "goal": "g", "tool": tool}
        if number and self.chance.random() < 0.5:
            step["depends_on"] = [f"s{self.chance.randrange(number)}"]
        if self.chance.random() < 0.6:
            step["arguments"] = {ARGUMENTS[tool]: self.chance.choice("xy")}
            if self.chance.random() < 0.4:
                step["each"] = self.chance.choices("ab", k=self.chance.randint(0, 4))
                step["arguments"] = {ARGUMENTS[tool]: {"$item": ""}}
        if self.chance.random() < 0.3:
            step["check"] = {"type": "object"}
        return step

    def wanted(self, tool: str, text: str) -> int:
        """Return how many writes of a text there may be: a step's own, or one that was reasoned."""
        steps = [one for one in self.steps if one["tool"] == tool and "arguments" in one]
        own = [one["each"] if "each" in one else [one["arguments"]["text"]] for one in steps]
        reasoned: int = sum(one["tool"] == tool for one in self.steps) - len(steps)
        planned: int = sum(max(texts.count(text), 1) for texts in own)
        return planned + reasoned

    def does(self, call: Invocation) -> Outcome:
        status = self.chance.choice([OutcomeStatus.OK] * 4 + list(OutcomeStatus))
        if call.tool in WRITES and status is not OutcomeStatus.NOT_SENT:
            self.sent[call.tool, call.arguments["text"], call.key] += 1
        return (
            ok({"n": self.chance.randint(0, 3)})
            if status is OutcomeStatus.OK
            else bad(status, CODES[status])
        )

    def judges(self, effect: Validate, value: JsonValue) -> Verdict:
        found, odds = judged(effect, value), self.chance.random()
        if found.status is VerdictStatus.FAILED or odds > 0.5:
            return found
        status = VerdictStatus.FAILED if odds < 0.12 else VerdictStatus.PASSED
        return Verdict(status=status, problems=("odd",) if odds < 0.12 else ())

    def says(self, request: ModelRequest) -> str:
        if request.purpose == "plan":
            return json.dumps({"steps": self.steps})
        named = re.search(r"^Its tool: (\S+)$", request.messages[1].text, re.MULTILINE)
        other = self.chance.choice([*ARGUMENTS, "nope"])
        tool = named[1] if named and self.chance.random() < 0.8 else other
        given = {ARGUMENTS.get(tool, "text"): self.chance.choice("xy")}
        acts = action(tool, json.dumps(given))
        return self.chance.choice([answer("done"), answer("d"), *[acts] * 4, "", "junk {"])


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_any_run_ends_and_sends_no_write_twice(
    seed: int, has_model: bool, given_plan: bool
) -> None:
    chance = Random(seed)
    made = AnyRun(chance)
    if not has_model:
        made.steps = [one for one in made.steps if "arguments" in one] or [
            {"id": "s0", "tool": FIND.name, "arguments": {}}
        ]
        made.steps = [{**one, "depends_on": []} for one in made.steps]
    plan = plan_from_json({"steps": made.steps}) if given_plan or not has_model else None
    task = Task(goal="g", tools=TOOLS, plan=plan, has_model=has_model)
    play = Play(says=iter(lambda: made.says, None), does=made.does, judges=made.judges)
    last = play.run(task, Limits(native_tools=False, max_parallel=chance.randint(1, 4)))

    assert [key for key, times in made.sent.items() if times > 1 and key[0] != KEYED.name] == []
    if isinstance(last, Finish):
        assert {(one.state, one.in_doubt) for one in play.report.values()} == {("completed", False)}
    for one in play.report.values():
        assert one.state in {"completed", "halted", "idle"}
        assert not one.in_doubt or one.state == "halted"
    for tool in WRITES:
        sent = Counter(text for name, text, _ in made.sent if name == tool)
        assert [text for text, count in sent.items() if count > made.wanted(tool, text)] == []
