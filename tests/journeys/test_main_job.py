"""The main job, end to end: what is reported and sent equals what an independent count finds.

Real processes throughout. The given plan names no file, type or number; without a plan a model
that computes its replies from the Observations makes one and carries it out.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from count import differences, expected, recounted, reported
from processes import Processes

from tests.support.clerk import CLASSIFY, COUNT, FIND, JOB, REPORT, SEND, Clerk, Slip
from tests.support.job import (
    DEMO,
    DOMAIN,
    PLAN,
    SMALL,
    TASK,
    Job,
    ModelThread,
    Servers,
    announced,
    job,
    model_table,
    sent,
    servers,
)
from thoughtgate_client import RunResult, Step, StepKind, connect

Inbox = Callable[[], list[Any]]

RUN = 30.0
"""Seconds that a run may take on a busy machine."""


def agrees(manifest: dict[str, Any], *counts: Counter[str]) -> None:
    """Hold counts against what the writer of the logs knows, and against a naive recount."""
    truth = expected(manifest)
    assert truth.total() > 50
    for other in (recounted(manifest), *counts):
        assert differences(truth, other) == [], manifest["seed"]


async def handed_over(where: Job, plan: str | None = None) -> tuple[RunResult, list[Step]]:
    """Hand the task over and return how the run went and what it told."""
    steps: list[Step] = []
    async with connect(where.url) as gate:
        run = await gate.reason(TASK, plan=plan, on_step=steps.append, max_seconds=RUN)
    return run, steps


def actions(steps: list[Step]) -> list[str]:
    return [step.body for step in steps if step.kind is StepKind.ACTION]


def completed(run: RunResult) -> bool:
    states = {step["state"] for step in run.steps}
    return (run.stop_reason, run.partial, states) == ("final_answer", False, {"completed"})


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    root = tmp_path_factory.mktemp("job")
    with Processes(root / "receiver") as processes:
        webhook = [sys.executable, str(DEMO / "webhook.py"), str(root / "received")]
        processes.start("webhook", webhook, {})
        with servers(root, announced(processes, "webhook")) as running:
            yield running


@pytest.fixture
def inbox(tools: Servers) -> Inbox:
    """Return what reads the messages that came during this test."""
    before = set(tools.place.received.iterdir())

    def messages() -> list[Any]:
        files = set(tools.place.received.iterdir()) - before
        return [json.loads(file.read_text("utf-8"))["body"] for file in sorted(files)]

    return messages


@pytest.fixture(scope="module")
def planned(tools: Servers) -> Iterator[Job]:
    with job(tools, "planned") as running:
        yield running


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
async def test_a_given_plan_reports_and_sends_what_the_logs_hold(
    planned: Job, inbox: Inbox, seed: int
) -> None:
    manifest = planned.place.renew(seed)
    run, steps = await handed_over(planned, PLAN)

    assert completed(run), run
    [message] = inbox()
    agrees(manifest, reported(planned.place.report), sent([message]))
    truth = expected(manifest)
    answer = json.loads(run.answer)
    assert (answer["total"], answer["types"]) == (truth.total(), len(truth))
    assert message["text"] == planned.place.report
    torn = sum(line.startswith("- ") for line in planned.place.report.splitlines())
    assert torn == 1, "the report names the one file that is torn"
    assert {file.name for file in planned.place.reports.glob("*.svg")} == {
        "report-by-type.svg", "report-by-severity.svg", "report-by-day.svg",
    }  # fmt: skip
    young = sum(file["age_days"] < manifest["days"] for file in manifest["files"])
    assert Counter(actions(steps)) == {
        FIND: 1, CLASSIFY: young, COUNT: 3, REPORT: 1, "files__read_file": 1, SEND: 1,
    }  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Iterator[ModelThread]:
    with ModelThread() as running:
        yield running


@pytest.fixture(scope="module", params=["text", "native"])
def form(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="module")
def planless(tools: Servers, model: ModelThread, form: str) -> Iterator[Job]:
    with job(tools, form, model_table(model.url, native=form == "native")) as running:
        yield running


@pytest.fixture
def clerk(model: ModelThread, form: str) -> Iterator[Clerk]:
    clerk = Clerk(native=form == "native")
    model.compute, model.faults = clerk, []
    yield clerk
    assert model.faults == []
    assert clerk.slip is None


async def carried_out(where: Job, inbox: Inbox, manifest: dict[str, Any]) -> list[Step]:
    """Run without a plan and hold everything that came of it against the logs."""
    run, steps = await handed_over(where)
    assert completed(run), run
    messages = inbox()
    agrees(manifest, reported(where.place.report), sent(messages))
    truth = expected(manifest)
    assert [message["total"] for message in messages] == [truth.total()]
    assert run.answer.startswith(f"{truth.total()} errors of {len(truth)} types; report in /")
    return steps


@pytest.mark.parametrize("seed", [11, 12])
async def test_a_model_that_reads_observations_does_the_job_without_a_plan(
    planless: Job, inbox: Inbox, clerk: Clerk, seed: int
) -> None:
    manifest = planless.place.renew(seed, SMALL)
    steps = await carried_out(planless, inbox, manifest)
    assert actions(steps) == list(JOB)
    # a plan, two Thoughts a step, an answer
    assert len(clerk.requests) == 1 + 2 * len(JOB) + 1
    offered = [bool(request.get("tools")) for request in clerk.requests]
    assert offered == [False, *[clerk.native] * 2 * len(JOB), False]


async def test_a_planner_may_let_large_observations_flow_from_step_to_step(
    planless: Job, inbox: Inbox, clerk: Clerk
) -> None:
    clerk.by_reference = True
    await carried_out(planless, inbox, planless.place.renew(13))
    assert len(clerk.requests) == 2


SLIPS = [(slip, CLASSIFY) for slip in Slip]
SLIPS += [(Slip.BROKEN, SEND), (Slip.EMPTY, FIND), (Slip.UNKNOWN, COUNT)]


@pytest.mark.parametrize(("slip", "at"), SLIPS)
async def test_a_model_that_slips_once_still_ends_right(
    planless: Job, inbox: Inbox, clerk: Clerk, slip: Slip, at: str
) -> None:
    clerk.slip, clerk.at = slip, at
    manifest = planless.place.renew(14, SMALL)
    steps = await carried_out(planless, inbox, manifest)
    # nothing was called under another name or with mended arguments
    assert actions(steps) == list(JOB)
    asked_again = 0 if slip in {Slip.IMAGINED, Slip.WIDE} else 1
    assert len(clerk.requests) == 2 + 2 * len(JOB) + asked_again


async def test_a_step_whose_check_nothing_passes_ends_in_a_partial_answer_and_no_message(
    planless: Job, inbox: Inbox, clerk: Clerk
) -> None:
    clerk.impossible = COUNT
    planless.place.renew(15, SMALL)
    run, steps = await handed_over(planless)
    assert (run.status, run.partial, run.stop_reason) == ("halted", True, "loop_detected")
    assert run.answer == "The run stopped; it had 2 results"
    assert actions(steps) == [FIND, CLASSIFY, COUNT, COUNT, COUNT]
    assert inbox() == []
    assert not list(planless.place.reports.iterdir())


def test_the_command_line_does_the_job_without_a_plan(
    planless: Job, inbox: Inbox, clerk: Clerk
) -> None:
    manifest = planless.place.renew(16, SMALL)
    done = planless.gate.home.run("run", "start", TASK, "--domain", DOMAIN, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["stop_reason"], report["partial"]) == ("final_answer", False)
    agrees(manifest, reported(planless.place.report), sent(inbox()))
    told = [line.split()[0] for line in done.stderr.splitlines() if " " in line]
    assert [told.count(kind) for kind in ("Action", "Observation")] == [5, 5]
    assert len(clerk.requests) == 12
