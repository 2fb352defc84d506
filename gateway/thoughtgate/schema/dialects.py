"""The JSON Schema dialects we speak, and both engines pinned so that they agree on them.

Never fetches a reference: the Rust engine is offline, the Python one gets an empty registry.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jsonschema
import jsonschema_rs
import referencing
import referencing.jsonschema
from jsonschema.protocols import Validator as Reference

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonValue
from thoughtgate.schema.patterns import LINEAR, Options

Remotes = Mapping[str, JsonValue]
"""Schemas by URI that references may lead to; only tests have any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One dialect.

    `ref_hides_siblings`: keywords beside `$ref` are ignored (draft 7 and older).
    `annotations` are keywords that the Rust engine asserts and the reference does not: a value
    is not refused for them.
    """

    name: str
    uri: str
    reference: type[Reference]
    rust: type[jsonschema_rs.Validator]
    id_keyword: str = "$id"
    ref_hides_siblings: bool = False
    annotations: frozenset[str] = frozenset()


_CONTENT: Final = frozenset({"contentEncoding", "contentMediaType"})


DRAFT_2020_12: Final = Dialect(
    name="draft2020-12",
    uri="https://json-schema.org/draft/2020-12/schema",
    reference=jsonschema.Draft202012Validator,
    rust=jsonschema_rs.Draft202012Validator,
)

DIALECTS: Final = (
    DRAFT_2020_12,
    Dialect(
        name="draft2019-09",
        uri="https://json-schema.org/draft/2019-09/schema",
        reference=jsonschema.Draft201909Validator,
        rust=jsonschema_rs.Draft201909Validator,
    ),
    Dialect(
        name="draft7",
        uri="http://json-schema.org/draft-07/schema#",
        reference=jsonschema.Draft7Validator,
        rust=jsonschema_rs.Draft7Validator,
        ref_hides_siblings=True,
        annotations=_CONTENT,
    ),
    Dialect(
        name="draft6",
        uri="http://json-schema.org/draft-06/schema#",
        reference=jsonschema.Draft6Validator,
        rust=jsonschema_rs.Draft6Validator,
        ref_hides_siblings=True,
        annotations=_CONTENT,
    ),
    Dialect(
        name="draft4",
        uri="http://json-schema.org/draft-04/schema#",
        reference=jsonschema.Draft4Validator,
        rust=jsonschema_rs.Draft4Validator,
        id_keyword="id",
        ref_hides_siblings=True,
    ),
)


def _plain(uri: str) -> str:
    """Drop what spellings of one dialect differ in: scheme, final `#` and `/`, case, blanks."""
    bare = uri.strip().lower().rstrip("#").rstrip("/")
    return bare.removeprefix("https://").removeprefix("http://").removeprefix("www.")


_BY_PLAIN_URI: Final = {_plain(dialect.uri): dialect for dialect in DIALECTS}


def named(uri: JsonValue) -> Dialect | None:
    """Return the dialect that a `$schema` value names in any spelling, None when we know none."""
    return _BY_PLAIN_URI.get(_plain(uri)) if isinstance(uri, str) else None


def dialect_of(schema: JsonValue) -> Dialect:
    """Return the dialect that `schema` declares, 2020-12 when it declares none.

    Raises:
        SchemaRejected: It declares one that we do not speak.
    """
    if not isinstance(schema, dict) or "$schema" not in schema:
        return DRAFT_2020_12
    found = named(schema["$schema"])
    if found is None:
        known = ", ".join(dialect.name for dialect in DIALECTS)
        raise SchemaRejected(
            rule="unknown_dialect",
            pointer="/$schema",
            message=f"unknown dialect {str(schema['$schema'])[:120]!r}; use one of {known}",
        )
    return found


def rust(
    schema: JsonValue,
    dialect: Dialect,
    *,
    patterns: Options = LINEAR,
    formats: bool = False,
    remotes: Remotes | None = None,
) -> jsonschema_rs.Validator:
    """Return the Rust engine for `schema`; `formats` says whether `format` is asserted.

    Raises:
        SchemaRejected: It does not compile.
    """
    options: dict[str, Any] = {
        "offline": True,
        "validate_formats": formats,
        "pattern_options": patterns,
    }
    if remotes:
        number = getattr(jsonschema_rs, dialect.rust.__name__.removesuffix("Validator"))
        options["registry"] = jsonschema_rs.Registry(list(remotes.items()), draft=number)
    try:
        if remotes and isinstance(schema, dict) and schema.get("$schema") in remotes:
            return jsonschema_rs.validator_for(schema, **options)
        return dialect.rust(schema, **options)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        where = getattr(error, "instance_path", [])
        raise SchemaRejected(
            rule="uncompilable",
            pointer="".join(f"/{step}" for step in where),
            message=f"the schema does not compile: {str(error).splitlines()[0][:200]}",
        ) from None


def registry(
    dialect: Dialect, remotes: Remotes | None = None
) -> referencing.jsonschema.SchemaRegistry:
    """Return what references of the Python engine may lead to: nothing but `remotes`."""
    empty: referencing.jsonschema.SchemaRegistry = referencing.Registry()
    if not remotes:
        return empty
    specification = referencing.jsonschema.specification_with(dialect.uri)
    return empty.with_resources(
        (uri, specification.create_resource(contents)) for uri, contents in remotes.items()
    )
