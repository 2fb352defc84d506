"""What a run may spend: reserved before it is spent, charged after, drawn from the parent's too.

Never lets a batch begin that does not fit as a whole.
"""

from dataclasses import dataclass, fields

from thoughtgate.core.json import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """An amount. Where a model does not say how many tokens it used, what was reserved counts."""

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unknown_usage: int = 0

    def plus(self, other: "Cost") -> "Cost":
        """Return the sum."""
        return Cost(**{
            one.name: _of(self, one.name) + _of(other, one.name) for one in fields(self)
        })

    def minus(self, other: "Cost") -> "Cost":
        """Return the difference."""
        return Cost(**{
            one.name: _of(self, one.name) - _of(other, one.name) for one in fields(self)
        })

    def as_json(self) -> JsonObject:
        """Return the amounts by name."""
        return {one.name: _of(self, one.name) for one in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """The most that a run may spend; None is no limit. `seconds` is wall time."""

    model_calls: int | None = 60
    tool_calls: int | None = 300
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float = 600.0


class Budget:
    """The account of one run."""

    def __init__(self, limits: BudgetLimits, parent: "Budget | None" = None) -> None:
        self._limits = limits
        self._parent = parent
        self.spent = Cost()

    def reserve(self, cost: Cost) -> str:
        """Take `cost` from this budget and all above it; else take nothing.

        Returns the name of the limit that would be passed, an empty string when none is.
        """
        after = self.spent.plus(cost)
        for name in ("model_calls", "tool_calls", "input_tokens", "output_tokens"):
            limit = getattr(self._limits, name)
            if limit is not None and _of(cost, name) and _of(after, name) > limit:
                return name
        if self._parent is not None and (refused := self._parent.reserve(cost)):
            return refused
        self.spent = after
        return ""

    def settle(self, reserved: Cost, actual: Cost) -> None:
        """Replace what was reserved by what it came to."""
        self.spent = self.spent.minus(reserved).plus(actual)
        if self._parent is not None:
            self._parent.settle(reserved, actual)


def _of(cost: Cost, name: str) -> int:
    amount: int = getattr(cost, name)
    return amount
