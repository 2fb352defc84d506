"""Runs of a given plan: no model, every value by reference, and no write twice."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.support.play import SEND, TOOLS, Play, bad, judged, ok, plan
from thoughtgate.core.errors import ConfigError, OutOfOrder
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.models import ModelResponse
from thoughtgate.engines.contract import (
    EngineTool,
    Finish,
    Halt,
    Interrupted,
    Invocation,
    Limits,
    ModelReplied,
    NoteKind,
    Outcome,
    OutcomeStatus,
    StopReason,
    Subject,
    Task,
    ToolsReplied,
    UseTools,
    Validate,
    Validated,
    Verdict,
    VerdictStatus,
)
from thoughtgate.engines.plan import Plan
from thoughtgate.engines.react import React
from thoughtgate.engines.react_table import NEXT, Phase

FIND_STEP = {"id": "find", "tool": "logs__find", "arguments": {}}
SEND_STEP = {"id": "send", "tool": "notify__send", "arguments": {"text": "hi"}}
READ_EACH = {
    "id": "read",
    "tool": "logs__read",
    "each": {"$from": "find#/structuredContent/files"},
    "arguments": {"path": {"$item": ""}},
}


def task(made: Plan, **fields: JsonValue) -> Task:
    return Task(goal="g", tools=fields.pop("tools", TOOLS), plan=made, **fields)


def failing(times: int, outcome: Outcome) -> Callable[[Invocation], Outcome]:
    left = [outcome] * times
    return lambda _: left.pop() if left else ok({"n": 1})


def test_values_flow_from_step_to_step_and_each_keeps_its_order() -> None:
    files = ["c", "a", "b"]

    def does(call: Invocation) -> Outcome:
        if call.tool == "logs__find":
            return ok({"files": files})
        return ok({"seen": call.arguments.get("path")})

    sent = {"text": {"$from": "read#/structuredContent/seen"}}
    play = Play(does=does)
    last = play.run(
        task(plan(FIND_STEP, READ_EACH, {"id": "send", "tool": "notify__send", "arguments": sent}))
    )
    assert isinstance(last, Finish)
    assert [call.arguments for call in play.calls] == [
        {},
        {"path": "c"},
        {"path": "a"},
        {"path": "b"},
        {"text": files},
    ]
    assert play.requests == []


def test_thoughts_of_a_given_plan_say_so() -> None:
    play = Play()
    play.run(task(plan({**FIND_STEP, "goal": "find the files"})))
    (thought,) = play.notes(NoteKind.THOUGHT)
    assert (thought.text, thought.data["source"]) == ("find the files", "plan")


def test_each_over_nothing_calls_nothing_and_goes_on() -> None:
    play = Play(does=lambda _: ok({"files": []}))
    assert isinstance(play.run(task(plan(FIND_STEP, READ_EACH))), Finish)
    assert [call.tool for call in play.calls] == ["logs__find"]
    assert play.report["read"].state == "completed"


def test_independent_steps_go_out_together_within_the_bound() -> None:
    steps = [{**FIND_STEP, "id": f"s{n}"} for n in range(5)]
    _, effects = React().start(task(plan(*steps)), Limits(max_parallel=3))
    assert [one.step for one in effects if isinstance(one, UseTools)] == ["s0", "s1", "s2"]


def test_a_refused_plan_spends_nothing_and_gives_all_reasons() -> None:
    with pytest.raises(ConfigError) as caught:
        React().start(task(plan({"id": "a", "tool": "x", "arguments": {}}, SEND_STEP, SEND_STEP)),
                      Limits())  # fmt: skip
    assert len(caught.value.data["reasons"]) == 2


def test_a_run_without_plan_and_model_is_refused() -> None:
    with pytest.raises(ConfigError):
        React().start(Task(goal="g", tools=TOOLS), Limits())


def test_a_failed_read_is_tried_again_and_its_attempts_eat_no_steps() -> None:
    play = Play(does=failing(3, bad()))
    last = play.run(task(plan(FIND_STEP)), Limits(max_steps=1))
    assert isinstance(last, Finish)
    assert len(play.calls) == 4
    assert play.report["find"].attempts == 4


def test_one_plus_max_retries_attempts_and_then_the_run_halts_with_what_it_has() -> None:
    def does(call: Invocation) -> Outcome:
        return bad() if call.tool == "logs__read" else ok({"files": ["a"]})

    play = Play(does=does)
    after = {**SEND_STEP, "depends_on": ["read"]}
    last = play.run(task(plan(FIND_STEP, READ_EACH, after)), Limits(max_retries=2))
    assert isinstance(last, Halt)
    assert last.reason is StopReason.MAX_RETRIES
    assert [call.tool for call in play.calls].count("logs__read") == 3
    assert "find: files = [1 entries]" in last.answer
    assert play.report["find"].state == "completed"
    assert play.report["read"].state == "halted"
    assert "it went wrong" in play.report["read"].reason
    assert (play.report["send"].state, play.report["send"].attempts) == ("idle", 0)


def test_only_the_failed_items_of_each_are_called_again() -> None:
    failed: list[JsonObject] = []

    def does(call: Invocation) -> Outcome:
        if call.tool == "logs__find":
            return ok({"files": ["a", "b"]})
        if call.arguments == {"path": "b"} and not failed:
            failed.append(call.arguments)
            return bad()
        return ok({"path": call.arguments["path"]})

    play = Play(does=does)
    assert isinstance(play.run(task(plan(FIND_STEP, READ_EACH))), Finish)
    assert [call.arguments for call in play.calls[1:]] == [
        {"path": "a"},
        {"path": "b"},
        {"path": "b"},
    ]
    read = play.report["read"].observations
    assert [one["structuredContent"]["path"] for one in read] == ["a", "b"]


def test_a_failed_check_means_retry_never_advance() -> None:
    seen = []

    def judges(effect: Validate, value: JsonValue) -> Verdict:
        if effect.what is not Subject.OBSERVATION:
            return judged(effect, value)
        seen.append(effect.check)
        failed = len(seen) == 1
        status = VerdictStatus.FAILED if failed else VerdictStatus.PASSED
        return Verdict(status=status, problems=("/n: expected 2, got number",) if failed else ())

    play = Play(judges=judges)
    assert isinstance(play.run(task(plan({**FIND_STEP, "check": {"type": "object"}}))), Finish)
    assert len(play.calls) == 2
    assert seen == [{"type": "object"}] * 2
    assert play.report["find"].checked == "passed"


def test_without_a_check_validation_is_skipped_not_passed() -> None:
    play = Play()
    play.run(task(plan(FIND_STEP)))
    assert play.report["find"].checked == "skipped"
    assert [note.data["status"] for note in play.notes(NoteKind.VALIDATION)] == ["skipped"] * 2


def test_anchors_stand_at_a_third_and_two_thirds_and_are_skipped_without_a_judge() -> None:
    steps = [
        {**FIND_STEP, "id": f"s{n}", "depends_on": [f"s{n - 1}"] if n else []} for n in range(6)
    ]
    play = Play()
    play.run(task(plan(*steps)))
    anchors = [one for one in play.effects if isinstance(one, Validate)]
    sizes = [len(one.values[0]) for one in anchors if one.what is Subject.ANCHOR]
    assert sizes == [2, 4]
    assert [note.text for note in play.notes(NoteKind.ANCHOR)] == ["skipped", "skipped"]


def test_an_anchor_waits_for_what_was_started_and_holds_what_was_not() -> None:
    steps = [{**FIND_STEP, "id": f"s{n}"} for n in range(3)]
    engine = React()
    state, effects = engine.start(task(plan(*steps)), Limits(max_parallel=2))
    first, second = [one for one in effects if isinstance(one, UseTools)]
    skipped = Validated(effect="", verdicts=(Verdict(status=VerdictStatus.SKIPPED),))
    for asked in (first, second):
        state, effects = engine.step(state, ToolsReplied(effect=asked.id, outcomes=(ok(),)))
        (gate,) = [one for one in effects if isinstance(one, Validate)]
        assert gate.what is Subject.OBSERVATION
        state, effects = engine.step(state, replace(skipped, effect=gate.id))
        assert not any(isinstance(one, UseTools) for one in effects)
    (review,) = [one for one in effects if isinstance(one, Validate)]
    assert review.what is Subject.ANCHOR
    assert len(review.values[0]) == 2


def test_a_failed_anchor_goes_back_to_the_last_good_one_but_no_write_is_sent_again() -> None:
    verdicts = [VerdictStatus.PASSED, VerdictStatus.FAILED]

    def judges(effect: Validate, value: JsonValue) -> Verdict:
        if effect.what is Subject.ANCHOR and verdicts:
            return Verdict(status=verdicts.pop(0), problems=("odd",))
        return judged(effect, value)

    middle = {**SEND_STEP, "depends_on": ["find"]}
    end = {**FIND_STEP, "id": "again", "depends_on": ["send"]}
    play = Play(judges=judges)
    assert isinstance(play.run(task(plan(FIND_STEP, middle, end))), Finish)
    assert [call.tool for call in play.calls] == ["logs__find", "notify__send", "logs__find"]
    assert [note.text for note in play.notes(NoteKind.ANCHOR)] == ["passed", "failed", "skipped"]


@pytest.mark.parametrize(
    ("status", "code", "reason", "sent"),
    [
        (OutcomeStatus.UNKNOWN, "upstream_timeout", StopReason.IN_DOUBT, 1),
        (OutcomeStatus.INVALID, "invalid_result", StopReason.AWAITING_INPUT, 1),
        (OutcomeStatus.TOOL_ERROR, "tool_error", StopReason.AWAITING_INPUT, 1),
        (OutcomeStatus.NOT_SENT, "upstream_unreachable", StopReason.MAX_RETRIES, 4),
        (OutcomeStatus.NOT_SENT, "invalid_arguments", StopReason.VALIDATION_FAILED, 1),
        (OutcomeStatus.NOT_SENT, "refused", StopReason.VALIDATION_FAILED, 1),
    ],
)
def test_a_write_is_repeated_only_when_it_was_provably_not_sent(
    status: OutcomeStatus, code: str, reason: StopReason, sent: int
) -> None:
    play = Play(does=lambda _: bad(status, code))
    last = play.run(task(plan(SEND_STEP)))
    assert isinstance(last, Halt)
    assert last.reason is reason
    assert len(play.calls) == sent
    assert play.report["send"].in_doubt is (reason is StopReason.IN_DOUBT)


def test_a_write_whose_result_fails_its_check_waits_for_a_person() -> None:
    def judges(effect: Validate, value: JsonValue) -> Verdict:
        failed = effect.what is Subject.OBSERVATION
        return Verdict(status=VerdictStatus.FAILED if failed else VerdictStatus.SKIPPED)

    play = Play(judges=judges)
    last = play.run(task(plan({**SEND_STEP, "check": False})))
    assert isinstance(last, Halt)
    assert last.reason is StopReason.AWAITING_INPUT
    assert len(play.calls) == 1


def test_an_unknown_write_goes_again_under_its_key_where_the_server_honours_keys() -> None:
    keyed = EngineTool(
        name=SEND.name, description="", parameters={"type": "object"}, honours_key=True
    )
    play = Play(does=failing(1, bad(OutcomeStatus.UNKNOWN, "upstream_lost")))
    assert isinstance(play.run(task(plan(SEND_STEP), tools=(keyed,))), Finish)
    assert len(play.calls) == 2
    assert play.calls[0].key == play.calls[1].key != ""


def test_a_keyed_write_that_stays_unknown_is_in_doubt_at_the_end() -> None:
    keyed = EngineTool(
        name=SEND.name, description="", parameters={"type": "object"}, honours_key=True
    )
    play = Play(does=lambda _: bad(OutcomeStatus.UNKNOWN, "upstream_lost"))
    last = play.run(task(plan(SEND_STEP), tools=(keyed,)), Limits(max_retries=2))
    assert isinstance(last, Halt)
    assert last.reason is StopReason.IN_DOUBT
    assert len({call.key for call in play.calls}) == 1
    assert len(play.calls) == 3
    assert play.report["send"].in_doubt


def test_an_attempt_that_never_left_settles_no_doubt() -> None:
    keyed = EngineTool(name=SEND.name, description="", parameters={}, honours_key=True)
    lost, unsent = OutcomeStatus.UNKNOWN, OutcomeStatus.NOT_SENT
    outcomes = [bad(lost, "upstream_lost"), bad(unsent, "upstream_unreachable"), ok()]
    play = Play(does=lambda _: outcomes.pop(0))
    last = play.run(task(plan(SEND_STEP), tools=(keyed,)), Limits(max_retries=1))
    assert isinstance(last, Halt)
    assert last.reason is StopReason.IN_DOUBT
    assert play.report["send"].in_doubt


def test_of_a_fan_out_only_the_writes_in_doubt_go_again() -> None:
    keyed = EngineTool(name=SEND.name, description="", parameters={}, honours_key=True)
    outcomes = [bad(OutcomeStatus.UNKNOWN, "upstream_lost"), bad(), ok(), ok()]
    play = Play(does=lambda _: outcomes.pop(0))
    fan_out = {**SEND_STEP, "each": ["a", "b", "c"], "arguments": {"text": {"$item": ""}}}
    last = play.run(task(plan(fan_out), tools=(keyed,)))
    assert isinstance(last, Halt)
    assert last.reason is StopReason.AWAITING_INPUT
    assert [call.arguments["text"] for call in play.calls] == ["a", "b", "c", "a"]
    assert play.calls[0].key == play.calls[3].key
    assert not play.report["send"].in_doubt


def test_a_write_in_doubt_is_the_reason_even_when_another_step_halted_first() -> None:
    def does(call: Invocation) -> Outcome:
        unknown = call.tool == "notify__send"
        return bad(OutcomeStatus.UNKNOWN, "upstream_lost") if unknown else bad()

    last = Play(does=does).run(task(plan(FIND_STEP, SEND_STEP)), Limits(max_retries=0))
    assert isinstance(last, Halt)
    assert last.reason is StopReason.IN_DOUBT


def rolled_back(second: list[str]) -> tuple[Finish | Halt, list[str]]:
    """Play a fan-out of writes whose list is `second` after an anchor sent it back."""
    lists, verdicts = [["a", "b"], second], [VerdictStatus.PASSED, VerdictStatus.FAILED]

    def judges(effect: Validate, value: JsonValue) -> Verdict:
        if effect.what is Subject.ANCHOR and verdicts:
            return Verdict(status=verdicts.pop(0), problems=("odd",))
        return judged(effect, value)

    def does(call: Invocation) -> Outcome:
        if call.arguments == {"dir": "x"}:
            return ok({"files": lists.pop(0)})
        return ok()

    send = {
        "tool": "notify__send",
        "each": {"$from": "s2#/structuredContent/files"},
        "arguments": {"text": {"$item": ""}},
    }
    steps = [FIND_STEP, FIND_STEP, {**FIND_STEP, "arguments": {"dir": "x"}}, send, *[FIND_STEP] * 2]
    chain = [
        {**step, "id": f"s{n}", "depends_on": [f"s{n - 1}"] if n else []}
        for n, step in enumerate(steps)
    ]
    play = Play(does=does, judges=judges)
    last = play.run(task(plan(*chain)))
    return last, [call.arguments["text"] for call in play.calls if call.tool == "notify__send"]


def test_writes_are_known_again_after_a_rollback_whatever_their_order() -> None:
    last, sent = rolled_back(["b", "a"])
    assert isinstance(last, Finish)
    assert sent == ["a", "b"]


def test_other_writes_after_a_rollback_wait_for_a_person() -> None:
    last, sent = rolled_back(["b", "c"])
    assert isinstance(last, Halt)
    assert last.reason is StopReason.AWAITING_INPUT
    assert sent == ["a", "b"]


def test_each_may_ask_for_the_same_write_twice() -> None:
    play = Play()
    twice = {**SEND_STEP, "each": [1, 1]}
    assert isinstance(play.run(task(plan(twice))), Finish)
    assert len(play.calls) == 2


def test_whole_arguments_may_come_from_an_observation() -> None:
    whole = {"id": "read", "tool": "logs__read", "arguments": {"$from": "find#/structuredContent"}}
    play = Play(does=lambda _: ok({"path": "a"}))
    assert isinstance(play.run(task(plan(FIND_STEP, whole))), Finish)
    assert play.calls[1].arguments == {"path": "a"}
    last = Play(does=lambda _: ok(["a"])).run(task(plan(FIND_STEP, whole)))
    assert isinstance(last, Halt)
    assert "no object" in last.detail


def test_two_steps_of_a_plan_may_write_the_same_on_purpose() -> None:
    play = Play()
    play.run(task(plan(SEND_STEP, {**SEND_STEP, "id": "twice", "depends_on": ["send"]})))
    assert len(play.calls) == 2
    assert play.calls[0].key != play.calls[1].key


def test_a_pointer_that_misses_halts_with_what_was_there() -> None:
    play = Play(does=lambda _: ok({"names": []}))
    last = play.run(task(plan(FIND_STEP, READ_EACH)))
    assert isinstance(last, Halt)
    assert last.reason is StopReason.VALIDATION_FAILED
    assert "find#/structuredContent/files: nothing at" in last.detail
    assert "there is names" in last.detail


def test_each_over_something_that_is_no_list_is_refused() -> None:
    play = Play(does=lambda _: ok({"files": "a"}))
    last = play.run(task(plan(FIND_STEP, READ_EACH)))
    assert isinstance(last, Halt)
    assert "each needs a list" in last.detail


def test_what_is_under_way_is_waited_for_when_another_step_halts() -> None:
    """The write next to a failing read is neither lost nor in doubt."""
    play = Play(does=lambda call: ok() if call.tool == "notify__send" else bad())
    last = play.run(task(plan(FIND_STEP, SEND_STEP)), Limits(max_retries=0))
    assert isinstance(last, Halt)
    assert play.report["send"].state == "completed"


def test_the_answer_is_made_of_references_when_the_plan_says_so() -> None:
    play = Play(does=lambda _: ok({"n": 3}))
    answer = {"count": {"$from": "find#/structuredContent/n"}}
    assert play.run(task(plan(FIND_STEP, answer=answer))) == Finish(answer='{"count":3}')


def test_an_answer_that_fails_the_final_gate_is_no_final_answer() -> None:
    def judges(effect: Validate, value: JsonValue) -> Verdict:
        failed = effect.what is Subject.ANSWER and value != {"n": 3}
        return Verdict(status=VerdictStatus.FAILED if failed else VerdictStatus.PASSED)

    made = plan(FIND_STEP, answer="soon", answer_check={"type": "object"})
    last = Play(judges=judges).run(task(made))
    assert isinstance(last, Halt)
    assert last.reason is StopReason.VALIDATION_FAILED


def test_an_interrupted_run_keeps_its_results_and_marks_the_write_under_way() -> None:
    engine = React()
    made = plan(FIND_STEP, {**SEND_STEP, "depends_on": ["find"]})
    state, effects = engine.start(task(made), Limits())
    while not any(isinstance(one, UseTools) and one.step == "send" for one in effects):
        (asked,) = [one for one in effects if isinstance(one, (UseTools, Validate))]
        skipped = Verdict(status=VerdictStatus.SKIPPED)
        reply: ToolsReplied | Validated = (
            ToolsReplied(effect=asked.id, outcomes=(ok({"n": 1}),))
            if isinstance(asked, UseTools)
            else Validated(effect=asked.id, verdicts=(skipped,))
        )
        state, effects = engine.step(state, reply)
    state, effects = engine.step(state, Interrupted(reason=StopReason.CANCELLED))
    assert effects[-1] == Halt(reason=StopReason.CANCELLED, answer="find: n = 1")
    find, send = engine.report(state)
    assert (find.state, send.state) == ("completed", "cancelled")
    assert send.in_doubt
    with pytest.raises(OutOfOrder):
        engine.step(state, Interrupted(reason=StopReason.CANCELLED))


def test_a_reply_that_nobody_awaits_is_an_error() -> None:
    engine = React()
    state, effects = engine.start(task(plan(FIND_STEP)), Limits())
    (asked,) = [one for one in effects if isinstance(one, UseTools)]
    with pytest.raises(OutOfOrder):
        engine.step(state, ToolsReplied(effect="e99", outcomes=()))
    with pytest.raises(OutOfOrder):
        engine.step(state, ModelReplied(effect=asked.id, response=ModelResponse(text="")))


def test_the_same_events_give_the_same_effects() -> None:
    made = plan(FIND_STEP, READ_EACH, SEND_STEP)
    plays = [Play(does=lambda _: ok({"files": ["a", "b"]})) for _ in range(2)]
    for play in plays:
        play.run(task(made))
    assert plays[0].effects == plays[1].effects


def test_every_move_of_a_step_and_of_the_run_is_told() -> None:
    play = Play(does=failing(1, bad()))
    play.run(task(plan(FIND_STEP)))
    notes = play.notes(NoteKind.STATE)
    step = [(note.data["from"], note.data["to"]) for note in notes if note.step == "find"]
    phases = [
        "idle", "reasoning", "acting", "validating", "retry", "acting", "validating", "reasoning",
        "completed",
    ]  # fmt: skip
    assert step == list(pairwise(phases))
    run = [note.data["to"] for note in notes if not note.step]
    assert run == ["acting", "validating", "acting", "validating", "reasoning", "completed"]
    for before, after in step:
        assert after in NEXT[Phase(before)]
