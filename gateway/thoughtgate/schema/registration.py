"""Whether a schema may be registered: the lint, the reference engine and the compiler agree.

Never changes a schema: what is stored and shown is what the server sent. May cost milliseconds
(seconds at the size limit); callers keep verdicts by digest.
"""

from typing import Any

from jsonschema.exceptions import SchemaError

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.schema.dialects import Dialect, Remotes, dialect_of, rust
from thoughtgate.schema.lint import inspect
from thoughtgate.schema.patterns import BOUNDED
from thoughtgate.schema.pointers import pointer


def admit(schema: JsonValue, *, where: str = "schema") -> None:
    """Accept a schema for use; `where` names it in messages, such as `input schema`.

    Raises:
        SchemaRejected: It may not be registered; `rule` and `pointer` say why and where.
    """
    try:
        seen = inspect(schema)
        for subschema in (seen.prepared, *seen.strays):
            _check(subschema, seen.dialect)
        rust(seen.prepared, seen.dialect, patterns=seen.patterns)
    except SchemaRejected as error:
        raise SchemaRejected(
            rule=error.rule, message=f"{where}: {error.message}", pointer=error.pointer
        ) from None


def admit_unlinted(
    schema: JsonValue, *, dialect: Dialect | None = None, remotes: Remotes | None = None
) -> None:
    """Accept a schema by the engines alone, for schemas of one's own such as a test suite's.

    `dialect` is what a schema without `$schema` speaks; `remotes` are where references may lead.

    Raises:
        SchemaRejected: It is not a schema, or does not compile.
    """
    spoken = dialect_of(schema) if dialect is None else dialect
    _check(schema, spoken)
    rust(schema, spoken, patterns=BOUNDED, remotes=remotes)


def normalise_input(schema: JsonValue) -> JsonObject:
    """Return an input schema as calls are held against it: always of type object.

    A missing, `true` or empty schema is `{"type": "object"}`; `type` is added where it is missing.

    Raises:
        SchemaRejected: It cannot accept an object.
    """
    if schema is None or schema is True:
        return {"type": "object"}
    if not isinstance(schema, dict):
        raise SchemaRejected(
            rule="input_not_object", message="an input schema is a JSON object of type object"
        )
    kind = schema.get("type")
    if kind == "object":
        return schema
    if kind is None or (isinstance(kind, list) and "object" in kind):
        return {**schema, "type": "object"} if kind else {"type": "object", **schema}
    raise SchemaRejected(
        rule="input_not_object",
        pointer="/type",
        message=f"an input schema has type object, not {str(kind)[:80]}",
    )


def _check(schema: JsonValue, dialect: Dialect) -> None:
    """Hold a schema against its meta-schema. `format` is off: patterns go to their own engine."""
    check: Any = dialect.reference.check_schema  # its Protocol does not tell of the argument
    try:
        check(schema, format_checker=None)
    except SchemaError as error:
        place = pointer(error.absolute_path)
        raise SchemaRejected(
            rule="metaschema",
            pointer=place,
            message=f"not a {dialect.name} schema at {place or 'the root'}: {error.message[:200]}",
        ) from None
    except (RecursionError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise SchemaRejected(
            rule="metaschema",
            message=f"the meta-schema cannot be applied to it ({type(error).__name__})",
        ) from None
