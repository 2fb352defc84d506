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
_WIDTH = 150


@dataclass(slots=True)
class Screen:
    """The terminal."""

    color: bool
    seen: dict[StepKind, int] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def heading(self, text: str) -> None:
        """Begin a part."""
        seconds = time.monotonic() - self.began
        print(f"\n{self._painted('1', f'== {text}')} {self._painted('2', f'({seconds:.1f} s)')}")

    def line(self, text: str) -> None:
        """Say something."""
        print(f"   {text}", flush=True)

    def step(self, step: Step) -> None:
        """Show a Thought, Action or Observation as it comes."""
        self.seen[step.kind] = self.seen.get(step.kind, 0) + 1
        label = self._painted(_COLOURS.get(step.kind, "2"), f"{step.kind.value:<11}")
        done = step.progress
        counter = f"[{done.done:g}/{done.total:g}] " if done.total else ""
        print(f"   {label} {counter}{_one_line(step.body)}", flush=True)

    def verdict(self, good: bool, text: str) -> None:
        """Say that something holds or does not."""
        mark = self._painted("32", "✓") if good else self._painted("31", "✗")
        print(f"   {mark} {text}", flush=True)

    def _painted(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color else text


def wants_color(no_color: bool) -> bool:
    """Say whether to colour: a terminal, and nobody objects (https://no-color.org)."""
    return sys.stdout.isatty() and not no_color and not os.environ.get("NO_COLOR")


def shortened(tree: str, head: int = 46, tail: int = 24) -> str:
    """Return a long tree without its middle."""
    lines = tree.rstrip("\n").split("\n")
    if len(lines) <= head + tail + 1:
        return "\n".join(lines)
    left_out = len(lines) - head - tail
    return "\n".join([*lines[:head], f"  … {left_out} more lines …", *lines[-tail:]])


def _one_line(text: str) -> str:
    flat = "".join(c if c.isprintable() else " " for c in text)
    return flat if len(flat) <= _WIDTH else flat[: _WIDTH - 1] + "…"
