"""Services and messages of one upstream, in a pool of its own.

Never shared: what one upstream calls a message says nothing about another's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, MethodOptions

from thoughtgate.core.errors import Missing, SchemaRejected
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.tools import Effect
from thoughtgate.protos import files as protofiles
from thoughtgate.protos.comments import comments_of
from thoughtgate.protos.fields import SPECIAL, is_entry
from thoughtgate.protos.reading import Readers
from thoughtgate.protos.schemas import Schemas
from thoughtgate.protos.writing import Writers

_EFFECTS: Mapping[int, Effect] = {
    MethodOptions.NO_SIDE_EFFECTS: Effect.READ,
    MethodOptions.IDEMPOTENT: Effect.IDEMPOTENT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One RPC: `path` is what is called, `request` and `response` are full names of messages.

    `effect` is what its `idempotency_level` says, None when it says nothing; `comment` is empty
    when the descriptors hold none.
    """

    service: str
    name: str
    request: str
    response: str
    client_streaming: bool = False
    server_streaming: bool = False
    comment: str = ""
    deprecated: bool = False
    effect: Effect | None = None

    @property
    def path(self) -> str:
        """Return `/package.Service/Method`."""
        return f"/{self.service}/{self.name}"

    @property
    def full_name(self) -> str:
        """Return `package.Service.Method`."""
        return f"{self.service}.{self.name}"


class Descriptors:
    """A private pool of descriptors, within bounds, and how its messages become JSON and back."""

    def __init__(
        self,
        pool: descriptor_pool.DescriptorPool,
        services: Mapping[str, tuple[Method, ...]],
        comments: Mapping[str, str],
        types: tuple[str, ...],
    ) -> None:
        self.pool = pool
        self.schemas = Schemas(pool, comments, types)
        self.writers = Writers(pool)
        self.readers = Readers(pool)
        self._services = services

    @classmethod
    def of(cls, files: Iterable[bytes]) -> "Descriptors":
        """Return the descriptors in serialised FileDescriptorProtos, which come in any order.

        Raises:
            SchemaRejected: They cannot be used; `rule` and the message say why.
        """
        pool = descriptor_pool.DescriptorPool()
        order = protofiles.ordered(protofiles.read(files))
        comments: dict[str, str] = {}
        names: list[str] = []
        services: list[str] = []
        for file in order:
            _add(pool, file)
            comments.update(comments_of(file))
            if file.name not in protofiles.OF_OPTIONS:
                names.extend(protofiles.messages_of(file))
            scope = f"{file.package}." if file.package else ""
            services.extend(scope + service.name for service in file.service)
        _check_special(pool)
        return cls(
            pool,
            {name: _methods(pool, name, comments) for name in services},
            comments,
            tuple(sorted(names)),
        )

    def services(self) -> tuple[str, ...]:
        """Return the full names of all services, in the order of the files."""
        return tuple(self._services)

    def methods(self, service: str) -> tuple[Method, ...]:
        """Return the methods of a service, in its own order.

        Raises:
            Missing: There is no such service.
        """
        try:
            return self._services[service]
        except KeyError:
            raise Missing(message=f"there is no service {service[:120]}") from None

    def message(self, name: str) -> Descriptor:
        """Return a message by its full name.

        Raises:
            Missing: There is no such message.
        """
        try:
            return self.pool.FindMessageTypeByName(name)
        except KeyError:
            raise Missing(message=f"there is no message {name[:120]}") from None


def encode(descriptors: Descriptors, message_name: str, value: JsonValue) -> bytes:
    """Return the wire form of a message.

    Types that are no JSON object, such as Timestamp, stand under `value` when they are the whole.

    Raises:
        ProtoValueError: The value does not fit; its pointer says where.
    """
    return descriptors.writers.encode(descriptors.message(message_name), value)


def decode(descriptors: Descriptors, message_name: str, wire: bytes) -> JsonObject:
    """Return the JSON of a message, as its output schema promises it.

    Raises:
        UpstreamGarbled: The bytes are no such message, or one that JSON cannot say.
    """
    return descriptors.readers.decode(descriptors.message(message_name), wire)


def _add(pool: descriptor_pool.DescriptorPool, file: FileDescriptorProto) -> None:
    """Add a file without its comments, which the pool would hold for ever."""
    bare = FileDescriptorProto()
    bare.CopyFrom(file)
    bare.ClearField("source_code_info")
    try:
        pool.Add(bare)
    except TypeError as error:
        raise SchemaRejected(
            rule="bad_descriptor",
            message=f"the descriptor of {file.name[:120]} does not hold together: "
            f"{str(error)[-200:]}",
            pointer=file.name,
        ) from None


def _check_special(pool: descriptor_pool.DescriptorPool) -> None:
    """Refuse well-known types that are others than everybody's: their JSON is not of fields."""
    ours = descriptor_pool.Default()
    for name in SPECIAL:
        try:
            found = pool.FindMessageTypeByName(name)
        except KeyError:
            continue
        if _fields_of(found) != _fields_of(ours.FindMessageTypeByName(name)):
            raise SchemaRejected(
                rule="bad_descriptor",
                message=f"what the descriptors call {name} is not the well-known type",
                pointer=name,
            )


def _fields_of(message: Descriptor) -> list[tuple[str, int, int, bool, object]]:
    """Return what must agree; the entry of a map counts by its fields, however it is called."""
    return [
        (one.name, one.number, one.type, one.is_repeated, _held(one.message_type))
        for one in message.fields
    ]


def _held(kind: Descriptor | None) -> object:
    if kind is None:
        return None
    return _fields_of(kind) if is_entry(kind) else kind.full_name


def _methods(
    pool: descriptor_pool.DescriptorPool, service: str, comments: Mapping[str, str]
) -> tuple[Method, ...]:
    return tuple(
        _method(service, method, comments) for method in pool.FindServiceByName(service).methods
    )


def _method(service: str, method: MethodDescriptor, comments: Mapping[str, str]) -> Method:
    options = method.GetOptions()
    return Method(
        service=service,
        name=method.name,
        request=method.input_type.full_name,
        response=method.output_type.full_name,
        client_streaming=method.client_streaming,
        server_streaming=method.server_streaming,
        comment=comments.get(method.full_name, ""),
        deprecated=options.deprecated,
        effect=_EFFECTS.get(options.idempotency_level),
    )
