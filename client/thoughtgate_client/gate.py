"""The client: list tools, call one, hand over a task.

Never retries: whether a call may be repeated is the caller's decision.
"""

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import Any

from thoughtgate_client.carrier import Carrier, Report, Wanted
from thoughtgate_client.connection import connection
from thoughtgate_client.errors import ConnectionLost, Garbled, TimedOut, ToolFailed
from thoughtgate_client.mcp_carrier import McpCarrier
from thoughtgate_client.values import JsonObject, Progress, RunResult, Step, Tool, ToolResult, step

OnProgress = Callable[[Progress], Awaitable[None] | None]
OnStep = Callable[[Step], Awaitable[None] | None]

IDEMPOTENCY_KEY = "thoughtgate/idempotencyKey"
_MAX_PAGES = 1_000
_GRPC = ("grpc", "grpcs")
"""Addresses over gRPC; its library takes time to load, so only they have it loaded."""


class Gate:
    """An open connection to one endpoint; made by `connect`. Calls may run side by side."""

    def __init__(self, carrier: Carrier, max_seconds: float) -> None:
        self._carrier = carrier
        self._max_seconds = max_seconds
        self._closed = False

    @property
    def protocol_version(self) -> str:
        """The protocol revision that both sides agreed on."""
        return self._carrier.protocol_version

    @property
    def instructions(self) -> str:
        """What the server says about its use, empty when nothing."""
        return self._carrier.instructions

    async def tools(self) -> tuple[Tool, ...]:
        """Return every tool of this endpoint, all pages, in the server's order.

        Raises:
            GateError: The list could not be had.
        """
        found: list[Tool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            async with self._in_use(self._max_seconds, "the list of tools"):
                page = await self._carrier.page(cursor)
            found += page.tools
            if not page.cursor or page.cursor == cursor:
                return tuple(found)
            cursor = page.cursor
        raise Garbled(message=f"the list of tools has more than {_MAX_PAGES} pages")

    async def call(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        on_progress: OnProgress | None = None,
        max_seconds: float | None = None,
        idempotency_key: str | None = None,
    ) -> ToolResult:
        """Call a tool and return its result. Cancelling the awaiting task cancels the call.

        Raises:
            ToolFailed: The tool says that it failed.
            GateError: There is no usable result.
            TypeError, ValueError: The arguments are not JSON; nothing was sent.
        """
        result = await self.try_call(
            name,
            arguments,
            on_progress=on_progress,
            max_seconds=max_seconds,
            idempotency_key=idempotency_key,
        )
        if result.is_error:
            raise ToolFailed(message=f"{name}: {result.text}", result=result)
        return result

    async def try_call(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        on_progress: OnProgress | None = None,
        max_seconds: float | None = None,
        idempotency_key: str | None = None,
    ) -> ToolResult:
        """As `call`, but a failure of the tool is a result with `is_error`.

        Raises:
            GateError: There is no usable result.
            TypeError, ValueError: The arguments are not JSON; nothing was sent.
        """
        given = dict(arguments or {})
        # what is no JSON is an error here; the SDK would send null for a NaN
        json.dumps(given, allow_nan=False)
        seconds = self._max_seconds if max_seconds is None else max_seconds
        wanted = Wanted(
            name=name,
            arguments=given,
            seconds=seconds,
            report=_reporting(on_progress),
            meta={} if idempotency_key is None else {IDEMPOTENCY_KEY: idempotency_key},
        )
        async with self._in_use(seconds, name):
            return await self._carrier.call(wanted)

    async def reason(
        self,
        task: str,
        *,
        plan: JsonObject | str | None = None,
        on_step: OnStep | None = None,
        max_seconds: float = 600.0,
        tool: str = "reason",
    ) -> RunResult:
        """Hand a task to the reasoning engine of this domain and return how the run ended.

        `plan` is a plan as an object or as TOML text; without one the gateway plans. `on_step`
        sees every Thought, Action and Observation while the run goes on.

        Raises:
            ToolFailed: The run could not be started, a refused plan for instance.
            GateError: There is no usable result.
        """
        arguments: dict[str, Any] = {"task": task}
        if plan is not None:
            arguments["plan"] = plan
        result = await self.try_call(
            tool, arguments, on_progress=_steps(on_step), max_seconds=max_seconds
        )
        return _run(result)

    def close(self) -> None:
        """Take no more calls; leaving `connect` does this and then disconnects."""
        self._closed = True

    @asynccontextmanager
    async def _in_use(self, seconds: float, what: str) -> AsyncIterator[None]:
        if self._closed:
            raise ConnectionLost(message="this connection was closed: connect again")
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise TimedOut(
                message=f"{what} took longer than {seconds:g} s; what it did until then may stand"
            ) from None


@asynccontextmanager
async def connect(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    max_seconds: float = 120.0,
    start_seconds: float = 30.0,
    mode: str = "auto",
) -> AsyncIterator[Gate]:
    """Connect to an endpoint: a domain of a gateway, or any MCP server over HTTP.

    `url` is such as `http://127.0.0.1:8100/mcp/DOMAIN`, over MCP, or `grpc://127.0.0.1:8101/DOMAIN`
    (`grpcs://` over TLS), over the gateway's own protocol; all else is the same over both.
    `headers` go along with every request. `max_seconds` bounds each call that names none. `mode` is
    for MCP: `auto`, `legacy` (the handshake) or a protocol revision.

    Raises:
        Unreachable: No connection could be made.
    """
    async with AsyncExitStack() as ending:
        carrier: Carrier
        if url.partition(":")[0].lower() in _GRPC:
            opened = import_module("thoughtgate_client.grpc_carrier").grpc_carrier(
                url, headers=headers or {}, start_seconds=start_seconds
            )
            carrier = await ending.enter_async_context(opened)
        else:
            client = await ending.enter_async_context(
                connection(url, headers=headers or {}, start_seconds=start_seconds, mode=mode)
            )
            carrier = McpCarrier(client)
        gate = Gate(carrier, max_seconds)
        ending.callback(gate.close)
        yield gate


def _reporting(on_progress: OnProgress | None) -> Report | None:
    if on_progress is None:
        return None

    async def report(progress: Progress) -> None:
        answer = on_progress(progress)
        if inspect.isawaitable(answer):
            await answer

    return report


def _steps(on_step: OnStep | None) -> OnProgress | None:
    return None if on_step is None else lambda progress: on_step(step(progress))


def _run(result: ToolResult) -> RunResult:
    told = result.structured
    if not isinstance(told, Mapping) or not isinstance(told.get("run_id"), str):
        if result.is_error:
            raise ToolFailed(message=result.text, result=result)
        raise Garbled(message="the answer is not that of a run: does this domain have an engine")
    return RunResult(
        run_id=told["run_id"],
        status=str(told.get("status", "")),
        stop_reason=str(told.get("stop_reason", "")),
        answer=told.get("answer"),
        partial=bool(told.get("partial", False)),
        steps=tuple(one for one in told.get("steps") or () if isinstance(one, Mapping)),
        result=result,
    )
