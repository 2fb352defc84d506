"""Times of files as results show them, odd ones too."""

import pytest

from thoughtgate_servers.times import shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.9, "1970-01-01T00:00:00Z"),
        (1e12, "9999-12-31T23:59:59Z"),
        (-1e12, "0001-01-01T00:00:00Z"),
    ],
)
def test_a_time_that_no_calendar_has_is_shown_as_the_nearest(seconds: float, text: str) -> None:
    """One file with such a time would make a whole directory unreadable."""
    assert shown(seconds) == text
