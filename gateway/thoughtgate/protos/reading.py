"""From messages to JSON, compiled once per message.

Never trusts a message to be shallow, or to name only types that are known.
"""

import base64
import struct
from collections.abc import Callable
from datetime import date
from typing import Any, Final

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from thoughtgate.core.errors import UpstreamGarbled
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.protos.fields import (
    BOXED,
    QUOTED,
    SPECIAL,
    WRAPPERS,
    Field,
    entry_of,
    enum_of,
    fields_of,
    is_message,
    is_null_value,
    message_of,
)
from thoughtgate.protos.special import MAX_DURATION

MAX_LEVELS: Final = 60
"""How deep the JSON of a message may nest; readers of JSON stop at 64."""

MAX_MEMBERS: Final = 500_000
"""Members that all objects of one message may have together: few bytes can mean many of them."""

_EPOCH = date(1970, 1, 1).toordinal()
_DAY = 86_400
_LAST_DAY = date.max.toordinal()

Read = Callable[[Any], JsonValue]


class Readers:
    """What makes JSON of the messages of one pool."""

    def __init__(self, pool: DescriptorPool) -> None:
        self.pool = pool
        self.level = 0
        self.members = 0
        self._reads: dict[str, Read] = {}
        self._plain: dict[str, Read] = {
            "google.protobuf.Any": self._any,
            "google.protobuf.Duration": _duration,
            "google.protobuf.FieldMask": _field_mask,
            "google.protobuf.ListValue": self._list,
            "google.protobuf.Struct": self._struct,
            "google.protobuf.Timestamp": _timestamp,
            "google.protobuf.Value": self._value,
        }

    def decode(self, message: Descriptor, wire: bytes) -> JsonObject:
        """Return the JSON of a message as its output schema promises it.

        Raises:
            UpstreamGarbled: The bytes are no such message, or one that JSON cannot say.
        """
        kind = message_factory.GetMessageClass(message)
        self.level = self.members = 0
        try:
            read = self.read(message)(kind.FromString(wire))
        except DecodeError:
            raise UpstreamGarbled(
                message=f"the server sent bytes that are no {message.full_name}"
            ) from None
        return {"value": read} if message.full_name in BOXED else read

    def read(self, message: Descriptor) -> Read:
        """Return what reads messages of this kind."""
        name = message.full_name
        if (known := self._reads.get(name)) is not None:
            return known
        if name in self._plain:
            made = self._plain[name]
        elif name in WRAPPERS:
            made = _wrapped(reader(message.fields_by_name["value"]))
        else:
            made = _Members(message, self)
        self._reads[name] = made
        return made

    def enter(self) -> None:
        """Count one level; whoever enters leaves by `level -= 1`."""
        self.level += 1
        if self.level > MAX_LEVELS:
            raise UpstreamGarbled(
                message=f"the server sent a message that nests deeper than {MAX_LEVELS} levels"
            )

    def _any(self, message: Any) -> JsonValue:
        """Read what an Any holds; of a type that is not known, its bytes."""
        url: str = message.type_url
        if not url and not message.value:
            return {}
        try:
            kind = self.pool.FindMessageTypeByName(url.rpartition("/")[2])
            inner = message_factory.GetMessageClass(kind).FromString(message.value)
        except (KeyError, DecodeError):
            return {"@type": url, "value": base64.b64encode(message.value).decode()}
        self.enter()
        read = self.read(kind)(inner)
        self.level -= 1
        return (
            {"@type": url, "value": read} if kind.full_name in SPECIAL else {"@type": url, **read}
        )

    def _value(self, message: Any) -> JsonValue:
        which = message.WhichOneof("kind")
        if which is None or which == "null_value":
            return None
        if which == "struct_value":
            return self._struct(message.struct_value)
        if which == "list_value":
            return self._list(message.list_value)
        value = getattr(message, which)
        return _real(value) if which == "number_value" else value

    def _struct(self, message: Any) -> JsonValue:
        self.enter()
        read = {name: self._value(item) for name, item in message.fields.items()}
        self.level -= 1
        return read

    def _list(self, message: Any) -> JsonValue:
        self.enter()
        read = [self._value(item) for item in message.values]
        self.level -= 1
        return read


