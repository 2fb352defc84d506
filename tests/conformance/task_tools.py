"""The fixture's tools that work as tasks for clients that take one.

Never makes a task of a plain tool, whatever the client hints at.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.shared.exceptions import MCPError

from tests.conformance import samples
from tests.conformance.asking import Context, asked, elicitation
from tests.conformance.tasks import Job, Task, Tasks, declares_tasks, require_tasks

Reply: TypeAlias = types.CallToolResult | types.InputRequiredResult | dict[str, Any]
Behave: TypeAlias = Callable[[Context, types.CallToolRequestParams], Awaitable[Reply]]

COMPUTES: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"seconds": {"type": "number"}, "label": {"type": "string"}},
    "required": ["seconds"],
}
"""The input schema of the tool that takes its time."""


class TaskTools:
    """What the tools do, by their names."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    async def greet(self, context: Context, params: types.CallToolRequestParams) -> Reply:
        """Greet at once."""
        return _text(f"Hello, {(params.arguments or {}).get('name')}!")

    async def slow_compute(self, context: Context, params: types.CallToolRequestParams) -> Reply:
        """Take as long as told."""
        arguments = params.arguments or {}

        async def compute(task: Task) -> types.CallToolResult:
            try:
                async with asyncio.timeout(float(arguments["seconds"])):
                    await asyncio.Event().wait()
            except TimeoutError:
                pass
            return _text(f"computed {arguments.get('label')}")

        return await self._done(context, compute)

    async def failing_job(self, context: Context, params: types.CallToolRequestParams) -> Reply:
        """Fail as a tool does, for clients that take tasks only."""
        require_tasks(context)

        async def fail(task: Task) -> types.CallToolResult:
            return types.CallToolResult(content=[samples.text("it failed")], is_error=True)

        return self._tasks.start(fail)

    async def protocol_error_job(
        self, context: Context, params: types.CallToolRequestParams
    ) -> Reply:
        """Fail as a protocol does."""

        async def fail(task: Task) -> types.CallToolResult:
            raise MCPError(types.INTERNAL_ERROR, "it broke")

        return await self._done(context, fail)

    async def confirm_delete(self, context: Context, params: types.CallToolRequestParams) -> Reply:
        """Ask once in the middle of the work."""
        return await self._asks(context, "confirm")

    async def multi_input(self, context: Context, params: types.CallToolRequestParams) -> Reply:
        """Ask for two things at once in the middle of the work."""
        return await self._asks(context, "first", "second")

    async def test_tool_with_task(
        self, context: Context, params: types.CallToolRequestParams
    ) -> Reply:
        """Ask first, and go on as a task."""
        require_tasks(context)
        stage = {"user_name": elicitation("What is your name?", samples.form("name"))}
        answers = await asked(context, params, [stage], stateful=True)
        if isinstance(answers, types.InputRequiredResult):
            return answers
        words = answers["user_name"].model_dump_json(by_alias=True)

        async def work(task: Task) -> types.CallToolResult:
            return _text(f"worked for {words}")

        return self._tasks.start(work)

    async def _asks(self, context: Context, *keys: str) -> Reply:
        require_tasks(context)

        async def ask(task: Task) -> types.CallToolResult:
            form = samples.form("confirm", "boolean")
            answers = await task.ask({key: elicitation("Please confirm", form) for key in keys})
            return _text(f"answered: {sorted(answers)}")

        return self._tasks.start(ask)

    async def _done(self, context: Context, job: Job) -> Reply:
        """Work as a task for a client that takes one, else at once."""
        return self._tasks.start(job) if declares_tasks(context) else await job(Task())


def _text(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[samples.text(words)])
