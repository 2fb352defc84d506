"""Plans of faults: which request meets which, how often, and how a plan changes meanwhile."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from thoughtgate.testing.fault_log import FaultLog, read_log
from thoughtgate.testing.fault_strikes import STRIKES
from thoughtgate.testing.faults import CONTROL, BadPlan, Fault, Faults, Kind, Plan, When, read_plan


def picks(faults: Faults, count: int, tool: str = "write") -> list[bool]:
    return [faults.pick("tools/call", tool) is not None for _ in range(count)]


def planned(*faults: Fault, seed: int = 0) -> Faults:
    made = Faults()
    made.put(Plan(faults=faults, seed=seed))
    return made


def test_every_kind_of_fault_has_its_strike() -> None:
    assert {*STRIKES} == {*Kind}


def test_a_plan_reads_as_it_was_written() -> None:
    plan = read_plan({
        "seed": 7,
        "faults": [{"name": "crash", "when": "during", "on": "write", "skip": 2, "chance": 0.5}],
    })
    crash = Fault(name=Kind.CRASH, when=When.DURING, on="write", skip=2, chance=0.5)
    assert plan == Plan(faults=(crash,), seed=7)
    assert read_plan([{"name": "hang"}]) == Plan(faults=(Fault(name=Kind.HANG),))


@pytest.mark.parametrize(
    "value",
    [3, {"fault": []}, [{"name": "boom"}], [{"when": "before"}], [{"name": "hang", "chanse": 1}]],
)
def test_what_is_no_plan_is_refused(value: object) -> None:
    with pytest.raises(BadPlan):
        read_plan(value)


def test_the_first_calls_are_served_well_and_then_only_so_many_are_met() -> None:
    faults = planned(Fault(name=Kind.HANG, skip=2, times=3))
    assert picks(faults, 7) == [False, False, True, True, True, False, False]


def test_a_fault_meets_its_own_tool_or_method_only() -> None:
    faults = planned(Fault(name=Kind.HANG, on="write"), Fault(name=Kind.LOOP, on="tools/list"))
    assert faults.pick("tools/call", "read") is None
    assert faults.pick("tools/call", "write") == Fault(name=Kind.HANG, on="write")
    assert faults.pick("tools/list") == Fault(name=Kind.LOOP, on="tools/list")
    assert faults.pick("ping") is None


def test_the_tool_that_changes_the_plan_meets_no_fault() -> None:
    assert planned(Fault(name=Kind.HANG)).pick("tools/call", CONTROL) is None


def test_one_seed_rolls_the_same_dice_and_each_start_others() -> None:
    fault, seeds = Fault(name=Kind.HANG, chance=0.5), (1, 1, 2)
    first, again, other = (picks(planned(fault, seed=seed), 100) for seed in seeds)
    assert first == again != other
    text = json.dumps({"seed": 1, "faults": [{"name": "hang", "chance": 0.5}]})
    assert picks(Faults(text), 100) == first != picks(Faults(text, start=1), 100)


def test_a_file_is_read_again_when_it_changes_and_a_bad_one_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "faults.json"
    file.write_text('[{"name": "hang"}]', encoding="utf-8")
    faults = Faults(str(file))
    assert picks(faults, 1) == [True]
    file.write_text("[{", encoding="utf-8")
    assert picks(faults, 1) == [True]
    assert "stay as they were" in capsys.readouterr().err
    file.write_text("[ ]", encoding="utf-8")
    assert picks(faults, 1) == [False]


@pytest.mark.parametrize("given", ["none.json", '{"seed":', '[{"name": "crash", "chance": 2}]'])
def test_what_is_no_plan_at_the_start_ends_the_server_with_one_line(given: str) -> None:
    command = [sys.executable, "-m", "thoughtgate.testing.fake_server", "--faults", given]
    said = subprocess.run(
        command, input="", capture_output=True, text=True, check=False, timeout=30
    )
    assert said.returncode == 2
    assert "error: --faults: " in said.stderr
    assert "Traceback" not in said.stderr


def test_a_server_without_any_input_ends_at_once() -> None:
    command = [sys.executable, "-m", "thoughtgate.testing.fake_server"]
    assert (
        subprocess.run(command, stdin=subprocess.DEVNULL, check=False, timeout=30).returncode == 0
    )


def test_a_log_counts_the_starts_and_keeps_every_row(tmp_path: Path) -> None:
    path = tmp_path / "log"
    first = FaultLog(str(path))
    first.note("ran", tool="write", arguments={"n": 1})
    second = FaultLog(str(path))
    first.note("ran", tool="write", arguments={"n": 2})
    assert (first.start, second.start) == (0, 1)
    rows = [(row["what"], row["start"]) for row in read_log(path)]
    assert rows == [("started", 0), ("ran", 0), ("started", 1), ("ran", 0)]


def test_without_a_file_nothing_is_kept_and_a_missing_one_has_no_rows(tmp_path: Path) -> None:
    FaultLog().note("ran")
    assert list(read_log(tmp_path / "none")) == []
