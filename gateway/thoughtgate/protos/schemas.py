"""JSON Schemas of messages: what `encode` accepts, and what `decode` returns.

Never holds more than one message reaches, and stops at the limits that a registered schema has.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool

from thoughtgate.core.errors import SchemaRejected
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

MAX_SUBSCHEMAS: Final = 2_000
MAX_BYTES: Final = 256 * 1024

_ANY: Final = "google.protobuf.Any"
_PREFIX: Final = "type.googleapis.com/"
_MAX_TYPES: Final = 100
_SUBSCHEMAS: Final = ("properties", "$defs")
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLES: Final = ("additionalProperties", "items", "not", "propertyNames")


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


class _Builder:
    """One schema while it grows."""

    def __init__(self, schemas: Schemas, *, inputs: bool) -> None:
        self._schemas = schemas
        self._inputs = inputs
        self._defs: dict[str, Schema] = {}
        self._todo: list[Descriptor | EnumDescriptor] = []
        self._count = 0
        self._size = 0

    def whole(self, message: Descriptor) -> Schema:
        """Return the schema of a request or a response."""
        if message.full_name in BOXED:
            root: Schema = {
                "type": "object",
                "properties": {"value": self._held(message)},
                "required": ["value"],
                "additionalProperties": False,
            }
        elif message.full_name in WELL_KNOWN:
            root = dict(WELL_KNOWN[message.full_name])
        elif message.full_name == _ANY:
            root = self._any()
        else:
            root = self._members(message)
        root["type"] = "object"
        self._weigh(message.full_name, root)
        while self._todo:
            self._define(self._todo.pop())
        return {**root, "$defs": self._defs} if self._defs else root

    def _define(self, kind: Descriptor | EnumDescriptor) -> None:
        """Put the definition of a message or an enum among the others."""
        if isinstance(kind, EnumDescriptor):
            made = self._enum(kind)
        else:
            made = self._any() if kind.full_name == _ANY else self._members(kind)
        self._defs[kind.full_name] = nullable(made) if self._inputs else made
        self._weigh(kind.full_name, made)

    def _weigh(self, name: str, schema: Schema) -> None:
        self._count += _subschemas(schema)
        self._size += len(json.dumps(schema, ensure_ascii=False).encode()) + len(name) + 6
        if self._count > MAX_SUBSCHEMAS or self._size > MAX_BYTES:
            raise SchemaRejected(
                rule="too_large",
                message=f"it reaches more than {MAX_SUBSCHEMAS} fields and types, or "
                f"{MAX_BYTES} bytes of them",
            )

    def _reference(self, kind: Descriptor | EnumDescriptor) -> Schema:
        name = kind.full_name
        if name not in self._defs:
            self._defs[name] = {}
            self._todo.append(kind)
        return {"$ref": f"#/$defs/{name}"}

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
            kind |= {"enum": urls} if len(urls) <= _MAX_TYPES else {"pattern": f"^{_PREFIX}"}
        made: Schema = {"type": "object", "properties": {"@type": kind}}
        if self._inputs:
            made["required"] = ["@type"]
            made["description"] = "Any message: its type in @type, its fields beside that."
        return made

    def _members(self, message: Descriptor) -> Schema:
        if len(message.fields) > MAX_SUBSCHEMAS:
            raise SchemaRejected(
                rule="too_large", message=f"it reaches more than {MAX_SUBSCHEMAS} fields"
            )
        fields = fields_of(message, self._schemas.pool)
        properties = {field.name: self._property(field) for field in fields}
        made: Schema = {"type": "object"}
        oneofs = _oneofs(fields)
        if said := self._about(message, oneofs):
            made["description"] = said
        made["properties"] = properties
        if self._inputs:
            for field in fields:
                if field.alias:
                    properties[field.alias] = _respelled(field, properties[field.name])
            made["additionalProperties"] = False
            if oneofs:
                made["allOf"] = [{"oneOf": _choices(members)} for members in oneofs.values()]
        if required := self._required(fields):
            made["required"] = required
        return made

    def _required(self, fields: Iterable[Field]) -> list[str]:
        return [field.name for field in fields if self._is_required(field)]

    def _is_required(self, field: Field) -> bool:
        descriptor = field.descriptor
        if self._inputs:
            return descriptor.is_required
        return not descriptor.has_presence and not descriptor.is_extension

    def _about(self, message: Descriptor, oneofs: Mapping[str, list[Field]]) -> str:
        said = [self._schemas.comments.get(message.full_name, "")]
        if self._inputs:
            said.extend(
                f"At most one of {', '.join(field.name for field in members)}."
                for members in oneofs.values()
            )
        return " ".join(filter(None, said))

    def _property(self, field: Field) -> Schema:
        descriptor = field.descriptor
        if field.is_map:
            made = self._map(*entry_of(descriptor))
        elif field.is_repeated:
            made = {"type": "array", "items": self._element(descriptor)}
        else:
            made = self._single(descriptor)
        leaves_out = field.clears_by_null and not self._is_required(field)
        if self._inputs and leaves_out and "$ref" not in made:
            made = nullable(made)
        notes = self._notes(field)
        return {**made, **notes} if notes else made

    def _notes(self, field: Field) -> Schema:
        descriptor = field.descriptor
        made: Schema = {}
        said = [self._schemas.comments.get(descriptor.full_name, "")]
        if descriptor.message_type is not None and not field.is_map:
            said.append(note_of(descriptor.message_type.full_name))
        if text := " ".join(filter(None, said)):
            made["description"] = text
        if descriptor.has_default_value and not field.is_repeated:
            made["default"] = reader(descriptor)(descriptor.default_value)
        if descriptor.GetOptions().deprecated:
            made["deprecated"] = True
        return made

    def _single(self, field: FieldDescriptor) -> Schema:
        if is_message(field):
            kind = message_of(field)
            if kind.full_name in BOXED or kind.full_name in WELL_KNOWN:
                return self._held(kind)
            made = self._reference(kind)
            return {**made, "type": "object"} if self._inputs and field.is_required else made
        if is_null_value(field):
            return {"enum": ["NULL_VALUE"]} if self._inputs else {"type": "null"}
        if field.enum_type is not None:
            made = self._reference(enum_of(field))
            return {**made, "type": "string"} if self._inputs and field.is_required else made
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

    def _map(self, name: FieldDescriptor, held: FieldDescriptor) -> Schema:
        made: Schema = {"type": "object"}
        if self._inputs and (names := key(name)):
            made["propertyNames"] = names
        made["additionalProperties"] = self._element(held)
        return made


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
                chosen.append({"required": [name]})
                unset[name] = False
            else:
                here = {name: {"not": {"type": "null"}}}
                chosen.append({"required": [name], "properties": here})
                unset[name] = {"type": "null"}
    return [*chosen, {"properties": unset}]


def _subschemas(schema: Schema) -> int:
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
