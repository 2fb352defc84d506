"""Budgets: whole batches or nothing, and never more than the parent has."""

from thoughtgate.runs.budget import Budget, BudgetLimits, Cost


def test_a_batch_that_does_not_fit_takes_nothing() -> None:
    budget = Budget(BudgetLimits(tool_calls=3))
    assert budget.reserve(Cost(tool_calls=2)) == ""
    assert budget.reserve(Cost(tool_calls=2)) == "tool_calls"
    assert budget.spent == Cost(tool_calls=2)
    assert budget.reserve(Cost(tool_calls=1)) == ""


def test_a_child_draws_from_its_parent() -> None:
    parent = Budget(BudgetLimits(model_calls=2))
    child = Budget(BudgetLimits(model_calls=9), parent)
    assert child.reserve(Cost(model_calls=2)) == ""
    assert parent.spent == child.spent == Cost(model_calls=2)
    assert child.reserve(Cost(model_calls=1)) == "model_calls"
    assert child.spent == Cost(model_calls=2)
    child.settle(Cost(model_calls=1), Cost())
    assert parent.reserve(Cost(model_calls=1)) == ""


def test_what_was_reserved_is_replaced_by_what_it_came_to() -> None:
    budget = Budget(BudgetLimits(output_tokens=100))
    reserved = Cost(model_calls=1, output_tokens=80)
    assert budget.reserve(reserved) == ""
    assert budget.reserve(reserved) == "output_tokens"
    budget.settle(reserved, Cost(model_calls=1, output_tokens=10))
    assert budget.reserve(reserved) == ""


def test_a_spent_limit_does_not_stop_what_does_not_draw_on_it() -> None:
    budget = Budget(BudgetLimits(model_calls=0))
    assert budget.reserve(Cost(tool_calls=1)) == ""
    assert budget.reserve(Cost(model_calls=1)) == "model_calls"
