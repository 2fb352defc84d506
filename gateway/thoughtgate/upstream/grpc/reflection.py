"""Asks a gRPC server what it speaks, by server reflection: its services, and their files.

Never takes more than its bounds, and never leaves the stream of questions open.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from thoughtgate.core.errors import UpstreamGarbled, UpstreamRefused
from thoughtgate.upstream.grpc.channel import Answers, Connection
from thoughtgate_proto.reflection.v1.reflection_pb2 import ReflectionRequest, ReflectionResponse

_log = logging.getLogger(__name__)

VERSIONS = ("grpc.reflection.v1", "grpc.reflection.v1alpha")
"""The versions that are tried, the newest first; their messages have one shape."""

_NOT_SERVED = frozenset({"UNIMPLEMENTED", "NOT_FOUND"})


class NoReflection(UpstreamGarbled):
    """The server answers, but tells nothing of itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Most that a server may tell: files, bytes of them together, questions, seconds for all."""

    files: int = 2_000
    size: int = 16 * 1024 * 1024
    questions: int = 4_000
    services: int = 2_000
    seconds: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a server told: by which version, its services, and serialised FileDescriptorProtos.

    The files are those of the chosen services with everything that they import, as far as the
    server has it, in the order of their names.
    """

    version: str
    services: tuple[str, ...]
    files: tuple[bytes, ...]


Choose = Callable[[Sequence[str]], Sequence[str]]
"""Takes the names of all services, and returns those whose files are wanted."""


async def reflect(connection: Connection, choose: Choose, bounds: Bounds | None = None) -> Told:
    """Return what a server tells of the services that `choose` chooses.

    Raises:
        NoReflection: It has no reflection.
        UpstreamGarbled: It told what is not reflection, or more than its bounds.
        UpstreamError: It could not be asked.
    """
    for version in VERSIONS:
        try:
            return await _ask(connection, version, choose, bounds or Bounds())
        except UpstreamRefused as error:
            if error.data.get("grpcStatus") not in _NOT_SERVED:
                raise
    raise NoReflection(
        message="it offers no server reflection; switch it on there, or give a descriptor set"
    )


async def _ask(connection: Connection, version: str, choose: Choose, bounds: Bounds) -> Told:
    path = f"/{version}.ServerReflection/ServerReflectionInfo"
    services = await _services(connection, path, bounds)
    questions: asyncio.Queue[bytes] = asyncio.Queue()
    with connection.answers(path, _each(questions), seconds=bounds.seconds) as answers:
        talk = _Talk(questions, answers, bounds)
        await talk.declared(choose(services))
        return Told(version=version, services=services, files=talk.ordered())


async def _services(connection: Connection, path: str, bounds: Bounds) -> tuple[str, ...]:
    """Return the names of all services.

    The question goes in a stream of its own, written and ended in one piece: where a server ends a
    stream that is still written to, grpcio may say INTERNAL instead of what the server said.
    """
    question = ReflectionRequest(list_services="*").SerializeToString()
    with connection.answers(path, question, seconds=bounds.seconds) as answers:
        answer = _parsed(await answers.next())
    if answer.WhichOneof("answer") != "services":
        raise UpstreamGarbled(message=f"its reflection lists no services{_why(answer)}")
    names = tuple(one.name for one in answer.services.services)
    if len(names) > bounds.services:
        raise UpstreamGarbled(message=f"its reflection lists more than {bounds.services} services")
    return names


async def _each(questions: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
    while True:
        yield await questions.get()


class _Talk:
    """One stream of questions, and the files that it has brought."""

    def __init__(self, questions: asyncio.Queue[bytes], answers: Answers, bounds: Bounds) -> None:
        self._questions = questions
        self._answers = answers
        self._bounds = bounds
        self._asked = 0
        self._size = 0
        self._files: dict[str, bytes] = {}
        self._services: set[str] = set()
        self._imports: list[str] = []
        self._sought: set[str] = set()

    async def declared(self, services: Sequence[str]) -> None:
        """Fetch the files that declare services, and all that those import.

        Some servers list services that they do not declare: those are left out, unless all are.
        """
        for name in services:
            await self._declared(name, needed=name == services[-1] and not self._files)
        while self._imports:
            name = self._imports.pop()
            if name in self._files:
                continue
            answer = await self._answer(ReflectionRequest(file_by_filename=name))
            if answer.WhichOneof("answer") == "files":  # else a file that everybody knows
                self._take(answer, f"file {name}")

    async def _declared(self, service: str, *, needed: bool) -> None:
        if service in self._services:
            return
        answer = await self._answer(ReflectionRequest(file_containing_symbol=service))
        if answer.WhichOneof("answer") == "failure" and not needed:
            _log.warning("a gRPC server lists the service %s and does not declare it", service)
            return
        self._take(answer, f"service {service}")

    def ordered(self) -> tuple[bytes, ...]:
        """Return the files in the order of their names."""
        return tuple(self._files[name] for name in sorted(self._files))

    async def _answer(self, question: ReflectionRequest) -> ReflectionResponse:
        self._asked += 1
        if self._asked > self._bounds.questions:
            raise UpstreamGarbled(
                message=f"its reflection takes more than {self._bounds.questions} questions"
            )
        self._questions.put_nowait(question.SerializeToString())
        return _parsed(await self._answers.next())

    def _take(self, answer: ReflectionResponse, what: str) -> None:
        if answer.WhichOneof("answer") != "files":
            raise UpstreamGarbled(message=f"its reflection does not tell of {what}{_why(answer)}")
        for data in answer.files.descriptors:
            try:
                self._keep(FileDescriptorProto.FromString(data), data)
            except DecodeError:
                raise UpstreamGarbled(
                    message=f"its reflection tells of {what} by what is no file descriptor"
                ) from None

    def _keep(self, file: FileDescriptorProto, data: bytes) -> None:
        if file.name in self._files:
            return
        self._files[file.name] = data
        self._size += len(data)
        if len(self._files) > self._bounds.files or self._size > self._bounds.size:
            raise UpstreamGarbled(
                message=f"its reflection tells more than {self._bounds.files} files or"
                f" {self._bounds.size} bytes"
            )
        prefix = f"{file.package}." if file.package else ""
        self._services.update(prefix + service.name for service in file.service)
        new = set(file.dependency) - self._sought
        self._sought |= new
        self._imports.extend(sorted(new))


def _parsed(answer: bytes | None) -> ReflectionResponse:
    if answer is None:
        raise UpstreamGarbled(message="its reflection ended without an answer")
    try:
        return ReflectionResponse.FromString(answer)
    except DecodeError:
        raise UpstreamGarbled(message="its reflection answered with no such message") from None


def _why(answer: ReflectionResponse) -> str:
    """Return the server's reason as a clause of a sentence: its code only, never its words."""
    if answer.WhichOneof("answer") != "failure":
        return ""
    return f" (error {answer.failure.code})"
