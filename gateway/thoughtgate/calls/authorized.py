"""The stage that asks the policy: may this principal make this call?

Never allows by silence: the first rule that has an opinion decides, and without one the call is
refused.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from thoughtgate.core.calls import LOCAL, Call, Result
from thoughtgate.core.errors import Refused
from thoughtgate.core.ports import Next
from thoughtgate.core.tools import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a rule says. `reason` is for the caller who is refused."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of the policy; `judge` returns None when the rule has no opinion.

    `name` stands in audit rows. The call is resolved and its arguments are valid.
    """

    name: str
    judge: Callable[[Call], Verdict | None]


ALLOWED = Verdict(allowed=True)


def _local(call: Call) -> Verdict | None:
    return ALLOWED if call.principal.id == LOCAL.id else None


LOCAL_USER = Rule(name="local_user", judge=_local)
"""The user of this machine may call everything."""


def by_scope(scopes: Mapping[Effect, str]) -> Rule:
    """Return a rule: a principal may make calls of the effects for which it has the scope."""

    def judge(call: Call) -> Verdict | None:
        needed = scopes.get(call.found.effect)
        if needed is None:
            return None
        if needed in call.principal.scopes:
            return ALLOWED
        return Verdict(allowed=False, reason=f"the scope {needed} is needed for this")

    return Rule(name="scopes", judge=judge)


def authorized(call: Call, call_next: Next, *, rules: Sequence[Rule]) -> Awaitable[Result]:
    """Pass on what the policy allows.

    Raises:
        Refused: A rule says no, or none says yes; `data` names the rule.
    """
    for rule in rules:
        verdict = rule.judge(call)
        if verdict is not None:
            if verdict.allowed:
                return call_next(call)
            raise Refused(message=verdict.reason, data={"policy": rule.name})
    raise Refused(message="no rule allows this call", data={"policy": "default"})
