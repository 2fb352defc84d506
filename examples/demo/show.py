"""What the demo prints: headings, steps of the run as they come, verdicts.

Never colours unless the terminal wants it, and never prints a control character that came from a
log.
"""

import os
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from thoughtgate_client import Step, StepKind

_COLOURS = {StepKind.THOUGHT: "36", StepKind.ACTION: "33", StepKind.OBSERVATION: "32"}
_BAR = 30
_ALIKE = 3
"""How many steps of one kind and label are shown; the rest of a fan-out is counted."""


@dataclass(slots=True)
class Screen:
    """The terminal."""

    color: bool
    live: bool
    alike: tuple[StepKind, str] | None = None
    count: int = 0
    began: float = field(default_factory=time.monotonic)
    width: int = field(default_factory=lambda: shutil.get_terminal_size().columns)

    def heading(self, text: str) -> None:
        """Begin a part."""
        seconds = time.monotonic() - self.began
        print(f"\n{self._painted('1', f'== {text}')} {self._painted('2', f'({seconds:.1f} s)')}")

    def line(self, text: str) -> None:
        """Say something."""
        print(f"   {text}", flush=True)

    def paragraph(self, text: str) -> None:
        """Say something long."""
        for line in textwrap.wrap(text, self.width - 3):
            self.line(line)

    def bars(self, counts: Sequence[tuple[str, int]]) -> None:
        """Draw counts, the first of which is the greatest."""
        label = max((_columns(name) for name, _ in counts), default=0)
        for name, count in counts:
            bar = "█" * max(round(_BAR * count / counts[0][1]), 1)
            gap = " " * (label - _columns(name))
            self.line(f"  {name}{gap}  {self._painted('36', bar)} {count}")

    def step(self, step: Step) -> None:
        """Show a Thought, Action or Observation as it comes; progress on a line that passes."""
        if step.kind is StepKind.PROGRESS:
            if self.live:
                print(f"\r\x1b[K   … {self._fitted(step.body, 6)}", end="", flush=True)
            return
        if step.kind in {StepKind.PLAN, StepKind.VALIDATION, StepKind.OTHER}:
            self.settle()
            self._fresh(self._fitted(step.text, 4))
            return
        if self.alike != (step.kind, step.label):
            self.settle()
            self.alike = (step.kind, step.label)
        self.count += 1
        if self.count <= _ALIKE:
            kind = self._painted(_COLOURS.get(step.kind, "2"), f"{step.kind.value:<11}")
            body = self._fitted(step.body, 17 + max(len(step.label), 12))
            self._fresh(f"{kind} {step.label:<12} {body}")

    def settle(self) -> None:
        """Say how many steps like the last were not shown."""
        if self.count > _ALIKE and self.alike:
            kind, label = self.alike
            self._fresh(f"{'':<11} {label:<12} … and {self.count - _ALIKE} more {kind.value}s")
        self.alike, self.count = None, 0

    def _fresh(self, text: str) -> None:
        print(f"{chr(13) + chr(27) + '[K' if self.live else ''}   {text}", flush=True)

    def verdict(self, good: bool, text: str) -> None:
        """Say that something holds or does not."""
        mark = self._painted("32", "✓") if good else self._painted("31", "✗")
        print(f"   {mark} {text}", flush=True)

    def _fitted(self, text: str, taken: int) -> str:
        """Return `text` as one line, cut to what the terminal has left of a line."""
        flat = "".join(c if c.isprintable() else " " for c in text)
        room = max(self.width - taken, 10)
        if _columns(flat) <= room:
            return flat
        flat = flat[:room]
        while _columns(flat) >= room:
            flat = flat[:-1]
        return flat + "…"

    def _painted(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color else text


def wants_color(no_color: bool) -> bool:
    """Say whether to colour: a terminal, and nobody objects (https://no-color.org)."""
    return sys.stdout.isatty() and not no_color and not os.environ.get("NO_COLOR")


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
