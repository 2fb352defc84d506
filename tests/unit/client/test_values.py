"""What a run's progress messages say."""

import pytest

from thoughtgate_client import Progress, StepKind
from thoughtgate_client.values import step


@pytest.mark.parametrize(
    ("message", "kind", "label", "body"),
    [
        ("Thought find: look for files", StepKind.THOUGHT, "find", "look for files"),
        ("Action find (attempt 2): logs__find", StepKind.ACTION, "find", "logs__find"),
        ("Validation find failed (attempt 2): no", StepKind.VALIDATION, "find", "no"),
        ("Validation failed: no", StepKind.VALIDATION, "", "no"),
        ('Observation: {"a": 1}', StepKind.OBSERVATION, "", '{"a": 1}'),
        ("thought：想一想", StepKind.THOUGHT, "", "想一想"),
        ("Progress classify: 3 files: done", StepKind.PROGRESS, "classify", "3 files: done"),
        ("Plan: a, b", StepKind.PLAN, "", "a, b"),
        ("Thoughtless: no", StepKind.OTHER, "", "Thoughtless: no"),
        ("", StepKind.OTHER, "", ""),
    ],
)
def test_a_message_is_read_by_its_label(
    message: str, kind: StepKind, label: str, body: str
) -> None:
    read = step(Progress(done=1, total=None, message=message))
    assert (read.kind, read.label, read.body, read.text) == (kind, label, body, message)
