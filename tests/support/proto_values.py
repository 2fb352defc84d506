"""JSON near what a message accepts: valid, slightly wrong, and spelled in every way."""

from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from hypothesis import strategies as st

from thoughtgate.core.json import JsonValue
from thoughtgate.protos.fields import (
    RANGES,
    WRAPPERS,
    Field,
    entry_of,
    enum_of,
    fields_of,
    is_message,
    message_of,
)

Excepted = Callable[[FieldDescriptor, JsonValue], bool]
"""Tells whether protobuf's parser and ours are known to differ about a value of a field."""

ODD: tuple[JsonValue, ...] = (
    None, True, False, 0, -1, 1, 1.0, 1.5, -0.0, 5, 99, 2**31, -(2**31) - 1, 2**32, 2**53 + 1,
    2**63, 2**64, -(2**63) - 1, 1e19, 1e300, 3.5e38, -1e40, 10**400, "", "x", "5", "-1", "1.0",
    "1e3", " 1", "18446744073709551615", "9223372036854775808", "NaN", "-Infinity", "nan", "true",
    "QUJD", "_-8=", "QUJDR", "a.b,cD", "a_b", "2026-07-28", "2026-02-30T00:00:00Z",
    "2026-07-28T24:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "1.5s", "-0.5s",
    "315576000001s", "s", "NULL_VALUE", "COLOUR_RED", [], {}, [None], [1], {"a": None}, {"x": {}},
    {"@type": "type.googleapis.com/no.Such"}, {"value": 1}, [[]], ["x"],
)  # fmt: skip

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=4)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)  # fmt: skip

_NANOS = st.sampled_from(("", ".5", ".123456789", ".000000001", ".1230"))


def _timestamps() -> st.SearchStrategy[str]:
    days = st.dates().map(lambda day: f"{day.year:04}-{day.month:02}-{day.day:02}")
    clock = st.times().map(lambda time: f"{time.hour:02}:{time.minute:02}:{time.second:02}")
    zone = st.sampled_from(("Z", "+00:00", "-05:30", "+14:00"))
    return st.builds(lambda *parts: "{}T{}{}{}".format(*parts), days, clock, _NANOS, zone)


_WELL_KNOWN: dict[str, st.SearchStrategy[JsonValue]] = {
    "google.protobuf.Timestamp": _timestamps(),
    "google.protobuf.Duration": st.builds(
        "{}{}s".format, st.integers(-315_576_000_000, 315_576_000_000), _NANOS
    ),
    "google.protobuf.FieldMask": st.from_regex(r"\A([a-zA-Z.]{1,5}(,[a-zA-Z]{1,5}){0,2})?\Z"),
    "google.protobuf.Struct": st.dictionaries(st.text(max_size=3), _JSON, max_size=3),
    "google.protobuf.Value": _JSON,
    "google.protobuf.ListValue": st.lists(_JSON, max_size=3),
}


class Near:
    """Makes values near the messages of one pool; some are `excepted` and never made."""

    def __init__(self, pool: DescriptorPool, excepted: Excepted, types: tuple[str, ...]) -> None:
        self._pool = pool
        self._excepted = excepted
        self._types = types

    def message(self, kind: Descriptor, depth: int = 2) -> st.SearchStrategy[JsonValue]:
        """Return objects with some of a message's members, each spelled in one way."""
        slots = [
            (name, field)
            for field in fields_of(kind, self._pool)
            for name in filter(None, (field.name, field.alias))
            if depth or not is_message(field.descriptor)
        ]
        required = [
            slot for slot in slots if slot[1].descriptor.is_required and slot[0] == slot[1].name
        ]

        @st.composite
        def make(draw: st.DrawFn) -> JsonValue:
            chosen = draw(st.lists(st.sampled_from(slots), max_size=5)) if slots else []
            if draw(st.integers(0, 9)):
                chosen = [*required, *chosen]
            once = {field.name: (name, field) for name, field in reversed(chosen)}
            made = {name: draw(self.member(field, depth)) for name, field in once.values()}
            if not draw(st.integers(0, 30)):
                made[draw(st.sampled_from(("nosuch", "Name", "[no.ext]")))] = 1
            return made

        return make()

    def member(self, field: Field, depth: int) -> st.SearchStrategy[JsonValue]:
        """Return values near what one member takes."""
        descriptor = field.descriptor
        odd = st.sampled_from([one for one in ODD if not self._excepted(descriptor, one)])
        if field.is_map:
            key, held = entry_of(descriptor)
            good: st.SearchStrategy[JsonValue] = st.dictionaries(
                self._key(key), self._one(held, depth), max_size=3
            )
        elif field.is_repeated:
            good = st.lists(self._one(descriptor, depth), max_size=3)
        else:
            good = self._one(descriptor, depth)
        return st.one_of(good, good, good, good, odd)

    def _key(self, key: FieldDescriptor) -> st.SearchStrategy[str]:
        good: st.SearchStrategy[str] = st.text(max_size=3)
        if key.cpp_type in RANGES:
            low, high = RANGES[key.cpp_type]
            good = st.one_of(
                st.integers(low, high).map(str),
                st.sampled_from(("x", "", "01", "-0", str(low), str(high), str(high + 1))),
            )
        elif key.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            good = st.sampled_from(("true", "false", "True", "1"))
        return good

    def _one(self, field: FieldDescriptor, depth: int) -> st.SearchStrategy[JsonValue]:
        odd = st.sampled_from([one for one in ODD if not self._excepted(field, one)])
        good = self._good(field, depth)
        return st.one_of(good, good, good, odd)

    def _good(self, field: FieldDescriptor, depth: int) -> st.SearchStrategy[JsonValue]:
        if is_message(field):
            kind = message_of(field)
            if kind.full_name in WRAPPERS:
                return self._good(kind.fields_by_name["value"], depth)
            if kind.full_name == "google.protobuf.Any":
                return self._any(depth)
            if kind.full_name in _WELL_KNOWN:
                return _WELL_KNOWN[kind.full_name]
            return self.message(kind, depth - 1) if depth else st.just({})
        if field.enum_type is not None:
            return st.sampled_from([value.name for value in enum_of(field).values])
        return _scalar(field)

    def _any(self, depth: int) -> st.SearchStrategy[JsonValue]:
        @st.composite
        def make(draw: st.DrawFn) -> JsonValue:
            name = draw(st.sampled_from(self._types))
            kind: Any = self._pool.FindMessageTypeByName(name)
            url = {"@type": f"type.googleapis.com/{name}"}
            if name in _WELL_KNOWN:
                return {**url, "value": draw(_WELL_KNOWN[name])}
            return {**url, **draw(self.message(kind, min(depth, 1)))}

        return make()


def _scalar(field: FieldDescriptor) -> st.SearchStrategy[JsonValue]:
    kind = field.cpp_type
    if kind in RANGES:
        low, high = RANGES[kind]
        whole = st.integers(low, high)
        edges = st.sampled_from((low, high, low - 1, high + 1, float(high), float(low), 3.0))
        quoted = st.one_of(whole, st.sampled_from((low - 1, high + 1))).map(str)
        return st.one_of(whole, edges, quoted if high > 2**32 else whole)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if kind == FieldDescriptor.CPPTYPE_FLOAT:
        return st.floats(width=32, allow_nan=False, allow_infinity=False) | st.just("Infinity")
    if kind == FieldDescriptor.CPPTYPE_DOUBLE:
        return st.floats(allow_nan=False, allow_infinity=False) | st.just("NaN")
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.from_regex(r"\A[A-Za-z0-9+/_-]{0,6}={0,2}\Z")
    return st.text(max_size=5)
