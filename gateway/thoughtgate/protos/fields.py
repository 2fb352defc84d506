"""Fields of a message as JSON knows them: names, kinds, presence, and which well-known type.

Never decides how a value looks; schemas, writing and reading do, each from this one list.
"""

from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool

from thoughtgate.core.errors import OutOfOrder

INT32: Final = (-(1 << 31), (1 << 31) - 1)
INT64: Final = (-(1 << 63), (1 << 63) - 1)
UINT32: Final = (0, (1 << 32) - 1)
UINT64: Final = (0, (1 << 64) - 1)
FLOAT_MAX: Final = float.fromhex("0x1.fffffep+127")

NULL_VALUE: Final = "google.protobuf.NullValue"

RANGES: Final = {
    FieldDescriptor.CPPTYPE_INT32: INT32,
    FieldDescriptor.CPPTYPE_UINT32: UINT32,
    FieldDescriptor.CPPTYPE_INT64: INT64,
    FieldDescriptor.CPPTYPE_UINT64: UINT64,
}
"""The whole numbers that a field can hold, by its type in C++."""

QUOTED: Final = frozenset({FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64})
"""Types whose numbers are strings in JSON, since many readers of JSON would round them."""

WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in (
        "Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64"
    )
)  # fmt: skip

SPECIAL: Final = WRAPPERS | {
    f"google.protobuf.{name}"
    for name in ("Any", "Duration", "FieldMask", "ListValue", "Struct", "Timestamp", "Value")
}
"""Messages whose JSON is not an object of their fields."""

BOXED: Final = SPECIAL - {"google.protobuf.Any", "google.protobuf.Struct"}
"""Those that are no JSON object: as a whole request or response they stand under `value`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field: `name` is what we emit, `alias` a second spelling that is accepted, or empty.

    `oneof` is the name of a real oneof that the field is a member of, or empty.
    """

    descriptor: FieldDescriptor
    name: str
    alias: str = ""
    oneof: str = ""

    @property
    def is_map(self) -> bool:
        """Tell whether this is a map."""
        entry = self.descriptor.message_type
        return entry is not None and is_entry(entry)

    @property
    def is_repeated(self) -> bool:
        """Tell whether there may be several values, of a map too."""
        return self.descriptor.is_repeated

    @property
    def clears_by_null(self) -> bool:
        """Tell whether null leaves the field out; protobuf refuses it for an array of nulls."""
        return not (self.is_repeated and is_null_value(self.descriptor))

    @property
    def takes_null(self) -> bool:
        """Tell whether null is a value of the field, and not how to leave it out."""
        if self.is_repeated:
            return False
        kind = self.descriptor.message_type
        return is_null_value(self.descriptor) or (
            kind is not None and kind.full_name == "google.protobuf.Value"
        )


def is_entry(message: Descriptor) -> bool:
    """Tell whether a message is the entry of a map."""
    return bool(message.has_options and message.GetOptions().map_entry)


def fields_of(message: Descriptor, pool: DescriptorPool) -> tuple[Field, ...]:
    """Return the fields of a message, extensions that the pool knows with them.

    A name that stands for another field in JSON is never used for a second one: JSON names go
    first, as in protobuf's own parser.
    """
    spoken = {field.json_name: field for field in message.fields}
    found = []
    for field in message.fields:
        name, alias = field.name, field.json_name
        if spoken.get(name, field) is not field:
            name, alias = alias, ""
        oneof = field.containing_oneof
        found.append(
            Field(
                descriptor=field,
                name=name,
                alias="" if alias == name else alias,
                oneof=oneof.name if oneof is not None and not _is_made(oneof) else "",
            )
        )
    if message.is_extendable:
        found.extend(
            Field(descriptor=extension, name=f"[{extension.full_name}]")
            for extension in pool.FindAllExtensions(message)
        )
    return tuple(found)


def _is_made(oneof: Any) -> bool:
    """Tell whether a oneof is only how `optional` is written down."""
    return len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}"


def entry_of(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    """Return the key and the value of a map."""
    by_name = message_of(field).fields_by_name
    return by_name["key"], by_name["value"]


def is_message(field: FieldDescriptor) -> bool:
    """Tell whether the values of a field are messages, groups too."""
    return field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE


def is_null_value(field: FieldDescriptor) -> bool:
    """Tell whether a field is an enum that is null in JSON."""
    return field.enum_type is not None and field.enum_type.full_name == NULL_VALUE


def message_of(field: FieldDescriptor) -> Descriptor:
    """Return the message that values of a field are."""
    kind = field.message_type
    if kind is None:
        raise OutOfOrder(state=field.full_name, event="reading it as a message")
    return kind


def enum_of(field: FieldDescriptor) -> EnumDescriptor:
    """Return the enum that values of a field are."""
    kind = field.enum_type
    if kind is None:
        raise OutOfOrder(state=field.full_name, event="reading it as an enum")
    return kind
