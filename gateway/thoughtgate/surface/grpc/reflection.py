"""Server reflection, in both of its versions: clients learn from it what the gateway speaks.

Never tells of any service but the gateway's own face.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import grpc
from google.protobuf.descriptor import FileDescriptor

from thoughtgate.surface.grpc.rpcs import Rpc, Rpcs
from thoughtgate.surface.grpc.servicer import SERVICE, read
from thoughtgate_proto.gateway.v1 import gateway_pb2
from thoughtgate_proto.reflection.v1.reflection_pb2 import (
    ExtensionNumbers,
    Failure,
    Files,
    ReflectionRequest,
    ReflectionResponse,
    ServiceName,
    Services,
)

REFLECTIONS: Final = (
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
)


class ReflectionService:
    """Answers from the descriptors of the gateway's face and of what they import."""

    def __init__(self) -> None:
        self._files = {one.name: one for one in _with_imports(gateway_pb2.DESCRIPTOR)}

    def handlers(self, rpcs: Rpcs) -> Iterator[grpc.GenericRpcHandler]:
        """Yield what a gRPC server takes, for each version."""
        for service in REFLECTIONS:
            serve: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(
                rpcs.served(self._inform)
            )
            methods = {"ServerReflectionInfo": serve}
            yield grpc.method_handlers_generic_handler(service, methods)

    async def _inform(self, requests: AsyncIterator[bytes], rpc: Rpc) -> None:
        async for data in requests:
            request = read(ReflectionRequest, data)
            answer = self._answer(request)
            answer.valid_host = request.host
            answer.original_request.CopyFrom(request)
            await rpc.write(answer.SerializeToString())

    def _answer(self, request: ReflectionRequest) -> ReflectionResponse:
        match request.WhichOneof("question"):
            case "list_services":
                return ReflectionResponse(services=Services(services=[ServiceName(name=SERVICE)]))
            case "file_by_filename":
                return _files(self._files.get(request.file_by_filename))
            case "file_containing_symbol":
                return _files(self._holding(request.file_containing_symbol))
            case "all_extension_numbers_of_type":
                name = request.all_extension_numbers_of_type
                if self._holding(name) is not None:
                    numbers = ExtensionNumbers(base_type_name=name)
                    return ReflectionResponse(extension_numbers=numbers)
        return _files(None)

    def _holding(self, symbol: str) -> FileDescriptor | None:
        """Return the file that declares a symbol."""
        try:
            found = gateway_pb2.DESCRIPTOR.pool.FindFileContainingSymbol(symbol)
        except KeyError:
            return None
        return self._files.get(found.name)


def _files(wanted: FileDescriptor | None) -> ReflectionResponse:
    if wanted is None:
        number, _ = grpc.StatusCode.NOT_FOUND.value
        return ReflectionResponse(failure=Failure(code=number, message="nothing of that name"))
    descriptors = [one.serialized_pb for one in _with_imports(wanted)]
    return ReflectionResponse(files=Files(descriptors=descriptors))


def _with_imports(file: FileDescriptor) -> list[FileDescriptor]:
    """Return a file and all that it imports, each once, the file first."""
    found, waiting = {file.name: file}, [file]
    while waiting:
        for one in waiting.pop().dependencies:
            if one.name not in found:
                found[one.name] = one
                waiting.append(one)
    return list(found.values())
