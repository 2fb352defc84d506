"""A run is reported as it was: broken promises with their story, leaks with their numbers."""

import json
from dataclasses import replace
from pathlib import Path

from tests.chaos import report
from tests.chaos.history import Event, History, Ran, Row, What
from tests.chaos.leaks import Held, leaks
from tests.chaos.run import Outcome, Wish

HELD = Held(
    processes=1,
    children=3,
    zombies=0,
    files=40,
    threads=4,
    memory=80 * 2**20,
    sessions=0,
    running=0,
    tasks=40,
)
INVOKE = Event(at=1.0, what=What.INVOKE, token="tok-1-1", trace="a", server="s", tool="write")
REPLY = replace(INVOKE, at=2.0, what=What.REPLY, tokens=("tok-1-1",))
RAN = Ran(server="s", what="ran", tool="write", token="tok-1-1")
ROW = Row(trace="a", server="s", tool="write", outcome="ok")
GOOD = Outcome(
    history=History(events=(INVOKE, REPLY), ran=(RAN,), rows=(ROW,)),
    before=HELD,
    after=HELD,
    waiting=0,
    took=3.0,
    done={"SIGKILL": 2},
    struck=5,
)


def test_a_good_run_holds_every_promise() -> None:
    found = report.judged(Wish(), GOOD)
    assert found["violations"] == 0
    assert set(found["rules"].values()) == {0}
    assert "BROKEN" not in report.screen(found)


def test_a_write_that_ran_twice_is_told_with_its_story_and_how_to_repeat_it() -> None:
    history = replace(GOOD.history, ran=(RAN, RAN))
    found = report.judged(Wish(seconds=60, seed=7), replace(GOOD, history=history))
    shown = report.screen(found)
    assert found["violations"] == 1
    assert "make chaos ARGS='--seconds 60 --seed 7'" in shown
    assert "no write runs twice: tok-1-1: it ran 2 times" in shown
    assert shown.count("s ran write") == 2


def test_a_zombie_a_server_that_is_lost_and_a_traceback_are_told() -> None:
    after = replace(HELD, zombies=1)
    broken = replace(GOOD, after=after, lost=["web"], words="Traceback (most …", code=1)
    found = report.judged(Wish(), broken)
    told = "\n".join(found["trouble"])
    assert found["violations"] == 4
    for part in ("1 zombies", "web does not answer again", "Traceback", "ended with 1"):
        assert part in told


def test_what_is_held_for_clients_that_left_a_question_open_is_no_leak() -> None:
    after = replace(HELD, running=2, tasks=HELD.tasks + 2)
    assert leaks(HELD, after, waiting=2) == []
    assert len(leaks(HELD, after, waiting=1)) == 1


def test_a_result_takes_the_place_of_the_one_before_it_in_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}old\n{report.END}after\n", encoding="utf-8")
    (tmp_path / "chaos.json").write_text(json.dumps(report.judged(Wish(), GOOD)), encoding="utf-8")
    report.render(tmp_path, page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| no write runs twice | held |" in text


def test_the_page_has_a_place_for_the_result() -> None:
    text = report.PAGE.read_text(encoding="utf-8")
    assert text.index(report.BEGIN) < text.index(report.END)
