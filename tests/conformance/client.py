"""The client that the suite starts for a client scenario: the SDK's, with thoughtgate in between.

Never judges the scenario, which the suite's server does; it says whether each call left a row and
a span. The suite gives the scenario's name in the environment and its server's URL as last word.
"""

import asyncio
import json
import operator
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from tests.conformance.servers import at, in_front
from tests.conformance.witness import taken

OLD: Final = "2025-11-25"
DIRECT: Final = "CONFORMANCE_DIRECT"
"""Set, it leaves the gateway out: what fails then as well is not the gateway's fault."""

FOLDER: Final = "CONFORMANCE_FOLDER"
"""Where what the calls left is written down."""

LIMIT: Final = 40.0
"""Seconds for one scenario, the gateway's start left out."""

INVALID: Final = (
    "invalid_empty_header",
    "invalid_object_header",
    "invalid_array_header",
    "invalid_null_header",
    "invalid_number_header",
    "invalid_duplicate_same_case",
    "invalid_duplicate_diff_case",
    "invalid_space_in_name",
    "invalid_colon_in_name",
    "invalid_non_ascii_name",
    "invalid_control_char_name",
)


@dataclass(slots=True)
class Caller:
    """The SDK's client, and how often it called each tool."""

    client: Client
    context: Mapping[str, Any]
    calls: Counter[str] = field(default_factory=Counter)

    async def call(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Call a tool and return its result."""
        self.calls[name] += 1
        return await self.client.call_tool(name, arguments or {})

    async def tools(self) -> list[types.Tool]:
        """Return the tools that are listed."""
        return (await self.client.list_tools()).tools


Drive: TypeAlias = Callable[[Caller], Awaitable[object]]


async def answer(
    context: ClientRequestContext, params: types.ElicitRequestParams
) -> types.ElicitResult:
    """Accept a form with its defaults, and say yes where it has none."""
    schema = getattr(params, "requested_schema", None) or {}
    fields = schema.get("properties", {})
    content = {name: each.get("default", True) for name, each in fields.items()}
    return types.ElicitResult(action="accept", content=content)


async def lists(caller: Caller) -> None:
    """Ask for the tools."""
    await caller.tools()


async def adds(caller: Caller) -> None:
    """Call the tool that adds."""
    await caller.tools()
    await caller.call("add_numbers", {"a": 5, "b": 3})


async def calls_only_tool(caller: Caller) -> None:
    """Call the only tool there is."""
    for tool in await caller.tools():
        await caller.call(tool.name)


async def asks_for_everything(caller: Caller) -> None:
    """List, call, read and get whatever is there."""
    for tool in await caller.tools():
        await caller.call(tool.name)
    for resource in (await caller.client.list_resources()).resources:
        await caller.client.read_resource(str(resource.uri))
    for prompt in (await caller.client.list_prompts()).prompts:
        await caller.client.get_prompt(prompt.name)


async def calls_as_told(caller: Caller) -> None:
    """Make the calls that the suite tells."""
    await caller.tools()
    for told in caller.context["toolCalls"]:
        await caller.call(told["name"], told["arguments"])


async def tries_bad_tools(caller: Caller) -> None:
    """Call the valid tool, and try each invalid one although nobody should list it."""
    names = [tool.name for tool in await caller.tools()]
    await caller.call("valid_tool", {"region": "eu"})
    for name in (*INVALID, *(name for name in names if name in INVALID)):
        try:
            await caller.client.call_tool(name, {"value": "x", "field1": "x", "field2": "y"})
        except (MCPError, ValueError, ValidationError, RuntimeError):
            continue


async def echoes_schema(caller: Caller) -> None:
    """Send a tool's input schema back as it arrived."""
    listed = {tool.name: tool.input_schema for tool in await caller.tools()}
    await caller.call("json_schema_echo", {"schema": listed["json_schema_2020_12_tool"]})


async def goes_in_rounds(caller: Caller) -> None:
    """Call the tools that ask back, with a plain one in between."""
    await caller.tools()
    await asyncio.gather(caller.call("test_mrtr_echo_state"), caller.call("test_mrtr_unrelated"))
    await caller.call("test_mrtr_no_state")
    await caller.call("test_mrtr_no_result_type")


SCENARIOS: Final[Mapping[str, Drive]] = {
    "initialize": lists,
    "tools_call": adds,
    "elicitation-sep1034-client-defaults": calls_only_tool,
    "sse-retry": calls_only_tool,
    "request-metadata": lists,
    "http-standard-headers": asks_for_everything,
    "http-custom-headers": calls_as_told,
    "http-invalid-tool-headers": tries_bad_tools,
    "json-schema-ref-no-deref": lists,
    "json-schema-2020-12-preservation": echoes_schema,
    "sep-2322-client-request-state": goes_in_rounds,
}


async def drive(name: str, version: str, url: str, context: Mapping[str, Any]) -> Counter[str]:
    """Do what a scenario is about, in the era of its version; return the calls made."""
    mode = "legacy" if version <= OLD else "auto"
    async with (
        asyncio.timeout(LIMIT),
        Client(url, mode=mode, elicitation_callback=answer) as client,
    ):
        caller = Caller(client, context)
        await SCENARIOS[name](caller)
    return caller.calls


def main() -> int:
    """Drive one scenario; return 1 when a call left no row or no span."""
    url, environ = sys.argv[-1], os.environ
    name, version = (
        environ["MCP_CONFORMANCE_SCENARIO"],
        environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", OLD),
    )
    context = json.loads(environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    if environ.get(DIRECT):
        asyncio.run(drive(name, version, url, context))
        return 0
    with in_front(at(url)) as front:
        try:
            calls = asyncio.run(drive(name, version, front.url, context))
            made = {f"tools/call {tool}": count for tool, count in calls.items()}
            traces = taken(front, lambda: made)
        finally:
            sys.stderr.write(front.running.words)
    complaints = traces.complaints(operator.ge)
    written = {"totals": traces.totals, "complaints": complaints}
    path = Path(environ[FOLDER]) / f"{name}-{version}.json"
    path.write_text(json.dumps(written), encoding="utf-8")
    sys.stderr.writelines(f"{line}\n" for line in complaints)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
