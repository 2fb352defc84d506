"""Marks: which worker holds what a client keeps for us, whoever changed the token."""

import pytest

from thoughtgate.core.calls import LOCAL
from thoughtgate.core.workers import Crew
from thoughtgate.surface.comebacks import Comebacks
from thoughtgate.surface.holders import holder, marked, unmarked
from thoughtgate.wire.handshake import Hello

KEY = b"k" * 32
HELLO = Hello(version="2025-11-25", client={"name": "c"}, capabilities={})
LONG = Hello(version="2025-11-25", client={"name": "c" * 5000}, capabilities={})


def worker(index: int, count: int) -> Comebacks:
    return Comebacks(KEY, crew=Crew(index=index, count=count))


@pytest.mark.parametrize("hello", [HELLO, LONG], ids=["sealed", "random"])
@pytest.mark.parametrize("index", [0, 1, 2])
def test_an_id_names_the_worker_that_gave_it(index: int, hello: Hello) -> None:
    token = worker(index, 3).new_id(hello, LOCAL, "default")
    assert holder(token, 3) == index
    assert token.isascii()
    assert token.isprintable()


def test_a_gateway_of_one_process_marks_nothing() -> None:
    token = Comebacks(KEY).new_id(HELLO, LOCAL, "default")
    assert "." not in token
    assert holder(token, 1) == holder(token, 3) == 0


@pytest.mark.parametrize(
    ("before", "after"), [((0, 1), (0, 3)), ((2, 3), (0, 1)), ((2, 3), (0, 2))]
)
def test_a_session_comes_back_to_another_number_of_workers(
    before: tuple[int, int], after: tuple[int, int]
) -> None:
    token = worker(*before).new_id(HELLO, LOCAL, "default")
    assert holder(token, after[1]) == after[0]
    assert worker(*after).open(token, LOCAL, "default") == HELLO


@pytest.mark.parametrize("mark", ["0.", "2.", "01.", "12345.", ".", "x.", "-1.", "", "1.1."])
def test_a_changed_mark_leads_astray_and_opens_nothing(mark: str) -> None:
    """Else one session could live twice, or return after its end."""
    _, sealed = unmarked(worker(1, 3).new_id(HELLO, LOCAL, "default"))
    token = mark + sealed
    assert 0 <= holder(token, 3) < 3
    assert worker(holder(token, 3), 3).open(token, LOCAL, "default") is None


def test_a_token_without_a_mark_takes_none() -> None:
    token = Comebacks(KEY).new_id(HELLO, LOCAL, "default")
    assert worker(0, 2).open(token, LOCAL, "default") == HELLO
    assert worker(0, 2).open(f"0.{token}", LOCAL, "default") is None
    marked_one = worker(0, 2).new_id(HELLO, LOCAL, "default")
    assert marked_one.startswith("0.")
    assert worker(0, 1).open(marked_one, LOCAL, "default") == HELLO
    assert worker(0, 1).open(marked_one[2:], LOCAL, "default") is None


def test_a_mark_says_the_same_again() -> None:
    crew = Crew(index=7, count=9)
    assert unmarked(marked("token", crew)) == (7, "token")
    assert unmarked("a.b") == (None, "a.b")
    assert unmarked("07.b") == (None, "07.b")
