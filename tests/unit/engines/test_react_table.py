"""The table of a step: what may follow what."""

import pytest

from thoughtgate.core.errors import OutOfOrder
from thoughtgate.engines.react_table import NEXT, TERMINAL, Machine, Phase, diagram, run_phase

ANY_TIME = {Phase.HALTED, Phase.PAUSED, Phase.CANCELLED}
FORWARD = {
    Phase.IDLE: {Phase.REASONING},
    Phase.REASONING: {Phase.ACTING, Phase.COMPLETED},
    Phase.ACTING: {Phase.VALIDATING},
    Phase.VALIDATING: {Phase.REASONING, Phase.RETRY},
    Phase.RETRY: {Phase.ACTING, Phase.REASONING},
}


@pytest.mark.parametrize("before", list(Phase))
@pytest.mark.parametrize("after", list(Phase))
def test_a_move_is_allowed_exactly_when_the_table_says_so(before: Phase, after: Phase) -> None:
    allowed = FORWARD.get(before, set()) | (ANY_TIME if before in FORWARD else set())
    if before is Phase.PAUSED:
        allowed = {Phase.HALTED, Phase.CANCELLED}
    machine = Machine(phase=before)
    if after in allowed:
        assert machine.to(after).phase is after
    else:
        with pytest.raises(OutOfOrder):
            machine.to(after)


@pytest.mark.parametrize("phase", sorted(TERMINAL))
def test_nothing_follows_a_terminal_phase(phase: Phase) -> None:
    """A late reply must not revive a step, and a completed one is never halted."""
    assert NEXT[phase] == frozenset()


@pytest.mark.parametrize("left", sorted(FORWARD))
def test_a_paused_step_goes_back_to_the_phase_it_left_and_to_no_other(left: Phase) -> None:
    paused = Machine(phase=left).to(Phase.PAUSED)
    assert paused.to(left) == Machine(phase=left)
    for other in set(FORWARD) - {left}:
        with pytest.raises(OutOfOrder):
            paused.to(other)


@pytest.mark.parametrize(
    ("phases", "whole"),
    [
        ((), Phase.IDLE),
        ((Phase.IDLE, Phase.IDLE), Phase.IDLE),
        ((Phase.COMPLETED, Phase.IDLE), Phase.REASONING),
        ((Phase.COMPLETED, Phase.ACTING), Phase.ACTING),
        ((Phase.HALTED, Phase.VALIDATING), Phase.VALIDATING),
        ((Phase.HALTED, Phase.COMPLETED), Phase.HALTED),
        ((Phase.COMPLETED, Phase.COMPLETED), Phase.COMPLETED),
        ((Phase.CANCELLED, Phase.COMPLETED), Phase.CANCELLED),
        ((Phase.PAUSED, Phase.ACTING), Phase.PAUSED),
    ],
)
def test_the_phase_of_a_run_is_read_off_its_steps(phases: tuple[Phase, ...], whole: Phase) -> None:
    assert run_phase(phases) is whole


def test_the_diagram_shows_every_move_of_the_table_once() -> None:
    lines = diagram().splitlines()
    for before, nexts in NEXT.items():
        for after in nexts:
            assert lines.count(f"    {before.value} --> {after.value}") == 1
