"""Reasoning in the gateway: the runner, and the tool `reason` of domains that have an engine.

Never gives an engine a way to a tool beside the path of every call.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from thoughtgate.app.models import chosen_model, model_named
from thoughtgate.calls.gateway import Gateway
from thoughtgate.config.settings import Settings
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.ports import ModelClient, Recorder
from thoughtgate.core.servers import BUILT_IN, Listing, LocalTransport, ResultPolicy, Server
from thoughtgate.engines.contract import Limits
from thoughtgate.engines.react import React
from thoughtgate.runs.budget import BudgetLimits
from thoughtgate.runs.reason_tool import REASON, Reason, definition
from thoughtgate.runs.runner import Runner, RunnerSettings
from thoughtgate.upstream.local import LocalTool, LocalUpstream, local_listing
from thoughtgate.upstream.ports import HttpClient

Ready = Callable[[], Awaitable[None]]
"""Returns when the tools that a run may want are known, as far as that can be had soon."""

RUN_SECONDS = 3600.0

BUILT_IN_SERVER = Server(
    name=BUILT_IN,
    transport=LocalTransport(),
    results=ResultPolicy.STRICT,
    call_timeout=RUN_SECONDS,
    source="built-in",
)


def with_engine(domain: Domain) -> Domain:
    """Return the domain as the gateway serves it: with `reason` if it has an engine."""
    own = f"{BUILT_IN}/*"
    if not domain.engine:
        return replace(domain, exclude=(*domain.exclude, own))
    key = f"{BUILT_IN}/{REASON}"
    return replace(
        domain,
        include=(*domain.include, own) if domain.include else (),
        dress={**domain.dress, key: ToolDress(rename=REASON)},
        max_tools=None if domain.max_tools is None else domain.max_tools + 1,
    )


def built_in_listing(settings: Settings) -> Listing:
    """Return the gateway's own tools, as discovery finds them.

    Raises:
        ConfigError: The settings name a model that is not there.
    """
    return local_listing(BUILT_IN, [definition(limits_of(settings))])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """The runner of this gateway, what a run may use, and the door of its tool.

    `settings` hold the models of the configuration and of the registry.
    """

    settings: Settings
    runner: Runner
    limits: Limits
    budget: BudgetLimits
    tool: Reason


class ReasonDoor:
    """The local tool `reason`; it opens once the gateway, which it calls through, is there."""

    def __init__(self) -> None:
        self._reason: Reason | None = None
        self._ready: Ready | None = None

    def upstream(self, limits: Limits) -> LocalUpstream:
        """Return the upstream that offers the tool."""
        tool = LocalTool(definition=definition(limits), handler=self._handle)
        return LocalUpstream(BUILT_IN, {REASON: tool})

    def open(self, reason: Reason, ready: Ready) -> None:
        """Let calls in; each waits for `ready` first."""
        self._reason, self._ready = reason, ready

    async def _handle(self, call: Call) -> Result:
        if self._reason is None or self._ready is None:
            raise TypeError(REASON)
        await self._ready()
        return await self._reason(call)


def reasoning(
    settings: Settings,
    gateway: Gateway,
    client: HttpClient,
    recorder: Recorder | None,
    capture: int,
) -> Reasoning:
    """Return the gateway's reasoning, over the path of every call."""
    limits = limits_of(settings)
    runner = Runner(
        call=gateway.call,
        view=gateway.view,
        engines={"react": React()},
        settings=RunnerSettings(hidden=frozenset({(BUILT_IN, REASON)}), capture=capture),
        recorder=recorder,
    )
    budget = BudgetLimits(seconds=RUN_SECONDS)

    def model(domain: Domain) -> ModelClient | None:
        del domain  # one default model for all; a domain may name its own later
        return model_named(settings, "", client)

    tool = Reason(runner, view=gateway.view, model=model, ceiling=limits, budget=budget)
    return Reasoning(settings=settings, runner=runner, limits=limits, budget=budget, tool=tool)


def limits_of(settings: Settings, model: str = "") -> Limits:
    """Return the limits of a run; whether tools go in the model's own form is the model's matter.

    Raises:
        ConfigError: No model has that name.
    """
    chosen = chosen_model(settings, model)
    native = settings.models[chosen].native_tools if chosen else True
    return Limits(native_tools=native)
