"""Rules of a field: protovalidate's, and `google.api.field_behavior`.

Never enforced where the server alone can judge: that is told in words.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

from thoughtgate.protos.demands import Asked, Demand, of_bytes, of_moment, of_number, of_text
from thoughtgate.protos.fields import QUOTED, RANGES, WRAPPERS, Field, enum_of, is_message
from thoughtgate.protos.kinds import Schema
from thoughtgate.protos.options import behaviors_of, rules_of

_IF_ZERO: Final = 1
_ALWAYS: Final = 3
_REALS: Final = frozenset({FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE})
_MOMENTS: Final = frozenset({"duration", "timestamp"})

_BEHAVIORS: Final[dict[str, tuple[str, Schema]]] = {
    "OUTPUT_ONLY": ("Set by the server.", {"readOnly": True}),
    "INPUT_ONLY": ("Never returned.", {}),
    "IMMUTABLE": ("Cannot be changed later.", {}),
    "IDENTIFIER": ("The resource's identifier.", {}),
    "UNORDERED_LIST": ("The order does not matter.", {}),
    "NON_EMPTY_DEFAULT": ("Has a default that is not empty.", {}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is asked of a field.

    `whole` is asked of the field's value, or of the array or the map; `items` of each value in
    those, `keys` of each name in a map. `hints` are annotations for its schema.
    """

    whole: Asked = field(default_factory=Asked)
    items: Asked = field(default_factory=Asked)
    keys: Asked = field(default_factory=Asked)
    required: bool = False
    hints: Schema = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what is to be said in the description."""
        return (*self.whole.notes, *self.items.notes, *self.keys.notes)


NONE: Final = Rules()


def rules_for(one: Field) -> Rules:
    """Return the rules of a field; those of a map's entry are its field's."""
    descriptor = one.descriptor
    if not descriptor.has_options:
        return NONE
    options = descriptor.GetOptions()
    made = _validated(one, rules_of(options))
    for name in sorted(behaviors_of(options)):
        if name == "REQUIRED":
            made = replace(made, required=True)
        elif name in _BEHAVIORS:
            said, hints = _BEHAVIORS[name]
            whole = replace(made.whole, notes=(*made.whole.notes, said))
            made = replace(made, whole=whole, hints={**made.hints, **hints})
    return made


def of_oneof(oneof: OneofDescriptor) -> bool:
    """Tell whether one member of a oneof must be set."""
    rules = rules_of(oneof.GetOptions()) if oneof.has_options else None
    return rules is not None and bool(rules.required)


def of_message(message: Descriptor) -> list[str]:
    """Return what rules of a whole message say, for people: the server checks them."""
    rules = rules_of(message.GetOptions()) if message.has_options else None
    if rules is None:
        return []
    said = _expressions(rules)
    for group in rules.oneof:
        amount = "Exactly one" if group.required else "At most one"
        said.append(f"{amount} of {', '.join(group.fields)}.")
    return said


def _validated(one: Field, rules: Any) -> Rules:
    if rules is None or rules.ignore == _ALWAYS:
        return NONE
    items = keys = Asked()
    if one.is_map:
        entry = one.descriptor.message_type
        whole = _pairs(rules.map)
        if entry is not None:
            items = _single(entry.fields_by_name["value"], rules.map.values)
            keys = _single(entry.fields_by_name["key"], rules.map.keys, quoted=True)
    elif one.is_repeated:
        whole = _items(rules.repeated)
        items = _single(one.descriptor, rules.repeated.items)
    else:
        whole = _asked(one.descriptor, rules)
    required = bool(rules.required)
    if not one.descriptor.has_presence:
        if required:
            whole = _populated(one, whole)
        required = required or (rules.ignore != _IF_ZERO and not whole.zero)
    if rules.ignore == _IF_ZERO:
        whole = _or_zero(one, whole)
    whole = replace(whole, notes=(*whole.notes, *_expressions(rules)))
    return Rules(whole=whole, items=items, keys=keys, required=required)


def _single(descriptor: FieldDescriptor, rules: Any, *, quoted: bool = False) -> Asked:
    """Return the rules of one value in an array or a map; names in a map are always `quoted`."""
    if rules.ignore == _ALWAYS:
        return Asked()
    asked = _asked(descriptor, rules, quoted=quoted)
    return replace(asked, notes=(*asked.notes, *_expressions(rules)))


def _asked(descriptor: FieldDescriptor, rules: Any, *, quoted: bool = False) -> Asked:
    kind = rules.WhichOneof("type")
    if kind is None or not _fits(descriptor, kind):
        return Asked()
    said = getattr(rules, kind)
    if kind == "string":
        return of_text(said)
    if kind == "bytes":
        return of_bytes(said)
    if kind in _MOMENTS:
        return of_moment(said, _nanoseconds)
    return _of_other(descriptor, kind, said, quoted=quoted)


def _of_other(descriptor: FieldDescriptor, kind: str, said: Any, *, quoted: bool) -> Asked:
    if kind == "enum":
        return _of_enum(descriptor, said)
    if kind == "bool":
        asked = {"enum": [said.const]} if said.HasField("const") else {}
        return Asked(keywords=asked, zero=not (said.HasField("const") and said.const))
    if kind == "any":
        return _of_any(said)
    if kind == "field_mask":
        return Asked(notes=("The server allows certain paths only.",))
    inner = _unwrapped(descriptor)
    quoted = quoted or inner.cpp_type in QUOTED
    return of_number(said, quoted=quoted, real=inner.cpp_type in _REALS)


_KINDS: Final = {
    FieldDescriptor.CPPTYPE_BOOL: {"bool"},
    FieldDescriptor.CPPTYPE_ENUM: {"enum"},
    FieldDescriptor.CPPTYPE_FLOAT: {"float"},
    FieldDescriptor.CPPTYPE_DOUBLE: {"double"},
    FieldDescriptor.CPPTYPE_INT32: {"int32", "sint32", "sfixed32"},
    FieldDescriptor.CPPTYPE_INT64: {"int64", "sint64", "sfixed64"},
    FieldDescriptor.CPPTYPE_UINT32: {"uint32", "fixed32"},
    FieldDescriptor.CPPTYPE_UINT64: {"uint64", "fixed64"},
}


def _fits(descriptor: FieldDescriptor, kind: str) -> bool:
    """Tell whether rules of this kind may stand at a field; others mean nothing."""
    if is_message(descriptor) and descriptor.message_type is not None:
        name = descriptor.message_type.full_name
        known = {"google.protobuf.Any": "any", "google.protobuf.FieldMask": "field_mask"}
        known |= {f"google.protobuf.{one.title()}": one for one in _MOMENTS}
        if name in known:
            return kind == known[name]
    inner = _unwrapped(descriptor)
    if inner.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return kind == ("bytes" if inner.type == FieldDescriptor.TYPE_BYTES else "string")
    return kind in _KINDS.get(inner.cpp_type, ())


def _unwrapped(descriptor: FieldDescriptor) -> FieldDescriptor:
    """Return the scalar inside a wrapper."""
    kind = descriptor.message_type
    if kind is None or kind.full_name not in WRAPPERS:
        return descriptor
    return kind.fields_by_name["value"]


def _of_enum(descriptor: FieldDescriptor, said: Any) -> Asked:
    allowed = {said.const} if said.HasField("const") else set(getattr(said, "in"))
    refused = set(said.not_in)
    if not allowed and not refused:
        return Asked()
    names = [
        value.name
        for value in enum_of(descriptor).values
        if (not allowed or value.number in allowed) and value.number not in refused
    ]
    return Asked(keywords={"enum": names}, zero=0 not in refused and (not allowed or 0 in allowed))


def _of_any(said: Any) -> Asked:
    kinds: list[Schema] = []
    if allowed := list(getattr(said, "in")):
        kinds.append({"enum": allowed})
    if said.not_in:
        kinds.append({"not": {"enum": list(said.not_in)}})
    return Asked(keywords={"properties": {"@type": {"allOf": kinds}}} if kinds else {})


def _items(said: Any) -> Asked:
    keywords: Schema = {}
    if said.HasField("min_items"):
        keywords["minItems"] = said.min_items
    if said.HasField("max_items"):
        keywords["maxItems"] = said.max_items
    if said.unique:
        keywords["uniqueItems"] = True
    return Asked(keywords=keywords, zero=not said.min_items)


def _pairs(said: Any) -> Asked:
    keywords: Schema = {}
    if said.HasField("min_pairs"):
        keywords["minProperties"] = said.min_pairs
    if said.HasField("max_pairs"):
        keywords["maxProperties"] = said.max_pairs
    return Asked(keywords=keywords, zero=not said.min_pairs)


def _populated(one: Field, asked: Asked) -> Asked:
    """Return what is asked of a required field without presence: zero counts as not there."""
    descriptor = one.descriptor
    if one.is_map:
        least: Schema = {"minProperties": 1}
    elif one.is_repeated:
        least = {"minItems": 1}
    elif descriptor.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        least = {"minLength": 1}
    else:
        test = Demand(bool, "other than zero, which counts as not there")
        return replace(asked, demands=(*asked.demands, test), zero=False)
    (name,) = least
    return replace(
        asked, keywords={**asked.keywords, name: max(1, asked.keywords.get(name, 1))}, zero=False
    )


def _or_zero(one: Field, asked: Asked) -> Asked:
    """Return what is asked where zero is let pass."""
    if asked.zero or not (asked.keywords or asked.demands):
        return asked
    demands = tuple(map(_lenient, asked.demands))
    zero = {"enum": _zeros(one)}
    keywords: Schema = {"anyOf": [asked.keywords, zero]} if asked.keywords else {}
    return replace(asked, keywords=keywords, demands=demands)


def _lenient(demand: Demand) -> Demand:
    return Demand(lambda value: not value or demand.holds(value), demand.wanted)


def _zeros(one: Field) -> list[Any]:
    descriptor = one.descriptor
    if one.is_map:
        return [{}]
    if one.is_repeated:
        return [[]]
    if descriptor.enum_type is not None:
        return [value.name for value in descriptor.enum_type.values if not value.number]
    if descriptor.cpp_type in RANGES:
        return [0, "0"]
    if descriptor.cpp_type in _REALS:
        return [0]
    return ["", False]


def _expressions(rules: Any) -> list[str]:
    """Return what rules in CEL say, or how they are written."""
    said = [rule.message or rule.expression for rule in rules.cel]
    return [f"{text[:200].rstrip('.')}." for text in (*said, *rules.cel_expression)]


def _nanoseconds(moment: Any) -> int:
    return int(moment.seconds) * 1_000_000_000 + int(moment.nanos)
