"""A trace as a tree for a terminal: names, durations, what each span is in a run, what failed.

Never shows a control character of a name, and never looks at the terminal: the caller says whether
colour is wanted.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from thoughtgate.telemetry import names
from thoughtgate.telemetry.otlp import SeenSpan

NAME_LIMIT = 60
REASON_LIMIT = 80
COLUMN_LIMIT = 90
"""Where durations stand at most; deeper lines push their own to the right."""

_MARKS = {
    names.KIND_RUN: "▣",
    names.KIND_PLAN: "☰",
    names.KIND_THOUGHT: "◆",
    names.KIND_ACTION: "▶",
    names.KIND_OBSERVATION: "●",
    names.KIND_ANCHOR: "⚓",
    names.KIND_ANSWER: "★",
    names.KIND_REFLECTION: "↺",
}
_COLOURS = {
    names.KIND_THOUGHT: "36",
    names.KIND_ACTION: "33",
    names.KIND_OBSERVATION: "32",
    names.KIND_RUN: "1",
}
_ERROR = "31"
_FAINT = "2"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    branch: str
    text: str
    duration: str
    remark: str
    colour: str


def render(spans: Iterable[SeenSpan], *, color: bool = False) -> str:
    """Return the traces of `spans`, oldest first, one line per span, each line ended.

    A span whose parent is not here stands as a root of its own.
    """
    by_trace: dict[str, list[SeenSpan]] = {}
    for span in sorted(spans, key=lambda span: (span.start_ns, -span.end_ns)):
        by_trace.setdefault(span.trace_id, []).append(span)
    return "\n".join(_trace(members, color=color) for members in by_trace.values())


def _trace(spans: Sequence[SeenSpan], *, color: bool) -> str:
    elapsed = max(s.end_ns for s in spans) - min(s.start_ns for s in spans)
    counted = "1 span" if len(spans) == 1 else f"{len(spans)} spans"
    head = f"trace {spans[0].trace_id}  {counted}  {duration(elapsed)}"
    lines = [_line(span, branch) for span, branch in _walk(spans)]
    width = min(max(_width(line.branch + line.text) for line in lines), COLUMN_LIMIT)
    rows = [_row(line, width, color=color) for line in lines]
    return "\n".join([_paint(head, _FAINT) if color else head, *rows]) + "\n"


def _walk(spans: Sequence[SeenSpan]) -> Iterator[tuple[SeenSpan, str]]:
    """Yield every span once with its branch lines, parents before children; survives cycles."""
    here = {span.span_id for span in spans}
    children: dict[str, list[SeenSpan]] = {}
    for span in spans:
        parent = span.parent_id if span.parent_id in here else ""
        children.setdefault(parent, []).append(span)
    seen: set[int] = set()
    for root in (*children.get("", ()), *spans):  # the second part only finds cycles
        stack = [(root, "", "")]
        while stack:
            span, branch, indent = stack.pop()
            if id(span) in seen:
                continue
            seen.add(id(span))
            yield span, branch
            below = children.get(span.span_id, ())
            for position, child in reversed(list(enumerate(below, start=1))):
                last = position == len(below)
                stack.append((
                    child,
                    indent + ("└─ " if last else "├─ "),
                    indent + ("   " if last else "│  "),
                ))


def _line(span: SeenSpan, branch: str) -> _Line:
    kind = str(span.attributes.get(names.KIND, ""))
    mark = _MARKS.get(kind, "")
    text = f"{mark} {clean(span.name)}" if mark else clean(span.name)
    if span.kind in {"server", "client"}:
        text += f" [{span.kind}]"
    return _Line(
        branch=branch,
        text=_cut(text, NAME_LIMIT),
        duration=duration(span.end_ns - span.start_ns),
        remark=_remark(span),
        colour=_ERROR if span.status == "error" else _COLOURS.get(kind, ""),
    )


def _remark(span: SeenSpan) -> str:
    attributes = span.attributes
    reason = attributes.get(names.ERROR_TYPE)
    said = [f"✗ {clean(str(reason or 'error'))}" if span.status == "error" or reason else ""]
    if span.status == "error" and span.description and span.description != reason:
        said.append(clean(span.description))
    for name, label in (
        (names.SERVER, "server"),
        (names.ATTEMPT, "attempt"),
        (names.VALIDATION, "validation"),
        (names.STOP_REASON, "stopped by"),
    ):
        value = attributes.get(name)
        if value not in {None, ""} and not (name == names.ATTEMPT and value == 1):
            said.append(f"{label} {clean(str(value))}")
    return _cut("  ".join(filter(None, said)), REASON_LIMIT)


def _row(line: _Line, width: int, *, color: bool) -> str:
    gap = " " * (width - _width(line.branch + line.text))
    if not color:
        return f"{line.branch}{line.text}{gap}  {line.duration:>8}  {line.remark}".rstrip()
    text = _paint(line.text, line.colour) if line.colour else line.text
    tail = _paint(f"{line.duration:>8}", _FAINT)
    return f"{_paint(line.branch, _FAINT)}{text}{gap}  {tail}  {line.remark}".rstrip()


def duration(nanoseconds: int) -> str:
    """Return a time for people: `0.42 ms`, `17 ms`, `2.31 s`, `3 min 05 s`."""
    milliseconds = max(nanoseconds, 0) / 1e6
    if milliseconds < 10:
        return f"{milliseconds:.2f} ms"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.2f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"


def clean(text: str) -> str:
    """Return `text` without what could steer a terminal or hide: one line, printable only."""
    return "".join(char if char.isprintable() else "�" for char in text)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _width(text: str) -> int:
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def _paint(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if text else text
