"""The OpenAPI document of the admin API, made of the routes that are dispatched.

Never written by hand: what is not in the table of routes is neither served nor documented.
"""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from thoughtgate.core.errors import Conflict
from thoughtgate.core.json import JsonObject
from thoughtgate.surface.admin_problems import status_of
from thoughtgate.surface.admin_route import BASE, Route
from thoughtgate.surface.admin_values import Problem

_JSON = "application/json"
_PROBLEM = "application/problem+json"
_REFS = "#/components/schemas/{name}"
_ALWAYS = (400, 401, 403)
"""What any request may lead to, whatever it asks for."""


def document(routes: Sequence[Route[Any]], version: str) -> JsonObject:
    """Return the OpenAPI 3.1 document of these routes."""
    structs = dict.fromkeys(
        kind for r in routes for kind in (r.reply, r.body, r.query, Problem) if kind is not None
    )
    _, schemas = msgspec.json.schema_components(structs, ref_template=_REFS)
    queries = {route.query.__name__ for route in routes if route.query is not None}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    described = {
        "openapi": "3.1.0",
        "info": {
            "title": "thoughtgate admin API",
            "version": version,
            "description": "What operators change and see of a running gateway.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": BASE}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": {name: one for name, one in schemas.items() if name not in queries},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The text in `admin.token` in the gateway's state folder.",
                }
            },
        },
    }
    plain: JsonObject = msgspec.json.decode(msgspec.json.encode(described))  # defaults too
    return plain


def _operation(route: Route[Any], schemas: JsonObject) -> JsonObject:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.path.split("/")[1]],
        "parameters": [*_in_path(route), *_in_query(route, schemas), *_preconditions(route)],
        "responses": _responses(route),
    }
    if route.body is not None:
        content = {_JSON: {"schema": _ref(route.body)}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _in_path(route: Route[Any]) -> Iterable[JsonObject]:
    schema = {"type": "string", "minLength": 1}
    for name in route.parameters:
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(route: Route[Any], schemas: JsonObject) -> Iterable[JsonObject]:
    properties = schemas[route.query.__name__]["properties"] if route.query is not None else {}
    for name, schema in properties.items():
        told = {key: value for key, value in schema.items() if key != "description"}
        said = schema.get("description", "")
        yield {"name": name, "in": "query", "schema": told, "description": said}


def _preconditions(route: Route[Any]) -> Iterable[JsonObject]:
    if Conflict not in route.errors:
        return
    text = {"type": "string"}
    yield {
        "name": "If-Match",
        "in": "header",
        "schema": text,
        "description": "The ETag of what you looked at, or `*`: it must be there.",
    }
    if route.guarded and route.method == "PUT":
        yield {
            "name": "If-None-Match",
            "in": "header",
            "schema": text,
            "description": "`*`: it must not be there yet.",
        }


def _responses(route: Route[Any]) -> JsonObject:
    good: dict[str, Any] = {
        "description": (route.reply.__doc__ or "").strip().split("\n")[0],
        "content": {_JSON: {"schema": _ref(route.reply)}},
    }
    if route.tagged:
        good["headers"] = {"ETag": {"schema": {"type": "string"}, "required": True}}
    bad = {"content": {_PROBLEM: {"schema": _ref(Problem)}}}
    return {
        "200": good,
        **{str(s): {"description": HTTPStatus(s).phrase, **bad} for s in statuses(route)},
        "default": {"description": "Anything else that went wrong", **bad},
    }


def statuses(route: Route[Any]) -> list[int]:
    """Return the statuses of an operation's own errors and of those of any request, in order."""
    own = {status_of(kind) for kind in route.errors}
    return sorted({*_ALWAYS, *own, *({428} if route.guarded else ())})


def _ref(kind: type[msgspec.Struct]) -> JsonObject:
    return {"$ref": _REFS.format(name=kind.__name__)}
