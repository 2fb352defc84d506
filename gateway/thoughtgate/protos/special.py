"""Well-known types from JSON: times, masks, structs, wrappers and Any.

Never reads a type for Any that is not in the upstream's own pool.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from types import MappingProxyType
from typing import Any, Final

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool

from thoughtgate.core.json import JsonValue
from thoughtgate.protos.fields import SPECIAL
from thoughtgate.protos.scalars import Convert
from thoughtgate.protos.values import MAX_FRAMES, Misfit

Fill = Callable[[Any, JsonValue, int], None]
"""Fills a message, which stands so many frames deep, from JSON; raises Misfit."""

DURATION: Final = r"^-?[0-9]+(\.[0-9]{1,9})?s$"
TIMESTAMP: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})$"
)
FIELD_MASK: Final = "^[^_]*$"

MAX_DURATION: Final = 315_576_000_000
"""Seconds, about ten thousand years."""

_DURATION = re.compile(r"(-?)([0-9]{1,20})(?:\.([0-9]{1,9}))?s")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(?:\.([0-9]{1,9}))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
_EPOCH = date(1970, 1, 1).toordinal()


def _timestamp(message: Any, value: JsonValue, _depth: int) -> None:
    match = _TIMESTAMP.fullmatch(value) if type(value) is str else None
    if match is None:
        raise Misfit(wanted="a time such as 2026-07-28T09:30:00Z", got=value)
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    fraction, sign, hours, minutes = match.groups()[6:]
    try:
        days = date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        raise Misfit(wanted="a time on a day that exists", got=value) from None
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    if sign:
        offset = (int(hours) * 60 + int(minutes)) * 60
        seconds += -offset if sign == "+" else offset
    if hour > 23 or minute > 59 or second > 59 or not _FIRST <= seconds <= _LAST:
        raise Misfit(wanted="a time between the years 1 and 9999", got=value)
    message.seconds = seconds
    message.nanos = int((fraction or "").ljust(9, "0"))


def _duration(message: Any, value: JsonValue, _depth: int) -> None:
    match = _DURATION.fullmatch(value) if type(value) is str else None
    if match is None or int(match[2]) > MAX_DURATION:
        raise Misfit(
            wanted="seconds with an s, such as 1.5s, of at most ten thousand years", got=value
        )
    sign = -1 if match[1] else 1
    message.seconds = sign * int(match[2])
    message.nanos = sign * int((match[3] or "").ljust(9, "0"))


def _field_mask(message: Any, value: JsonValue, _depth: int) -> None:
    if type(value) is not str or "_" in value:
        raise Misfit(wanted="paths in camelCase, with commas between them", got=value)
    if value:
        message.paths.extend(map(_snake, value.split(",")))


def _snake(path: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in path)


def _value(message: Any, value: JsonValue, depth: int) -> None:
    kind = type(value)
    if kind is str:
        message.string_value = value
    elif kind is bool:
        message.bool_value = value
    elif kind is int or kind is float:
        message.number_value = _number(value)
    elif kind is dict:
        _struct(message.struct_value, value, depth + 1)
    elif kind is list:
        _list(message.list_value, value, depth + 1)
    elif value is None:
        message.null_value = 0
    else:
        raise Misfit(wanted="JSON", got=value)


def _number(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number - number != 0.0:  # infinite, or not a number
        raise Misfit(wanted="a number that a double can hold", got=value)
    return number


def _struct(message: Any, value: JsonValue, depth: int) -> None:
    if type(value) is not dict:
        raise Misfit(wanted="an object", got=value)
    _bound(value, depth)
    message.SetInParent()
    fields, name = message.fields, ""
    try:
        for name, item in value.items():
            _value(fields[name], item, depth + 2)
    except Misfit as misfit:
        misfit.steps.append(name)
        raise


def _list(message: Any, value: JsonValue, depth: int) -> None:
    if type(value) is not list:
        raise Misfit(wanted="an array", got=value)
    _bound(value, depth)
    message.SetInParent()
    add, index = message.values.add, 0
    try:
        for item in value:
            _value(add(), item, depth + 1)
            index += 1
    except Misfit as misfit:
        misfit.steps.append(index)
        raise


def _bound(value: JsonValue, depth: int) -> None:
    """Refuse what readers refuse: each level of a struct is three messages on the wire."""
    if depth > MAX_FRAMES:
        raise Misfit(wanted=f"nested less deeply: protobuf has {MAX_FRAMES} levels", got=value)


PLAIN: Final[Mapping[str, Fill]] = MappingProxyType({
    "google.protobuf.Duration": _duration,
    "google.protobuf.FieldMask": _field_mask,
    "google.protobuf.ListValue": _list,
    "google.protobuf.Struct": _struct,
    "google.protobuf.Timestamp": _timestamp,
    "google.protobuf.Value": _value,
})
"""Well-known types that are filled alike in every pool."""


def wrapper_filler(convert: Convert) -> Fill:
    """Return what fills a wrapper of a scalar."""

    def fill(message: Any, value: JsonValue, _depth: int) -> None:
        message.value = convert(value)

    return fill


def any_filler(pool: DescriptorPool, filler: Callable[[Descriptor], Fill]) -> Fill:
    """Return what fills an Any with messages of `pool`."""

    def fill(message: Any, value: JsonValue, depth: int) -> None:
        if type(value) is not dict or type(value.get("@type")) is not str:
            raise Misfit(wanted='an object with the name of its type in "@type"', got=value)
        url = value["@type"]
        try:
            kind = pool.FindMessageTypeByName(url.rpartition("/")[2])
        except KeyError:
            raise Misfit(wanted="a type that this server knows", got=url, at="@type") from None
        if depth > MAX_FRAMES:
            raise Misfit(wanted=f"nested less deeply: protobuf has {MAX_FRAMES} levels", got=value)
        made = message_factory.GetMessageClass(kind)
        inner: Any = made()
        rest = {name: item for name, item in value.items() if name != "@type"}
        if kind.full_name in SPECIAL:
            _fill_value(filler(kind), inner, rest, depth)
        else:
            filler(kind)(inner, rest, depth + 1)
        message.type_url = url
        message.value = made.SerializeToString(inner)

    return fill


def _fill_value(fill: Fill, inner: Any, rest: dict[str, JsonValue], depth: int) -> None:
    """Fill a type without fields of its own: what is said of it stands under `value`."""
    if rest.keys() != {"value"}:
        raise Misfit(wanted='described by "value" alone', got=rest)
    try:
        fill(inner, rest["value"], depth + 1)
    except Misfit as misfit:
        misfit.steps.append("value")
        raise