class _Members:
    """Reads a message as an object of its fields; those without presence are always there."""

    __slots__ = ("_absent", "_list", "_message", "_readers", "_reads")

    def __init__(self, message: Descriptor, readers: Readers) -> None:
        self._list = message_factory.GetMessageClass(message).ListFields
        self._message = message
        self._readers = readers
        self._reads: dict[int, tuple[str, Read]] = {}
        self._absent: tuple[tuple[str, Callable[[], JsonValue]], ...] | None = None

    def __call__(self, source: Any) -> JsonValue:
        """Return the object."""
        if self._absent is None:
            self._absent = self._compile()
        readers, reads = self._readers, self._reads
        readers.enter()
        read: dict[str, JsonValue] = {}
        for field, value in self._list(source):  # a field may have that name
            name, one = reads[field.number]
            read[name] = one(value)
        for name, blank in self._absent:
            if name not in read:
                read[name] = blank()
        readers.level -= 1
        readers.members += len(read)
        if readers.members > MAX_MEMBERS:
            raise UpstreamGarbled(
                message=f"the server sent a message of more than {MAX_MEMBERS} members"
            )
        return read

    def _compile(self) -> tuple[tuple[str, Callable[[], JsonValue]], ...]:
        fields = fields_of(self._message, self._readers.pool)
        for field in fields:
            self._reads[field.descriptor.number] = (field.name, _read(field, self._readers))
        return tuple(
            (field.name, _blank(field))
            for field in fields
            if not field.descriptor.has_presence and not field.descriptor.is_extension
        )


def _blank(field: Field) -> Callable[[], JsonValue]:
    if field.is_map:
        return dict
    if field.is_repeated:
        return list
    value = reader(field.descriptor)(field.descriptor.default_value)
    return lambda: value


def _read(field: Field, readers: Readers) -> Read:
    descriptor = field.descriptor
    if field.is_map:
        key, held = entry_of(descriptor)
        return _mapped(key, _one(held, readers))
    one = _one(descriptor, readers)
    if not field.is_repeated:
        return one
    return lambda values: [one(value) for value in values]


def _one(field: FieldDescriptor, readers: Readers) -> Read:
    return readers.read(message_of(field)) if is_message(field) else reader(field)


def _mapped(key: FieldDescriptor, one: Read) -> Read:
    named: Callable[[Any], Any] = str
    if key.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        named = _truth_name
    elif key.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        named = _text
    return lambda held: {named(name): one(held[name]) for name in held}


def _truth_name(value: bool) -> str:
    return "true" if value else "false"


def _wrapped(one: Read) -> Read:
    return lambda message: one(message.value)


def reader(field: FieldDescriptor) -> Read:
    """Return how one value of a scalar field is read."""
    kind = field.cpp_type
    if kind in QUOTED:
        return str
    if kind == FieldDescriptor.CPPTYPE_FLOAT:
        return shortest
    if kind == FieldDescriptor.CPPTYPE_DOUBLE:
        return _real
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return _nothing if is_null_value(field) else _named(enum_of(field))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _base64
    return _text if kind == FieldDescriptor.CPPTYPE_STRING else _same


def _same(value: Any) -> JsonValue:
    return value


def _text(value: Any) -> JsonValue:
    """Return a string; one of proto2 that is not UTF-8 comes as bytes."""
    return value if type(value) is str else bytes(value).decode(errors="replace")


def _nothing(_value: Any) -> JsonValue:
    return None


def _base64(value: bytes) -> JsonValue:
    return base64.b64encode(value).decode()


def _named(kind: EnumDescriptor) -> Read:
    names: dict[int, str] = {}
    for value in kind.values:
        names.setdefault(value.number, value.name)  # of aliases the first
    return lambda number: names.get(number, number)


def _real(value: float) -> JsonValue:
    if value - value == 0.0:
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def shortest(value: float) -> JsonValue:
    """Return the shortest number that is this one in single precision."""
    if value - value != 0.0:
        return _real(value)
    for digits in (6, 7, 8):
        short = float(f"{value:.{digits}g}")
        try:
            if struct.unpack("<f", struct.pack("<f", short))[0] == value:
                return short
        except OverflowError:
            continue
    return float(f"{value:.9g}")


def _timestamp(message: Any) -> JsonValue:
    days, seconds = divmod(message.seconds, _DAY)
    if not 1 <= days + _EPOCH <= _LAST_DAY or not 0 <= message.nanos < 1_000_000_000:
        raise UpstreamGarbled(message="the server sent a time that no calendar has")
    hours, rest = divmod(seconds, 3600)
    day = date.fromordinal(days + _EPOCH).isoformat()
    clock = f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{day}T{clock}{_fraction(message.nanos)}Z"


def _duration(message: Any) -> JsonValue:
    seconds, nanos = message.seconds, message.nanos
    mixed = (seconds < 0 < nanos) or (nanos < 0 < seconds)
    if mixed or abs(seconds) > MAX_DURATION or abs(nanos) >= 1_000_000_000:
        raise UpstreamGarbled(message="the server sent a duration that is none")
    sign = "-" if seconds < 0 or nanos < 0 else ""
    return f"{sign}{abs(seconds)}{_fraction(abs(nanos))}s"


def _fraction(nanos: int) -> str:
    """Return no, three, six or nine digits, as few as are exact."""
    if not nanos:
        return ""
    digits = f"{nanos:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f".{digits}"


def _field_mask(message: Any) -> JsonValue:
    return ",".join(map(_camel, message.paths))


def _camel(path: str) -> str:
    first, *rest = path.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
