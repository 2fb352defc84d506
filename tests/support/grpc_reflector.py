"""Server reflection for tests: as servers do it, version by version, and as they should not.

Never knows the gateway.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tests.support.grpc_orders import V1
from thoughtgate_proto.reflection.v1.reflection_pb2 import (
    Failure,
    Files,
    ReflectionRequest,
    ReflectionResponse,
    ServiceName,
    Services,
)

NOT_FOUND = 5


@dataclass
class Reflector:
    """Tells of files by name; `whole` sends with each file what it imports.

    `answer` may answer a question its own way, or return None. `asked` are the questions that came;
    `open` counts streams that are not over.
    """

    files: dict[str, bytes]
    services: Iterable[str]
    version: str = V1
    whole: bool = False
    answer: Callable[[ReflectionRequest], ReflectionResponse | None] | None = None
    asked: list[ReflectionRequest] = field(default_factory=list)
    open: int = 0

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the handler of the service."""
        handler = grpc.stream_stream_rpc_method_handler(
            self._talk,
            request_deserializer=ReflectionRequest.FromString,
            response_serializer=_bytes,
        )
        return grpc.method_handlers_generic_handler(
            f"{self.version}.ServerReflection", {"ServerReflectionInfo": handler}
        )

    async def _talk(
        self, requests: AsyncIterator[ReflectionRequest], context: Any
    ) -> AsyncIterator[ReflectionResponse]:
        self.open += 1
        try:
            async for request in requests:
                self.asked.append(request)
                own = self.answer(request) if self.answer is not None else None
                yield own if own is not None else self._answer(request)
        finally:
            self.open -= 1

    def _answer(self, request: ReflectionRequest) -> ReflectionResponse:
        match request.WhichOneof("question"):
            case "list_services":
                named = [ServiceName(name=name) for name in self.services]
                return ReflectionResponse(services=Services(services=named))
            case "file_by_filename":
                return self._files(self.files.get(request.file_by_filename))
            case _:
                return self._files(self._declaring(request.file_containing_symbol))

    def _declaring(self, symbol: str) -> bytes | None:
        for data in self.files.values():
            file = FileDescriptorProto.FromString(data)
            if symbol in {f"{file.package}.{one.name}" for one in file.service}:
                return data
        return None

    def _files(self, data: bytes | None) -> ReflectionResponse:
        if data is None:
            return failure(NOT_FOUND)
        found = [data, *self.files.values()] if self.whole else [data]
        return ReflectionResponse(files=Files(descriptors=found))


def failure(code: int) -> ReflectionResponse:
    """Return the answer that there is none."""
    return ReflectionResponse(failure=Failure(code=code, message="secret words"))


def chain(length: int) -> Mapping[str, bytes]:
    """Return files of which each imports the next, and the last the first."""
    made = {}
    for at in range(length):
        file = FileDescriptorProto(name=f"f{at}.proto", package="chain", syntax="proto3")
        file.dependency.append(f"f{(at + 1) % length}.proto")
        made[file.name] = file.SerializeToString()
    first = FileDescriptorProto.FromString(made["f0.proto"])
    first.service.add(name="Loop")
    return {**made, "f0.proto": first.SerializeToString()}


def _bytes(message: ReflectionResponse | bytes) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()


async def never(*_: object) -> None:
    """Wait for ever."""
    await asyncio.Event().wait()
