"""What a reflected gRPC server offers: its wanted methods as tools, by the tools' names.

Never changes once it is made: a server that declares something else gets another one.
"""

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError

from thoughtgate.core.errors import ConfigError, SchemaRejected, UpstreamGarbled
from thoughtgate.core.servers import GrpcTransport
from thoughtgate.protos.descriptors import Descriptors, Method
from thoughtgate.protos.tools import tool_of
from thoughtgate.upstream.grpc.wanted import EVERYTHING, Wanted
from thoughtgate.wire.strict import dumps

_log = logging.getLogger(__name__)

MAX_METHODS = 2_000
"""Methods of one server that become tools."""

DESCRIBED = "descriptor set"
"""What stands for the version of reflection where a file stands for it."""

MAX_BYTES = 16 * 1024 * 1024
"""Bytes of their definitions after which no more of them do."""

MAX_SET = 32 * 1024 * 1024
"""Bytes of the largest descriptor set that is read."""

_SHOWN = 8
"""Names that a message lists at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What a server declares: all its services, and the files of those that are wanted."""

    services: tuple[str, ...]
    files: tuple[bytes, ...]

    @property
    def digest(self) -> str:
        """Return what tells this from anything else that a server could declare."""
        whole = hashlib.sha256(dumps(sorted(self.services)))
        for data in self.files:
            whole.update(hashlib.sha256(data).digest())
        return whole.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """The methods by the names of their tools; `tools` is the JSON of each, in their order.

    `digest` is that of what was declared.
    """

    digest: str
    descriptors: Descriptors
    methods: dict[str, Method] = field(default_factory=dict)
    tools: list[bytes] = field(default_factory=list)

    def page(self) -> bytes:
        """Return the result of `tools/list`."""
        return b"".join((b'{"tools":[', b",".join(self.tools), b"]}"))


def offer(declared: Declared, transport: GrpcTransport) -> Offered:
    """Return what a server offers that declares itself so; takes CPU time only.

    Raises:
        UpstreamGarbled: The files cannot be used, or hold nothing of what is wanted.
    """
    try:
        descriptors = Descriptors.of(declared.files)
    except SchemaRejected as error:
        raise UpstreamGarbled(message=f"its descriptors cannot be used: {error.message}") from None
    made = Offered(digest=declared.digest, descriptors=descriptors)
    size = 0
    for method in _methods(declared, descriptors, transport):
        if len(made.methods) == MAX_METHODS or size > MAX_BYTES:
            _log.warning("only the first %d methods become tools", len(made.methods))
            break
        tool = tool_of(method, descriptors, streaming=transport.streaming)
        if made.methods.setdefault(tool["name"], method) is method:
            made.tools.append(dumps(tool))
            size += len(made.tools[-1])
    if not made.methods:
        raise UpstreamGarbled(message=_nothing(declared.services, transport))
    return made


def wanted_of(transport: GrpcTransport) -> Wanted:
    """Return what is wanted: of a descriptor set everything, unless it is said what."""
    return Wanted(transport.reflect or (EVERYTHING,))


def read_set(path: str) -> Declared:
    """Return what a descriptor set declares, with the comments that it holds.

    Raises:
        ConfigError: It cannot be read, is too large, or is none.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_SET + 1)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise ConfigError(message=f"descriptor set {path} cannot be read: {reason}") from None
    if len(data) > MAX_SET:
        raise ConfigError(message=f"descriptor set {path} is longer than {MAX_SET} bytes")
    declared = _split(data)
    if not declared.files:
        raise ConfigError(
            message=f"{path} is no descriptor set; make one by"
            " `protoc --include_imports --include_source_info --descriptor_set_out=FILE …`"
        )
    return declared


def _split(data: bytes) -> Declared:
    try:
        files = FileDescriptorSet.FromString(data).file
    except DecodeError:
        return Declared(services=(), files=())
    names = (f"{file.package}.{one.name}".strip(".") for file in files for one in file.service)
    return Declared(
        services=tuple(names),
        files=tuple(file.SerializeToString(deterministic=True) for file in files),
    )


def _methods(
    declared: Declared, descriptors: Descriptors, transport: GrpcTransport
) -> Iterator[Method]:
    """Yield the methods that are wanted and allowed, and say of names that are not there.

    A file may declare services that this server does not have.
    """
    wanted = wanted_of(transport)
    listed = set(declared.services) & set(descriptors.services())
    for name in wanted.missing(listed):
        _log.warning("the service %s is wanted, but not offered", name)
    for service in wanted.services(listed):
        methods = descriptors.methods(service)
        for name in wanted.strange(service, [method.name for method in methods]):
            _log.warning("the method %s/%s is wanted, but not offered", service, name)
        for method in methods:
            both = method.client_streaming and method.server_streaming
            if wanted.method(service, method.name) and (transport.bidi or not both):
                yield method


def _nothing(listed: Sequence[str], transport: GrpcTransport) -> str:
    """Return why nothing becomes a tool, and what could."""
    offered = Wanted((EVERYTHING,)).services(listed)
    if not offered:
        return "it offers no service that could become tools"
    if wanted_of(transport).services(listed):
        return (
            "none of the methods that are wanted can become a tool; see `thoughtgate grpc describe`"
        )
    shown = ", ".join((*offered[:_SHOWN], *("…" for _ in offered[_SHOWN : _SHOWN + 1])))
    return f"it offers none of the services that are wanted; it has {shown}"
