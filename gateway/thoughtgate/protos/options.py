"""Options of fields, oneofs, messages and methods, with the two extensions of them that we read.

Never takes a definition of these extensions from an upstream: it might mean something else.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    field_mask_pb2,
    message_factory,
    timestamp_pb2,
)
from google.protobuf.message import DecodeError, Message

from thoughtgate.protos.validate_descriptor import VALIDATE

_FIELD_BEHAVIOR: Final = 1052
_VALIDATE: Final = 1159

BEHAVIORS: Final = (
    "FIELD_BEHAVIOR_UNSPECIFIED",
    "OPTIONAL",
    "REQUIRED",
    "OUTPUT_ONLY",
    "INPUT_ONLY",
    "IMMUTABLE",
    "UNORDERED_LIST",
    "NON_EMPTY_DEFAULT",
    "IDENTIFIER",
)
"""What `google.api.field_behavior` can say, by number."""


def _field_behavior() -> bytes:
    """Return the descriptor of the option, written from its documentation."""
    file = descriptor_pb2.FileDescriptorProto(
        name="google/api/field_behavior.proto",
        package="google.api",
        dependency=["google/protobuf/descriptor.proto"],
        syntax="proto3",
    )
    kind = file.enum_type.add(name="FieldBehavior")
    for number, name in enumerate(BEHAVIORS):
        kind.value.add(name=name, number=number)
    option = descriptor_pb2.FieldDescriptorProto
    file.extension.add(
        name="field_behavior",
        number=_FIELD_BEHAVIOR,
        label=option.LABEL_REPEATED,
        type=option.TYPE_ENUM,
        type_name=".google.api.FieldBehavior",
        extendee=".google.protobuf.FieldOptions",
    )
    return file.SerializeToString()


BUNDLED: Final[Mapping[str, bytes]] = MappingProxyType({
    "buf/validate/validate.proto": VALIDATE,
    "google/api/field_behavior.proto": _field_behavior(),
})
"""Definitions of options that many files import and few upstreams send."""


@cache
def _known() -> tuple[descriptor_pool.DescriptorPool, Mapping[str, type[Message]]]:
    """Return the pool of options, and the classes that know both extensions."""
    pool = descriptor_pool.DescriptorPool()
    for module in (descriptor_pb2, duration_pb2, field_mask_pb2, timestamp_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    for file in BUNDLED.values():
        pool.AddSerializedFile(file)
    names = ("FieldOptions", "OneofOptions", "MessageOptions")
    return pool, {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"google.protobuf.{name}"))
        for name in names
    }


def rules_of(options: Message) -> Any:
    """Return the protovalidate rules in options of a field, oneof or message, None without any."""
    read = _reread(options)
    if read is None:
        return None
    name = {"FieldOptions": "field", "OneofOptions": "oneof", "MessageOptions": "message"}
    pool, _ = _known()
    extension = pool.FindExtensionByName(f"buf.validate.{name[read.DESCRIPTOR.name]}")
    return read.Extensions[extension] if read.HasExtension(extension) else None


def behaviors_of(options: Message) -> frozenset[str]:
    """Return the names that a field's `google.api.field_behavior` lists."""
    read = _reread(options)
    if read is None:
        return frozenset()
    pool, _ = _known()
    numbers: Iterable[int] = read.Extensions[pool.FindExtensionByName("google.api.field_behavior")]
    return frozenset(BEHAVIORS[number] for number in numbers if 0 <= number < len(BEHAVIORS))


def _reread(options: Message) -> Any:
    """Return the options as a class that knows the extensions, None when there is nothing."""
    raw = options.SerializeToString()
    if not raw:
        return None
    read = _known()[1][options.DESCRIPTOR.name]()
    try:
        read.ParseFromString(raw)
    except DecodeError:
        return None
    return read
