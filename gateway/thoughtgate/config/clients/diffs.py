"""What a change looks like to the one who is asked: a unified diff without secrets.

Never shows a value or a comment that is not the gateway's own.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

CONTEXT = 3
"""Unchanged lines before and after a change."""

WIDEST = 400
"""Characters of a line that are shown."""


def diff(old: str, new: str, label: str) -> Iterator[str]:
    """Yield the lines of a unified diff; both texts are masked by now.

    Only the part where they differ is compared, so that long files cost little.
    """
    before, after = _lines(old), _lines(new)
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    head, tail = max(head - CONTEXT, 0), max(tail - CONTEXT, 0)
    before, after = before[head : len(before) - tail], after[head : len(after) - tail]
    yield f"--- {label}"
    yield f"+++ {label}"
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT):
        (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
        yield f"@@ -{_span(head, a, b)} +{_span(head, c, d)} @@"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from _marked(" ", before[i1:i2])
                continue
            yield from _marked("-", before[i1:i2])
            yield from _marked("+", after[j1:j2])


def _lines(text: str) -> list[str]:
    lines = re.split(r"\r\n|\n|\r", text)
    return lines if lines[-1] else lines[:-1]


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    """Return how many lines both begin with."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(left), len(right)))


def _span(head: int, start: int, end: int) -> str:
    """Return where a piece of a file is, as unified diffs write it."""
    count = end - start
    first = head + start + (count > 0)
    return str(first) if count == 1 else f"{first},{count}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        more = len(line) - WIDEST
        yield f"{mark}{line[:WIDEST]} … {more} more characters" if more > 0 else f"{mark}{line}"
