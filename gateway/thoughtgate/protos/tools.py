"""Methods as tools: name, description, schemas and hints of an MCP tool object.

Never decides which methods are offered; names are the same wherever a method is seen.
"""

import hashlib
from typing import Final

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Streaming
from thoughtgate.core.tools import Effect
from thoughtgate.protos.descriptors import Descriptors, Method
from thoughtgate.protos.kinds import Schema

MAX_NAME: Final = 64
_HASH: Final = 8


def tool_name(method: Method) -> str:
    """Return the tool's name: `package-Service-Method`, or its end and a hash where that is long.

    No identifier of protobuf has a `-`, so two methods never share a name.
    """
    name = method.full_name.replace(".", "-")
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(method.full_name.encode()).hexdigest()[:_HASH]
    return f"{name[-(MAX_NAME - _HASH - 1) :].lstrip('-_')}-{digest}"


def tool_of(method: Method, descriptors: Descriptors, *, streaming: Streaming) -> JsonObject:
    """Return the MCP tool object of a method.

    Where the input schema would be larger than one may be, it is one that no registry admits and
    that says why; an output schema that is too large is left out.
    """
    tool: Schema = {
        "name": tool_name(method),
        "title": f"{method.service.rpartition('.')[2]}.{method.name}",
        "description": _description(method, streaming),
        "inputSchema": _input(method, descriptors),
    }
    if (produced := _output(method, descriptors, streaming)) is not None:
        tool["outputSchema"] = produced
    if hints := _hints(method):
        tool["annotations"] = hints
    return tool


def _description(method: Method, streaming: Streaming) -> str:
    said = [method.comment or f"Calls {method.name} of the gRPC service {method.service}."]
    if method.client_streaming:
        said.append("Takes any number of messages.")
    if method.server_streaming:
        last = streaming is Streaming.LAST
        said.append("Returns the last message." if last else "Returns messages as they come.")
    if method.deprecated:
        said.append("Deprecated.")
    return " ".join(said)


def _input(method: Method, descriptors: Descriptors) -> Schema:
    try:
        schema = descriptors.schemas.accepted(descriptors.message(method.request))
    except SchemaRejected as rejected:
        return {"type": "object", "$ref": f"#/$defs/{method.request}: {rejected.message}"}
    return _many(schema) if method.client_streaming else schema


def _output(method: Method, descriptors: Descriptors, streaming: Streaming) -> Schema | None:
    try:
        schema = descriptors.schemas.returned(descriptors.message(method.response))
    except SchemaRejected:
        return None
    if not method.server_streaming or streaming is Streaming.LAST:
        return schema
    many = _many(schema)
    many["properties"]["truncated"] = {
        "type": "boolean",
        "description": "Whether the stream had more than fits.",
    }
    many["required"].append("truncated")
    return many


def _many(schema: Schema) -> Schema:
    """Return the schema of an array of messages, definitions at the root."""
    defs = schema.pop("$defs", None)
    many: Schema = {
        "type": "object",
        "properties": {"messages": {"type": "array", "items": schema}},
        "required": ["messages"],
        "additionalProperties": False,
    }
    if defs:
        many["$defs"] = defs
    return many


def _hints(method: Method) -> JsonObject:
    """Return what `idempotency_level` says, as the annotations of a tool."""
    if method.effect is Effect.READ:
        return {"readOnlyHint": True, "idempotentHint": True}
    if method.effect is Effect.IDEMPOTENT:
        return {"readOnlyHint": False, "idempotentHint": True}
    return {}
