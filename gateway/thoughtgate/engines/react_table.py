"""What may follow what in one step of a ReAct run, as one literal table.

Never waits, never decides: it only says whether a move is allowed. The diagram in
docs/explanation/react.md is printed from the table, so picture and code cannot drift.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from thoughtgate.core.errors import OutOfOrder


class Phase(StrEnum):
    """Where one step stands; a run's phase is read off its steps."""

    IDLE = "idle"
    REASONING = "reasoning"
    ACTING = "acting"
    VALIDATING = "validating"
    RETRY = "retry"
    COMPLETED = "completed"
    HALTED = "halted"
    PAUSED = "paused"
    CANCELLED = "cancelled"


TERMINAL = frozenset({Phase.COMPLETED, Phase.HALTED, Phase.CANCELLED})
"""Sinks: nothing follows."""

_ANY_TIME = frozenset({Phase.HALTED, Phase.PAUSED, Phase.CANCELLED})

NEXT: Mapping[Phase, frozenset[Phase]] = {
    Phase.IDLE: _ANY_TIME | {Phase.REASONING},
    Phase.REASONING: _ANY_TIME | {Phase.ACTING, Phase.COMPLETED},
    Phase.ACTING: _ANY_TIME | {Phase.VALIDATING},
    Phase.VALIDATING: _ANY_TIME | {Phase.REASONING, Phase.RETRY},
    Phase.RETRY: _ANY_TIME | {Phase.ACTING, Phase.REASONING},
    Phase.PAUSED: frozenset({Phase.HALTED, Phase.CANCELLED}),  # and the phase it left: see `to`
    Phase.COMPLETED: frozenset(),
    Phase.HALTED: frozenset(),
    Phase.CANCELLED: frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One step's machine. `left` is the phase that a pause interrupted, else None."""

    phase: Phase = Phase.IDLE
    left: Phase | None = None

    def to(self, phase: Phase) -> "Machine":
        """Return the machine after a move.

        Raises:
            OutOfOrder: The table does not allow the move.
        """
        if phase not in NEXT[self.phase] and (self.left is None or phase is not self.left):
            raise OutOfOrder(state=self.phase.value, event=f"move to {phase.value}")
        return Machine(phase=phase, left=self.phase if phase is Phase.PAUSED else None)

    @property
    def ended(self) -> bool:
        """Say whether the step is over."""
        return self.phase in TERMINAL


def run_phase(phases: tuple[Phase, ...]) -> Phase:
    """Return the phase of a run whose steps stand in `phases`.

    The busiest step speaks for the run; a run is completed when all its steps are.
    """
    for phase in (
        Phase.CANCELLED,
        Phase.PAUSED,
        Phase.ACTING,
        Phase.VALIDATING,
        Phase.RETRY,
        Phase.REASONING,
        Phase.HALTED,
    ):
        if phase in phases:
            return phase
    if phases and all(phase is Phase.COMPLETED for phase in phases):
        return Phase.COMPLETED
    return Phase.REASONING if Phase.COMPLETED in phases else Phase.IDLE


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> idle"]
    for phase in Phase:
        lines += [f"    {phase.value} --> {after.value}" for after in Phase if after in NEXT[phase]]
    lines.append("    paused --> idle: or wherever it was")
    lines += [f"    {phase.value} --> [*]" for phase in Phase if phase in TERMINAL]
    return "\n".join(lines) + "\n"
