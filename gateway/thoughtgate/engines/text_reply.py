"""The text form of a reply: Thought, Action, Action Input, Observation, Final Answer.

Never reads past the first Observation: only the gateway writes observations, so what follows one
in a model's text was imagined.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from thoughtgate.core.json import JsonObject
from thoughtgate.engines.json_text import Unreadable, object_in

THOUGHT, ACTION, INPUT, OBSERVATION, ANSWER = (
    "thought",
    "action",
    "action input",
    "observation",
    "final answer",
)
_LABELS = frozenset({THOUGHT, ACTION, INPUT, OBSERVATION, ANSWER})
_LABEL_ROOM = 40
_MARKS = " \t*_#>`-"
NO_ACTION = frozenset({"", "none", "null", "n/a", "no action", "-"})
_CALL = re.compile(r"([^\s({\[`]{1,200})\s{0,20}\(?\s{0,20}(\{.*)", re.DOTALL)

# A JSON string holds no raw line end, so nothing at the start or end of a line is inside one:
# only there a think mark is a mark, and stripping never touches a tool's arguments.
_THINK = re.compile(
    r"^[ \t]*(?:[*_]{0,2}thought[*_]{0,2}[ \t]*[:：][*_]{0,2}[ \t]*)?"
    r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_ORPHAN = re.compile(
    r"\A.*?(?:^[ \t]*</(?:think|thinking|reasoning)>|</(?:think|thinking|reasoning)>[ \t]*$)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReply:
    """The labelled parts of a reply; None is a label that is absent."""

    thought: str = ""
    action: str | None = None
    action_input: str | None = None
    answer: str | None = None
    labelled: bool = False


def without_thinking(text: str) -> str:
    """Return `text` without its think spans, one that was never closed and one never opened."""
    text = _THINK.sub("", text.replace("\r\n", "\n"))
    return _ORPHAN.sub("", text, count=1) if "</" in text else text


def split(text: str) -> TextReply:
    """Return the labelled parts of `text`, up to the first Observation; first of each kind."""
    parts: dict[str, str] = {}
    lead = ""
    for label, body in _sections(text):
        if label == OBSERVATION:
            break
        if not label:
            lead = body.strip()
        elif label == ACTION and ACTION in parts:
            break
        else:
            parts.setdefault(label, body.strip())
    return TextReply(
        thought=parts.get(THOUGHT, lead),
        action=parts.get(ACTION),
        action_input=parts.get(INPUT),
        answer=parts.get(ANSWER),
        labelled=bool(parts),
    )


def action_of(reply: TextReply) -> tuple[str, JsonObject] | None:
    """Return the tool and arguments that a reply asks for, None when it asks for none.

    Raises:
        Unreadable: It asks for a tool, but its arguments are not a JSON object.
    """
    if reply.action is None:
        return None
    name, inline = _name_of(reply.action)
    if name.casefold() in NO_ACTION:
        return None
    given = inline if reply.action_input is None else reply.action_input
    if not given:
        raise Unreadable(why=f"Action {name[:80]} has no Action Input; write {{}} for no arguments")
    return name, object_in(given)


def _name_of(action: str) -> tuple[str, str]:
    """Return the tool's name and what stood behind it: `name`, `name({…})` or name, then JSON."""
    match = _CALL.match(action)
    if match:
        return match[1].strip("`*:"), match[2]
    first, _, rest = action.partition("\n")
    return first.strip(" \t`*\"'").removesuffix("()"), rest.strip()


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield each label with the text up to the next one; the text before any label has none."""
    label, body = "", list[str]()
    for line in text.split("\n"):  # not splitlines: U+2028 may stand inside a JSON string
        found = _label(line)
        if found is None:
            body.append(line)
            continue
        yield label, "\n".join(body)
        label, body = found[0], [found[1]]
    yield label, "\n".join(body)


def _label(line: str) -> tuple[str, str] | None:
    """Return the label that a line starts with and the rest of the line."""
    for at, here in enumerate(line[:_LABEL_ROOM]):
        if here == ":" or unicodedata.normalize("NFKC", here) == ":":
            word = unicodedata.normalize("NFKC", line[:at]).strip(_MARKS)
            word = " ".join(word.split()).casefold().replace("_", " ")
            if word not in _LABELS:
                return None
            return word, line[at + 1 :].lstrip("*_")
    return None
