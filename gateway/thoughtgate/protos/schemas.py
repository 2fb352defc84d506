"""JSON Schemas of messages: what `encode` accepts, and what `decode` returns.

Never holds more than one message reaches, and stops at the limits that a registered schema has.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.protos.demands import Asked
from thoughtgate.protos.fields import (
    BOXED,
    WRAPPERS,
    Field,
    entry_of,
    enum_of,
    fields_of,
    is_message,
    is_null_value,
    message_of,
)
from thoughtgate.protos.kinds import WELL_KNOWN, Schema, key, note_of, nullable, scalar
from thoughtgate.protos.reading import reader
from thoughtgate.protos.rules import NONE, Rules, of_message, of_oneof, rules_for

MAX_SUBSCHEMAS: Final = 2_000
MAX_BYTES: Final = 256 * 1024

_ANY: Final = "google.protobuf.Any"
_PREFIX: Final = "type.googleapis.com/"
_PREFIXED: Final = r"^type\.googleapis\.com/"
_MAX_TYPES: Final = 100
_SUBSCHEMAS: Final = ("properties", "$defs")
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLES: Final = ("additionalProperties", "items", "not", "propertyNames")


_Kind = Descriptor | EnumDescriptor


class Schemas:
    """Makes the schemas of one pool's messages.

    `comments` are by full name, `types` the messages that an Any may hold.
    """

    def __init__(
        self, pool: DescriptorPool, comments: Mapping[str, str], types: Iterable[str]
    ) -> None:
        self.pool = pool
        self.comments = comments
        self.types = tuple(types)
        self.shapes: dict[tuple[str, bool], _Shape] = {}

    def accepted(self, message: Descriptor) -> Schema:
        """Return the schema of what `encode` takes.

        Raises:
            SchemaRejected: It would be larger than a registered schema may be.
        """
        return _Builder(self, inputs=True).whole(message)

    def returned(self, message: Descriptor) -> Schema:
        """Return the schema of what `decode` gives.

        Raises:
            SchemaRejected: It would be larger than a registered schema may be.
        """
        return _Builder(self, inputs=False).whole(message)


class _Shape(NamedTuple):
    """The schema of one message or enum, what it refers to, and how much of the limits it takes."""

    schema: Schema
    reached: tuple[_Kind, ...]
    nodes: int
    size: int


class _Builder:
    """One schema while it grows."""

    def __init__(self, schemas: Schemas, *, inputs: bool) -> None:
        self._schemas = schemas
        self._inputs = inputs
        self._reached: list[_Kind] = []

    def whole(self, message: Descriptor) -> Schema:
        """Return the schema of a request or a response."""
        root = self._shape(message)
        defs: dict[str, Schema] = {}
        count, size, todo = root.nodes, root.size, list(root.reached)
        while todo:
            kind = todo.pop()
            if kind.full_name in defs:
                continue
            shape = self._shape(kind)
            defs[kind.full_name] = shape.schema
            count, size = count + shape.nodes, size + shape.size
            if count > MAX_SUBSCHEMAS or size > MAX_BYTES:
                raise _too_large()
            todo.extend(shape.reached)
        whole = {**root.schema, "type": "object"}
        return {**whole, "$defs": dict(sorted(defs.items()))} if defs else whole

    def _shape(self, kind: _Kind) -> _Shape:
        """Return the schema of one message or enum, made once for all that reach it."""
        key = (kind.full_name, self._inputs)
        if (known := self._schemas.shapes.get(key)) is not None:
            return known
        self._reached = []
        made = nullable(self._made(kind)) if self._inputs else self._made(kind)
        shape = _Shape(
            schema=made,
            reached=tuple(dict.fromkeys(self._reached)),
            nodes=subschemas(made),
            size=len(json.dumps(made, ensure_ascii=False).encode()) + len(kind.full_name) + 6,
        )
        if shape.nodes > MAX_SUBSCHEMAS or shape.size > MAX_BYTES:
            raise _too_large()
        self._schemas.shapes[key] = shape
        return shape

    def _made(self, kind: _Kind) -> Schema:
        if isinstance(kind, EnumDescriptor):
            return self._enum(kind)
        name = kind.full_name
        if name in BOXED:
            return {
                "type": "object",
                "properties": {"value": self._held(kind)},
                "required": ["value"],
                "additionalProperties": False,
            }
        if name in WELL_KNOWN:
            return dict(WELL_KNOWN[name])
        return self._any() if name == _ANY else self._members(kind)

    def _reference(self, kind: _Kind) -> Schema:
        self._reached.append(kind)
        return {"$ref": f"#/$defs/{kind.full_name}"}

    def _enum(self, kind: EnumDescriptor) -> Schema:
        names = [value.name for value in kind.values]
        made: Schema = {"type": "string", "enum": names}
        if not self._inputs and not kind.is_closed:
            made = {"anyOf": [made, {"type": "integer"}]}
        if said := _about_enum(kind, self._schemas.comments):
            made["description"] = said
        return made

    def _any(self) -> Schema:
        urls = [_PREFIX + name for name in self._schemas.types]
        kind: Schema = {"type": "string"}
        if self._inputs:
            kind |= (
                {"enum": urls}
                if len(urls) <= _MAX_TYPES
                else {"pattern": r"^type\.googleapis\.com/"}
            )
        made: Schema = {"type": "object", "properties": {"@type": kind}}
        if self._inputs:
            made["required"] = ["@type"]
            made["description"] = "Any message: its type in @type, its fields beside that."
        return made

    def _members(self, message: Descriptor) -> Schema:
        if len(message.fields) > MAX_SUBSCHEMAS:
            raise _too_large()
        fields = fields_of(message, self._schemas.pool)
        rules = {field.name: rules_for(field) for field in fields} if self._inputs else {}
        properties = {
            field.name: self._property(field, rules.get(field.name, NONE)) for field in fields
        }
        required = [
            field.name for field in fields if self._is_required(field, rules.get(field.name, NONE))
        ]
        made: Schema = {"type": "object"}
        oneofs = _oneofs(fields)
        if said := self._about(message, oneofs):
            made["description"] = said
        made["properties"] = properties
        if self._inputs:
            for field in fields:
                if field.alias and field.name not in required:
                    properties[field.alias] = _respelled(field, properties[field.name])
            made["additionalProperties"] = False
            if oneofs:
                made["allOf"] = [{"oneOf": _choices(members)} for members in oneofs.values()]
        return {**made, "required": required} if required else made

    def _is_required(self, field: Field, rules: Rules) -> bool:
        descriptor = field.descriptor
        if self._inputs:
            return rules.required or descriptor.is_required
        return not descriptor.has_presence and not descriptor.is_extension

    def _about(self, message: Descriptor, oneofs: Mapping[str, list[Field]]) -> str:
        said = [self._schemas.comments.get(message.full_name, "")]
        if self._inputs:
            said.extend(of_message(message))
            for members in oneofs.values():
                amount = "Exactly" if _is_needed(members) else "At most"
                said.append(f"{amount} one of {', '.join(field.name for field in members)}.")
        return " ".join(filter(None, said))

    def _property(self, field: Field, rules: Rules) -> Schema:
        descriptor = field.descriptor
        needed = self._inputs and self._is_required(field, rules)
        if field.is_map:
            made = self._map(*entry_of(descriptor), rules)
        elif field.is_repeated:
            made = {"type": "array", "items": _with(self._element(descriptor), rules.items)}
        else:
            made = self._element(descriptor) if needed else self._single(descriptor)
        made = _with(made, rules.whole)
        if self._inputs and field.clears_by_null and not needed:
            made = nullable(made)
        notes = self._notes(field, rules)
        return {**made, **notes} if notes else made

    def _notes(self, field: Field, rules: Rules) -> Schema:
        descriptor = field.descriptor
        made: Schema = dict(rules.hints)
        said = [self._schemas.comments.get(descriptor.full_name, "")]
        if descriptor.message_type is not None and not field.is_map:
            said.append(note_of(descriptor.message_type.full_name))
        if text := " ".join(filter(None, (*said, *rules.notes))):
            made["description"] = text
        if descriptor.has_default_value and not field.is_repeated:
            made["default"] = reader(descriptor)(descriptor.default_value)
        if descriptor.has_options and descriptor.GetOptions().deprecated:
            made["deprecated"] = True
        return made

    def _single(self, field: FieldDescriptor) -> Schema:
        if is_message(field):
            kind = message_of(field)
            if kind.full_name in BOXED or kind.full_name in WELL_KNOWN:
                return self._held(kind)
            return self._reference(kind)
        if is_null_value(field):
            return {"enum": ["NULL_VALUE"]} if self._inputs else {"type": "null"}
        if field.enum_type is not None:
            return self._reference(enum_of(field))
        return scalar(field, inputs=self._inputs)

    def _element(self, field: FieldDescriptor) -> Schema:
        """Return the schema of a value in an array or a map, which is never null."""
        made = self._single(field)
        if self._inputs and "$ref" in made:
            return {**made, "type": "object" if is_message(field) else "string"}
        return made

    def _held(self, kind: Descriptor) -> Schema:
        """Return the schema of a well-known type."""
        if kind.full_name in WRAPPERS:
            return scalar(kind.fields_by_name["value"], inputs=self._inputs)
        return dict(WELL_KNOWN[kind.full_name])

    def _map(self, name: FieldDescriptor, held: FieldDescriptor, rules: Rules) -> Schema:
        made: Schema = {"type": "object"}
        names = _with(key(name) or {}, rules.keys)
        if self._inputs and names:
            made["propertyNames"] = names
        made["additionalProperties"] = _with(self._element(held), rules.items)
        return made


def _too_large() -> SchemaRejected:
    return SchemaRejected(
        rule="too_large",
        message=f"it reaches more than {MAX_SUBSCHEMAS} fields and types, or {MAX_BYTES} bytes",
    )


def _with(schema: Schema, asked: Asked) -> Schema:
    """Return a schema that says the keywords of rules too."""
    if not asked.keywords:
        return schema
    clash = (schema.keys() & asked.keywords.keys()) - {"type", "minimum", "maximum", "pattern"}
    if clash:
        return {**schema, "allOf": [asked.keywords]}
    return {**schema, **asked.keywords}


def _about_enum(kind: EnumDescriptor, comments: Mapping[str, str]) -> str:
    said = [comments.get(kind.full_name, "")]
    said.extend(
        f"{value.name}: {text}"
        for value in kind.values
        if (text := comments.get(f"{kind.full_name}.{value.name}"))
    )
    return "\n".join(filter(None, said))


def _respelled(field: Field, schema: Schema) -> Schema:
    """Return the schema of a field's second spelling."""
    notes = {"description", "default", "deprecated"}
    kept = {name: value for name, value in schema.items() if name not in notes}
    return {**kept, "description": f"The same as {field.name}."}


