"""The gRPC server of the benchmarks: one tool, natively and as a method of a service of its own.

Never answers the two differently: the same text in, the same result out, with the same schemas.

    python -m benchmarks.grpc_echo PORT
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from grpc_reflection.v1alpha import reflection

from thoughtgate.core.servers import Streaming
from thoughtgate.protos.descriptors import Descriptors
from thoughtgate.protos.tools import tool_name, tool_of
from thoughtgate_proto.tools.v1 import tool_server_pb2, tool_server_pb2_grpc

SERVICE, METHOD = "bench.v1.Echo", "Say"
PATH = f"/{SERVICE}/{METHOD}"


def _file() -> FileDescriptorProto:
    package, _, service = SERVICE.rpartition(".")
    file = FileDescriptorProto(name="bench/v1/echo.proto", package=package, syntax="proto3")
    file.message_type.add(name="Text").field.add(
        name="text",
        number=1,
        type=FieldDescriptorProto.TYPE_STRING,
        label=FieldDescriptorProto.LABEL_OPTIONAL,
    )
    kind = f".{package}.Text"
    file.service.add(name=service).method.add(name=METHOD, input_type=kind, output_type=kind)
    return file


FILE = _file()
Text: Any = message_factory.GetMessageClass(
    descriptor_pool
    .Default()
    .AddSerializedFile(FILE.SerializeToString())
    .message_types_by_name["Text"]
)
DECLARED = Descriptors.of([FILE.SerializeToString()])
SAY = DECLARED.methods(SERVICE)[0]
TOOL = tool_name(SAY)


def result_of(text: str) -> tool_server_pb2.CallResult:
    """Return the result of the native tool: what the gateway makes of the method's answer."""
    structured = _dumps({"text": text})
    content = [{"type": "text", "text": structured.decode()}]
    return tool_server_pb2.CallResult(
        content_json=_dumps(content), structured_content_json=structured
    )


class Native(tool_server_pb2_grpc.ToolServerServicer):
    """The tool as `thoughtgate.tools.v1` has it."""

    async def GetServerInfo(self, request: Any, context: Any) -> Any:
        """Say who is there."""
        return tool_server_pb2.GetServerInfoResponse(name="echo", version="1")

    async def ListTools(self, request: Any, context: Any) -> Any:
        """List the one tool, with the schemas of the method."""
        tool = tool_of(SAY, DECLARED, streaming=Streaming.ARRAY)
        listed = tool_server_pb2.Tool(
            name=TOOL,
            input_schema_json=_dumps(tool["inputSchema"]),
            output_schema_json=_dumps(tool["outputSchema"]),
        )
        return tool_server_pb2.ListToolsResponse(tools=[listed], revision="1")

    async def CallTool(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """Give the text back."""
        text = json.loads(request.arguments_json)["text"]
        yield tool_server_pb2.CallToolResponse(result=result_of(text))

    async def WatchTools(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """Tell the one revision, and nothing more."""
        yield tool_server_pb2.WatchToolsResponse(revision="1")
        await asyncio.Event().wait()


async def say(request: Any, context: Any) -> Any:
    """Give the text back, as the method does."""
    return Text(text=request.text)


def server_on(port: int) -> tuple[grpc.aio.Server, int]:
    """Return the server, to be started, and its port; 0 takes one that is free."""
    server = grpc.aio.server()
    tool_server_pb2_grpc.add_ToolServerServicer_to_server(Native(), server)
    handler = grpc.unary_unary_rpc_method_handler(
        say, request_deserializer=Text.FromString, response_serializer=Text.SerializeToString
    )
    server.add_registered_method_handlers(SERVICE, {METHOD: handler})
    server.add_generic_rpc_handlers((
        grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),
    ))
    reflection.enable_server_reflection([SERVICE, reflection.SERVICE_NAME], server)
    return server, server.add_insecure_port(f"127.0.0.1:{port}")


async def serve(port: int) -> None:
    """Serve until killed."""
    server, _ = server_on(port)
    await server.start()
    await server.wait_for_termination()


def _dumps(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
