"""A trace as a tree for a terminal: names, durations, what each span is in a run, what failed.

Never shows a control character of a name, and never looks at the terminal: the caller says whether
colour is wanted.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """How the caller wants the tree."""

    color: bool
    whole: bool
    width: int


def render(
    spans: Iterable[SeenSpan], *, color: bool = False, whole: bool = False, width: int = 0
) -> str:
    """Return the traces of `spans`, oldest first, each line ended.

    Neighbours that differ in nothing but their times share a line, which counts them and says the
    shortest and the longest; `whole` gives each span its own. A `width` shortens remarks to it. A
    span whose parent is not here stands as a root of its own.
    """
    by_trace: dict[str, list[SeenSpan]] = {}
    for span in sorted(spans, key=lambda span: (span.start_ns, -span.end_ns)):
        by_trace.setdefault(span.trace_id, []).append(span)
    look = _Look(color=color, whole=whole, width=width)
    return "\n".join(_trace(members, look) for members in by_trace.values())


def _trace(spans: Sequence[SeenSpan], look: _Look) -> str:
    elapsed = max(s.end_ns for s in spans) - min(s.start_ns for s in spans)
    counted = "1 span" if len(spans) == 1 else f"{len(spans)} spans"
    head = f"trace {spans[0].trace_id}  {counted}  {duration(elapsed)}"
    lines = [_line(alike, branch, look) for alike, branch in _walk(spans, look)]
    width = min(max(_width(line.branch + line.text) for line in lines), COLUMN_LIMIT)
    rows = [_row(line, width, look) for line in lines]
    return "\n".join([_paint(head, _FAINT) if look.color else head, *rows]) + "\n"


def _walk(spans: Sequence[SeenSpan], look: _Look) -> Iterator[tuple[Sequence[SeenSpan], str]]:
    """Yield every span once, alike ones together, parents before children; survives cycles."""
    children = _children(spans)
    shapes = {} if look.whole else _shapes(spans, children)
    roots = _folded([children.get("", ())], shapes)
    seen: set[int] = set()
    for root in (*roots, *([span] for span in spans)):  # the second part only finds cycles
        stack = [(root, "", "")]
        while stack:
            group, branch, indent = stack.pop()
            alike = [span for span in group if id(span) not in seen]
            if not alike:
                continue
            seen.update(map(id, alike))
            yield alike, branch
            below = _folded([children.get(span.span_id, ()) for span in alike], shapes)
            for position, child in reversed(list(enumerate(below, start=1))):
                last = position == len(below)
                stack.append((
                    child,
                    indent + ("└─ " if last else "├─ "),
                    indent + ("   " if last else "│  "),
                ))


def _children(spans: Sequence[SeenSpan]) -> dict[str, list[SeenSpan]]:
    here = {span.span_id for span in spans}
    children: dict[str, list[SeenSpan]] = {}
    for span in spans:
        parent = span.parent_id if span.parent_id in here else ""
        children.setdefault(parent, []).append(span)
    return children


def _shapes(
    spans: Sequence[SeenSpan], children: Mapping[str, Sequence[SeenSpan]]
) -> dict[int, int]:
    """Return a number for each span (by `id`): equal ones look alike, all below too."""
    order: list[SeenSpan] = [*children.get("", ())]
    known = set(map(id, order))
    for span in order:  # grows as it goes, parents before children
        below = [child for child in children.get(span.span_id, ()) if id(child) not in known]
        known.update(map(id, below))
        order += below
    numbers: dict[object, int] = {}
    shapes: dict[int, int] = {}
    for span in reversed(order):
        inner = tuple(shapes.get(id(child)) for child in children.get(span.span_id, ()))
        shape = (_text(span), _remark(span), inner)
        shapes[id(span)] = numbers.setdefault(shape, len(numbers))
    return shapes


def _folded(
    families: Sequence[Sequence[SeenSpan]], shapes: Mapping[int, int]
) -> list[list[SeenSpan]]:
    """Return the children of alike parents in groups of alike neighbours."""
    groups: list[list[SeenSpan]] = []
    last: int | None = None
    for siblings in zip(*families, strict=False):
        shape = shapes.get(id(siblings[0]))
        if shape is not None and shape == last:
            groups[-1] += siblings
        else:
            groups.append([*siblings])
        last = shape
    return groups


def _line(alike: Sequence[SeenSpan], branch: str, look: _Look) -> _Line:
    span = alike[0]
    kind = str(span.attributes.get(names.KIND, ""))
    return _Line(
        branch=branch,
        text=_text(span) + (f" ×{len(alike)}" if len(alike) > 1 else ""),
        duration=_range([one.end_ns - one.start_ns for one in alike]),
        remark=_remark(span, whole=look.whole),
        colour=_ERROR if span.status == "error" else _COLOURS.get(kind, ""),
    )


def _range(times: Sequence[int]) -> str:
    least, most = duration(min(times)), duration(max(times))
    if least == most:
        return most
    number, _, unit = least.partition(" ")
    return f"{number}–{most}" if most.partition(" ")[2] == unit else f"{least}–{most}"


def _text(span: SeenSpan) -> str:
    mark = _MARKS.get(str(span.attributes.get(names.KIND, "")), "")
    text = f"{mark} {clean(span.name)}" if mark else clean(span.name)
    if span.kind in {"server", "client"}:
        text += f" [{span.kind}]"
    return _cut(text, NAME_LIMIT)


def _remark(span: SeenSpan, *, whole: bool = False) -> str:
    attributes = span.attributes
    reason = attributes.get(names.ERROR_TYPE)
    said = [f"✗ {clean(str(reason or 'error'))}" if span.status == "error" or reason else ""]
    if span.status == "error" and span.description and span.description != reason:
        said.append(clean(span.description))
    for name, label in (
        (names.SERVER, "server "),
        (names.ATTEMPT, "attempt "),
        (names.VALIDATION, ""),
        (names.STOP_REASON, ""),
    ):
        value = attributes.get(name)
        usual = (name == names.ATTEMPT and value == 1) or (not whole and value == "skipped")
        if value not in {None, ""} and not usual:
            said.append(label + clean(str(value)))
    return _cut("  ".join(filter(None, said)), REASON_LIMIT)


def _row(line: _Line, width: int, look: _Look) -> str:
    gap = " " * (width - _width(line.branch + line.text))
    plain = f"{line.branch}{line.text}{gap}  {line.duration:>8}"
    remark = line.remark
    if look.width:
        remark = _cut(remark, max(look.width - _width(plain) - 2, 1)) if remark else ""
    if not look.color:
        return f"{plain}  {remark}".rstrip()
    text = _paint(line.text, line.colour) if line.colour else line.text
    tail = _paint(f"{line.duration:>8}", _FAINT)
    return f"{_paint(line.branch, _FAINT)}{text}{gap}  {tail}  {remark}".rstrip()


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
