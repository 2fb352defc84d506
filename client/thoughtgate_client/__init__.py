"""A small async client for a gateway, over MCP or gRPC; works with any MCP server over HTTP.

Never imports the gateway.

    async with connect("http://127.0.0.1:8100/mcp/ops") as gate:
        print([tool.name for tool in await gate.tools()])
        run = await gate.reason("how many errors last week", on_step=lambda step: print(step.text))
        print(run.answer)
"""

from thoughtgate_client.errors import (
    ConnectionLost,
    Garbled,
    GateError,
    Refused,
    TimedOut,
    ToolFailed,
    Unreachable,
)
from thoughtgate_client.gate import Gate, connect
from thoughtgate_client.values import Progress, RunResult, Step, StepKind, Tool, ToolResult

__all__ = [
    "ConnectionLost",
    "Garbled",
    "Gate",
    "GateError",
    "Progress",
    "Refused",
    "RunResult",
    "Step",
    "StepKind",
    "TimedOut",
    "Tool",
    "ToolFailed",
    "ToolResult",
    "Unreachable",
    "connect",
]
