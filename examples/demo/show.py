"""What the demo prints: headings, steps of the run as they come, verdicts.

Never colours unless the terminal wants it, and never prints a control character that came from a
log.
"""

import os
import sys
import time
from dataclasses import dataclass, field

from thoughtgate_client import Step, StepKind

_COLOURS = {StepKind.THOUGHT: "36", StepKind.ACTION: "33", StepKind.OBSERVATION: "32"}
_WIDTH = 130
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

    def heading(self, text: str) -> None:
        """Begin a part."""
        seconds = time.monotonic() - self.began
        print(f"\n{self._painted('1', f'== {text}')} {self._painted('2', f'({seconds:.1f} s)')}")

    def line(self, text: str) -> None:
        """Say something."""
        print(f"   {text}", flush=True)

    def step(self, step: Step) -> None:
        """Show a Thought, Action or Observation as it comes; progress on a line that passes."""
        if step.kind is StepKind.PROGRESS:
            if self.live:
                print(f"\r\x1b[K   … {_one_line(step.body)}", end="", flush=True)
            return
        if step.kind in {StepKind.PLAN, StepKind.VALIDATION, StepKind.OTHER}:
            self.settle()
            self._fresh(_one_line(step.text))
            return
        if self.alike != (step.kind, step.label):
            self.settle()
            self.alike = (step.kind, step.label)
        self.count += 1
        if self.count <= _ALIKE:
            kind = self._painted(_COLOURS.get(step.kind, "2"), f"{step.kind.value:<11}")
            self._fresh(f"{kind} {step.label:<12} {_one_line(step.body)}")

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

    def _painted(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color else text


def wants_color(no_color: bool) -> bool:
    """Say whether to colour: a terminal, and nobody objects (https://no-color.org)."""
    return sys.stdout.isatty() and not no_color and not os.environ.get("NO_COLOR")


def shortened(tree: str, head: int = 24, tail: int = 32) -> str:
    """Return a long tree without its middle."""
    lines = tree.rstrip("\n").split("\n")
    if len(lines) <= head + tail + 1:
        return "\n".join(lines)
    left_out = len(lines) - head - tail
    return "\n".join([*lines[:head], f"  … {left_out} more lines …", *lines[-tail:]])


def _one_line(text: str) -> str:
    flat = "".join(c if c.isprintable() else " " for c in text)
    return flat if len(flat) <= _WIDTH else flat[: _WIDTH - 1] + "…"
