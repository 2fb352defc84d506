"""The table's tools and results as messages of the protocol, and requests as the table's.

Never waits and never runs a tool.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types

from thoughtgate_proto.tools.v1 import tool_server_pb2 as pb
from thoughtgate_servers import strict
from thoughtgate_servers.grpc.refusals import Refused, invalid_request


def dumps(value: object) -> bytes:
    """Return a JSON value as compact UTF-8 text."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def tool_message(tool: types.Tool) -> pb.Tool:
    """Return a tool as the protocol lists it."""
    message = pb.Tool(
        name=tool.name,
        title=tool.title or "",
        description=tool.description or "",
        input_schema_json=dumps(tool.input_schema),
    )
    if tool.output_schema is not None:
        message.output_schema_json = dumps(tool.output_schema)
    if tool.meta:
        message.meta_json = dumps(tool.meta)
    if tool.annotations is not None:
        hints = {
            "read_only": tool.annotations.read_only_hint,
            "destructive": tool.annotations.destructive_hint,
            "idempotent": tool.annotations.idempotent_hint,
            "open_world": tool.annotations.open_world_hint,
        }
        message.hints.CopyFrom(
            pb.ToolHints(**{name: hint for name, hint in hints.items() if hint is not None})
        )
    return message


def result_message(result: types.CallToolResult) -> pb.CallResult:
    """Return what a call gave."""
    blocks = [
        block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content
    ]
    message = pb.CallResult(content_json=dumps(blocks), is_error=result.is_error)
    if result.structured_content is not None:
        message.structured_content_json = dumps(result.structured_content)
    return message


def arguments_of(request: pb.CallToolRequest) -> dict[str, Any]:
    """Return the arguments of a call.

    Raises:
        Refused: They are no strict JSON object.
    """
    return _object(request.arguments_json, "arguments_json")


def meta_of(request: pb.CallToolRequest) -> dict[str, Any]:
    """Return what else the caller says.

    Raises:
        Refused: It is no strict JSON object.
    """
    return _object(request.meta_json, "meta_json")


def digest_of(name: str, arguments: Mapping[str, Any]) -> bytes:
    """Return a digest by which two calls of the same tool with the same arguments are the same."""
    text = json.dumps([name, arguments], sort_keys=True)
    return hashlib.sha256(text.encode()).digest()


def _object(data: bytes, field: str) -> dict[str, Any]:
    try:
        value = strict.loads(data or b"{}")
    except strict.NotStrict as failure:
        raise Refused(invalid_request(field, failure.why)) from None
    if not isinstance(value, dict):
        raise Refused(invalid_request(field, "not a JSON object"))
    return value
