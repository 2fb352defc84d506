"""From JSON to messages, compiled once per message.

Never guesses: what fits nowhere is refused with its place, before anything is sent.
"""

from collections.abc import Callable
from typing import Any, Final

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.protos.demands import Demand
from thoughtgate.protos.fields import (
    BOXED,
    WRAPPERS,
    Field,
    entry_of,
    fields_of,
    is_message,
    message_of,
)
from thoughtgate.protos.rules import Rules, rules_for
from thoughtgate.protos.scalars import Convert, converter, key_converter
from thoughtgate.protos.special import PLAIN, Fill, any_filler, wrapper_filler
from thoughtgate.protos.values import MAX_FRAMES, Misfit

Put = Callable[[Any, JsonValue, int], None]
"""Puts one member's value into a message that stands so many frames deep."""


class Writers:
    """What fills the messages of one pool."""

    def __init__(self, pool: DescriptorPool) -> None:
        self.pool = pool
        self._fills: dict[str, Fill] = {}

    def encode(self, message: Descriptor, value: JsonValue) -> bytes:
        """Return the wire form of `value`.

        Raises:
            ProtoValueError: It does not fit.
        """
        kind = message_factory.GetMessageClass(message)
        target: Any = kind()
        try:
            if message.full_name in BOXED:
                _fill_box(self.fill(message), target, value)
            else:
                self.fill(message)(target, value, 0)
        except Misfit as misfit:
            raise misfit.told() from None
        return kind.SerializeToString(target)

    def fill(self, message: Descriptor) -> Fill:
        """Return what fills a message of this kind."""
        name = message.full_name
        if (known := self._fills.get(name)) is not None:
            return known
        if name in PLAIN:
            made = PLAIN[name]
        elif name == "google.protobuf.Any":
            made = any_filler(self.pool, self.fill)
        elif name in BOXED:
            made = wrapper_filler(converter(message.fields_by_name["value"]))
        else:
            made = _Members(message, self)
        self._fills[name] = made
        return made


def _fill_box(fill: Fill, target: Any, value: JsonValue) -> None:
    """Fill a message that is no JSON object from `{"value": …}`."""
    if not isinstance(value, dict) or value.keys() != {"value"}:
        raise Misfit(wanted='an object with one member, "value"', got=value)
    try:
        fill(target, value["value"], 0)
    except Misfit as misfit:
        misfit.steps.append("value")
        raise


class _Members:
    """Fills a message from an object of its fields, whose names may be those of methods."""

    __slots__ = ("_kind", "_message", "_puts", "_required", "_writers")

    def __init__(self, message: Descriptor, writers: Writers) -> None:
        self._kind = message_factory.GetMessageClass(message)
        self._message = message
        self._writers = writers
        self._puts: dict[str, _Slot] = {}
        self._required: tuple[str, ...] | None = None

    def __call__(self, target: Any, value: JsonValue, depth: int) -> None:
        """Fill `target`, which stands `depth` frames deep."""
        if self._required is None:
            self._required = self._compile()
        if type(value) is not dict:
            raise Misfit(wanted="an object", got=value)
        if depth > MAX_FRAMES:
            raise Misfit(wanted=f"nested less deeply: protobuf has {MAX_FRAMES} levels", got=value)
        self._fill(target, value, depth)
        for name in self._required:
            if not self._kind.HasField(target, name):
                raise Misfit(wanted="there: it is required", got=None, at=name)

    def _fill(self, target: Any, value: JsonObject, depth: int) -> None:
        puts, name = self._puts, ""
        try:
            for name, item in value.items():
                put, oneof, twin, nothing = puts.get(name, _NOWHERE)
                if twin and twin in value:
                    raise _respelled(twin, item)
                if oneof and item is not nothing and self._kind.WhichOneof(target, oneof):
                    raise _taken(oneof, item)
                put(target, item, depth)
        except Misfit as misfit:
            misfit.steps.append(name)
            raise
        except ValueError:  # a lone surrogate
            raise Misfit(wanted="text that UTF-8 can say", at=name) from None

    def _compile(self) -> tuple[str, ...]:
        fields = fields_of(self._message, self._writers.pool)
        for field in fields:
            put = _put(field, self._writers)
            nothing = _NOWHERE if field.takes_null else None
            self._puts[field.name] = (put, field.oneof, "", nothing)
            if field.alias:
                self._puts[field.alias] = (put, field.oneof, field.name, nothing)
        return tuple(field.descriptor.name for field in fields if field.descriptor.is_required)


def _put_nowhere(_target: Any, value: JsonValue, _depth: int) -> None:
    raise Misfit(wanted="left out: there is no such field", got=value)


_Slot = tuple[Put, str, str, object]
"""How a member is put, its oneof, its other spelling, and the value that says it is not there."""

_NOWHERE: Final[_Slot] = (_put_nowhere, "", "", None)


def _respelled(twin: str, got: JsonValue) -> Misfit:
    return Misfit(wanted=f"left out: it is another spelling of {twin}", got=got)


def _taken(oneof: str, got: JsonValue) -> Misfit:
    return Misfit(wanted=f"left out: another member of oneof {oneof} is there", got=got)


