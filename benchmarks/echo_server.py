"""The upstream of the benchmarks: one tool `echo` on the SDK's own server.

    python echo_server.py PORT [default|fast]

`fast` is uvloop, httptools and JSON replies; `default` what the SDK does by itself.
"""

import sys
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server import Server

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """List the one tool."""
    del context, params
    tool = types.Tool(
        name="echo", description="Echo a text", input_schema=SCHEMA, output_schema=SCHEMA
    )
    return types.ListToolsResult(tools=[tool], ttl_ms=60_000, cache_scope="private")


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Return the text."""
    del context
    text = str((params.arguments or {})["text"])
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content={"text": text}
    )


def main(port: int, kind: str) -> None:
    """Serve until killed."""
    fast = kind == "fast"
    server: Server[Any] = Server(
        "echo",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda _: SCHEMA,  # spares the SDK a listing for every call
    )
    uvicorn.run(
        server.streamable_http_app(json_response=fast),
        host="127.0.0.1",
        port=port,
        log_level="error",
        loop="uvloop" if fast else "asyncio",
        http="httptools" if fast else "h11",
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "fast")
