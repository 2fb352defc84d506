"""Scalars from JSON: numbers, text, bytes, truth and names of enums.

Never accepts what the input schema refuses, even when no schema was asked before.
"""

import base64
import re
from collections.abc import Callable
from typing import Any, Final

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from thoughtgate.core.json import JsonValue
from thoughtgate.protos.fields import FLOAT_MAX, QUOTED, RANGES, enum_of
from thoughtgate.protos.values import Misfit

Convert = Callable[[JsonValue], Any]
"""From JSON to what protobuf holds; raises Misfit."""

DIGITS: Final = "^-?[0-9]+$"
BASE64: Final = "^[A-Za-z0-9+/_-]*={0,2}$"
NON_FINITE: Final = {
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}

_DIGITS = re.compile(r"-?[0-9]{1,4000}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")


def converter(field: FieldDescriptor) -> Convert:
    """Return how one value of a scalar field is read."""
    kind = field.cpp_type
    if kind in RANGES:
        return _integer(RANGES[kind], quoted=kind in QUOTED)
    if kind == FieldDescriptor.CPPTYPE_FLOAT:
        return _real(FLOAT_MAX)
    if kind == FieldDescriptor.CPPTYPE_DOUBLE:
        return _real(float("inf"))
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return _truth
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return _named(enum_of(field))
    return _bytes if field.type == FieldDescriptor.TYPE_BYTES else _text


def key_converter(field: FieldDescriptor) -> Convert:
    """Return how a map's key, a member's name, is read."""
    kind = field.cpp_type
    if kind in RANGES:
        return _integer(RANGES[kind], quoted=True)
    return _truth_name if kind == FieldDescriptor.CPPTYPE_BOOL else _text


def _integer(limits: tuple[int, int], *, quoted: bool) -> Convert:
    low, high = limits
    expected = f"an integer from {low} to {high}" + (", best in quotes" if quoted else "")

    def convert(value: JsonValue) -> int:
        kind = type(value)
        if kind is int:
            number = value
        elif (kind is float and value.is_integer()) or (
            quoted and kind is str and _DIGITS.fullmatch(value)
        ):
            number = int(value)
        else:
            raise Misfit(wanted=expected, got=value)
        if low <= number <= high:
            return int(number)
        raise Misfit(wanted=expected, got=value)

    return convert


def _real(limit: float) -> Convert:
    expected = "a number within the field's range, or NaN, Infinity, -Infinity in quotes"

    def convert(value: JsonValue) -> float:
        kind = type(value)
        if kind is int or kind is float:
            try:
                number = float(value)
            except OverflowError:
                raise Misfit(wanted=expected, got=value) from None
            if -limit <= number <= limit and abs(number) != float("inf"):
                return number
        elif kind is str and value in NON_FINITE:
            return NON_FINITE[value]
        raise Misfit(wanted=expected, got=value)

    return convert


def _truth(value: JsonValue) -> bool:
    if value is True or value is False:
        return value
    raise Misfit(wanted="true or false", got=value)


def _truth_name(value: JsonValue) -> bool:
    if value == "true" or value == "false":
        return bool(value == "true")
    raise Misfit(wanted="named true or false", got=value)


def _text(value: JsonValue) -> str:
    if type(value) is str:
        return value
    raise Misfit(wanted="a string", got=value)


def _bytes(value: JsonValue) -> bytes:
    if type(value) is str and _BASE64.fullmatch(value) and len(value.rstrip("=")) % 4 != 1:
        return base64.urlsafe_b64decode(value.rstrip("=") + "===")
    raise Misfit(wanted="bytes in base64", got=value)


def _named(kind: EnumDescriptor) -> Convert:
    numbers = {value.name: value.number for value in kind.values}

    def convert(value: JsonValue) -> int:
        if type(value) is str and value in numbers:
            return numbers[value]
        raise Misfit(wanted=f"the name of a value of {kind.full_name}", got=value)

    return convert