def _put(field: Field, writers: Writers) -> Put:
    descriptor = field.descriptor
    rules = rules_for(field)
    get, assign = _access(descriptor)
    if field.is_map:
        return _into_map(get, *_entry(descriptor, rules, writers))
    if field.is_repeated:
        each = rules.items.demands
        if is_message(descriptor):
            return _into_messages(get, _filler(descriptor, each, writers))
        convert = _tested(converter(descriptor), each)
        return _into_list(get, convert, nulls=field.clears_by_null)
    if is_message(descriptor):
        fill = _filler(descriptor, rules.whole.demands, writers)
        return _into_message(get, fill, nulls=field.takes_null)
    convert = _tested(converter(descriptor), rules.whole.demands)
    return _null(assign, convert) if field.takes_null else _scalar(assign, convert)


def _tested(convert: Convert, demands: tuple[Demand, ...]) -> Convert:
    """Return a conversion that also holds its values against the demands of rules."""
    if not demands:
        return convert

    def converted(value: JsonValue) -> Any:
        made = convert(value)
        _hold(made, value, demands)
        return made

    return converted


def _filler(field: FieldDescriptor, demands: tuple[Demand, ...], writers: Writers) -> Fill:
    """Return what fills a field's messages and holds them against the demands of rules."""
    kind = message_of(field)
    fill = writers.fill(kind)
    if not demands:
        return fill
    wrapped = kind.full_name in WRAPPERS

    def filled(target: Any, value: JsonValue, depth: int) -> None:
        fill(target, value, depth)
        _hold(target.value if wrapped else target, value, demands)

    return filled


def _hold(made: Any, value: JsonValue, demands: tuple[Demand, ...]) -> None:
    for holds, wanted in demands:
        if not holds(made):
            raise Misfit(wanted=wanted, got=value)


def _access(
    field: FieldDescriptor,
) -> tuple[Callable[[Any], Any], Callable[[Any, Any], None]]:
    """Return how a field is read and assigned; an extension has other doors."""
    if field.is_extension:
        return (
            lambda target: type(target).Extensions.__get__(target)[field],
            lambda target, value: type(target).Extensions.__get__(target).__setitem__(field, value),
        )
    name = field.name
    return (
        lambda target: getattr(target, name),
        lambda target, value: setattr(target, name, value),
    )


def _scalar(assign: Callable[[Any, Any], None], convert: Convert) -> Put:
    def put(target: Any, value: JsonValue, _depth: int) -> None:
        if value is not None:
            assign(target, convert(value))

    return put


def _null(assign: Callable[[Any, Any], None], convert: Convert) -> Put:
    def put(target: Any, value: JsonValue, _depth: int) -> None:
        assign(target, 0 if value is None else convert(value))

    return put


def _into_list(get: Callable[[Any], Any], convert: Convert, *, nulls: bool) -> Put:
    def put(target: Any, value: JsonValue, _depth: int) -> None:
        if value is None and nulls:
            return
        if type(value) is not list:
            raise Misfit(wanted="an array", got=value)
        append, index = get(target).append, 0
        try:
            for item in value:
                append(convert(item))
                index += 1
        except Misfit as misfit:
            misfit.steps.append(index)
            raise

    return put


def _into_message(get: Callable[[Any], Any], fill: Fill, *, nulls: bool) -> Put:
    def put(target: Any, value: JsonValue, depth: int) -> None:
        if value is not None or nulls:
            inner = get(target)
            type(inner).SetInParent(inner)
            fill(inner, value, depth + 1)

    return put


def _into_messages(get: Callable[[Any], Any], fill: Fill) -> Put:
    def put(target: Any, value: JsonValue, depth: int) -> None:
        if value is None:
            return
        if type(value) is not list:
            raise Misfit(wanted="an array", got=value)
        add, index = get(target).add, 0
        try:
            for item in value:
                fill(add(), item, depth + 1)
                index += 1
        except Misfit as misfit:
            misfit.steps.append(index)
            raise

    return put


def _entry(
    field: FieldDescriptor, rules: Rules, writers: Writers
) -> tuple[Convert, Convert | None, Fill | None]:
    """Return how a map's names are read, and its values: scalars or messages."""
    key, held = entry_of(field)
    named = _tested(key_converter(key), rules.keys.demands)
    if is_message(held):
        return named, None, _filler(held, rules.items.demands, writers)
    return named, _tested(converter(held), rules.items.demands), None


def _into_map(
    get: Callable[[Any], Any], named: Convert, convert: Convert | None, fill: Fill | None
) -> Put:
    def put(target: Any, value: JsonValue, depth: int) -> None:
        if value is None:
            return
        if type(value) is not dict:
            raise Misfit(wanted="an object", got=value)
        into, name = get(target), ""
        try:
            for name, item in value.items():
                if convert is not None:
                    into[named(name)] = convert(item)
                elif fill is not None:
                    fill(into[named(name)], item, depth + 2)
        except Misfit as misfit:
            misfit.steps.append(name)
            raise

    return put