def _oneofs(fields: Iterable[Field]) -> dict[str, list[Field]]:
    found: dict[str, list[Field]] = {}
    for field in fields:
        if field.oneof:
            found.setdefault(field.oneof, []).append(field)
    return found


def _choices(members: list[Field]) -> list[Schema]:
    """Return one schema for each member that may be set, and one for none of them."""
    chosen: list[Schema] = []
    unset: Schema = {}
    for field in members:
        for name in filter(None, (field.name, field.alias)):
            if field.takes_null:
                chosen.append({"title": name, "required": [name]})
                unset[name] = False
            else:
                here = {name: {"not": {"type": "null"}}}
                chosen.append({"title": name, "required": [name], "properties": here})
                unset[name] = {"type": "null"}
    return chosen if _is_needed(members) else [*chosen, {"properties": unset}]


def _is_needed(members: list[Field]) -> bool:
    oneof = members[0].descriptor.containing_oneof
    return oneof is not None and of_oneof(oneof)


def subschemas(schema: Schema) -> int:
    """Count the subschemas, as a registered schema's are counted."""
    count, todo = 0, [schema]
    while todo:
        one = todo.pop()
        count += 1
        if isinstance(one, dict):
            for keyword in _SUBSCHEMAS:
                todo.extend(one.get(keyword, {}).values())
            for keyword in _LISTS:
                todo.extend(one.get(keyword, ()))
            todo.extend(one[keyword] for keyword in _SINGLES if keyword in one)
    return count
