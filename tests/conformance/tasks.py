"""Long work on the fixture: the tasks extension, in memory.

Never served to a client of the handshake era, nor to one that does not declare the extension.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias
from uuid import uuid4

import mcp_types as types
from mcp.server import Server
from mcp.shared.exceptions import MCPError

from tests.conformance.asking import Context, modern

EXTENSION: Final = "io.modelcontextprotocol/tasks"
KEPT: Final = 256
"""How many tasks are remembered."""

TTL_MS: Final = 60_000
POLL_MS: Final = 100
FINAL: Final = frozenset({"completed", "failed", "cancelled"})

Wire: TypeAlias = dict[str, Any]
Job: TypeAlias = Callable[["Task"], Awaitable[types.CallToolResult]]


class TaskParams(types.RequestParams):
    """Whatever is asked about a task."""

    task_id: str
    input_responses: dict[str, Any] | None = None


@dataclass(slots=True)
class Task:
    """One piece of work, and what it waits for."""

    id: str = field(default_factory=lambda: uuid4().hex)
    status: str = "working"
    created: str = field(default_factory=lambda: _now())
    ended: Wire = field(default_factory=dict)
    pending: dict[str, types.InputRequest] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    work: asyncio.Task[None] | None = None

    async def ask(self, requests: Mapping[str, types.InputRequest]) -> dict[str, Any]:
        """Wait until the client has answered every request."""
        self.pending = dict(requests)
        self.status = "input_required"
        self.answered.clear()
        await self.answered.wait()
        self.status = "working"
        return self.answers

    def take(self, responses: Mapping[str, Any]) -> None:
        """Take answers, those to what was not asked left aside."""
        for key in [key for key in self.pending if key in responses]:
            del self.pending[key]
            self.answers[key] = responses[key]
        if not self.pending:
            self.answered.set()

    def base(self) -> Wire:
        """Return what every message about the task holds."""
        return {
            "taskId": self.id,
            "status": self.status,
            "createdAt": self.created,
            "lastUpdatedAt": _now(),
            "ttlMs": TTL_MS,
            "pollIntervalMs": POLL_MS,
        }

    def told(self) -> Wire:
        """Return the task as `tasks/get` does."""
        asked = {
            key: request.model_dump(by_alias=True, mode="json", exclude_none=True)
            for key, request in self.pending.items()
        }
        waits = {"inputRequests": asked} if self.status == "input_required" else {}
        return {"resultType": "complete", **self.base(), **waits, **self.ended}


class Tasks:
    """The tasks of a server, and the methods of the extension."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    def serve(self, server: Server[Any]) -> None:
        """Add the methods to a server, and declare the extension."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self.get)
        server.add_request_handler("tasks/update", TaskParams, self.update)
        server.add_request_handler("tasks/cancel", TaskParams, self.cancel)

    def start(self, job: Job) -> Wire:
        """Begin a job and return what `tools/call` answers."""
        task = Task()
        while len(self._tasks) >= KEPT:
            self._tasks.pop(next(iter(self._tasks)))
        self._tasks[task.id] = task
        task.work = asyncio.create_task(_run(task, job))
        return {"resultType": "task", **task.base()}

    async def get(self, context: Context, params: TaskParams) -> Wire:
        """Return how a task stands."""
        return self._found(context, params).told()

    async def update(self, context: Context, params: TaskParams) -> Wire:
        """Take what the client answers to a task's requests."""
        self._found(context, params).take(params.input_responses or {})
        return {"resultType": "complete"}

    async def cancel(self, context: Context, params: TaskParams) -> Wire:
        """End a task; one that has ended stays as it is."""
        task = self._found(context, params)
        if task.status not in FINAL:
            task.status = "cancelled"
            if task.work is not None:
                task.work.cancel()
        return {"resultType": "complete"}

    def _found(self, context: Context, params: TaskParams) -> Task:
        if not modern(context):
            raise MCPError(types.METHOD_NOT_FOUND, f"no method {context.method}")
        require_tasks(context)
        named = None if context.request is None else context.request.headers.get("mcp-name", "")
        if named not in {None, params.task_id}:
            raise MCPError(types.HEADER_MISMATCH, "mcp-name is not the task of the body")
        if params.task_id not in self._tasks:
            raise MCPError(types.INVALID_PARAMS, f"no task {params.task_id}")
        return self._tasks[params.task_id]


def declares_tasks(context: Context) -> bool:
    """Tell whether the client takes a task for an answer."""
    capabilities = context.session.client_capabilities
    extensions = (capabilities and capabilities.extensions) or {}
    return modern(context) and EXTENSION in extensions


def require_tasks(context: Context) -> None:
    """Refuse who does not declare the extension.

    Raises:
        MCPError: The client does not.
    """
    if declares_tasks(context):
        return
    code = types.MISSING_REQUIRED_CLIENT_CAPABILITY
    needed: Wire = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    raise MCPError(code, "the client does not declare tasks", needed)


async def _run(task: Task, job: Job) -> None:
    try:
        result = await job(task)
        shown = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        task.status, task.ended = "completed", {"result": shown}
    except MCPError as error:
        failure = {"code": error.code, "message": error.message}
        task.status, task.ended = "failed", {"error": failure}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
