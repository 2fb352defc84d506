"""The reference of the admin API, from the table of routes that is served.

Never starts a gateway.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from thoughtgate.app.admin_routes import ROUTES
from thoughtgate.app.admin_token import TOKEN_FILE
from thoughtgate.surface.admin_openapi import document
from thoughtgate.surface.admin_problems import status_of
from thoughtgate.surface.admin_route import BASE, Route

_HEAD = f"""# Admin API

A gateway that serves HTTP also serves `{BASE}`, for operators: what the command line does
[with `--server`](../how-to/administer-a-running-gateway.md), over HTTP and JSON.
`GET {BASE}/openapi.json` returns this page as an OpenAPI 3.1 document. `admin = "off"` under
`[gateway]` switches all of it off.

- **Token.** Every request needs `Authorization: Bearer TOKEN`. The token stands in `{TOKEN_FILE}`
  in the state folder, made at random when a gateway first serves, readable by its owner alone. A
  gateway does not start with a token file that others may read. Remove the file and start again for
  a new token.
- **Browsers.** Host and Origin are checked as on every route, pages of other origins are refused,
  and there is no CORS.
- **Commands.** No server that is a command can be added or changed here (403, `refused`); what is
  registered already can be enabled, disabled, asked, restarted and removed. Use the command line on
  the gateway's machine for the rest.
- **Secrets** go in and never come out: of headers and variables only the names are told.
- **Revisions.** An `ETag` is the revision of the registry. A write that names it in `If-Match` is
  made only if nothing in the registry has changed since, a server's list of tools included (else
  412, `conflict`: look again, decide again). Where an operation is *guarded*, a precondition is
  required (else 428): `If-Match` with an ETag, `If-Match: *` for what is there, or
  `If-None-Match: *` for what is not.
- **Lists** are in a stable order and in pages: `limit` entries, and `next` is the `cursor` of the
  page after, null on the last one.
- **Errors** are `application/problem+json` (RFC 9457) with our `code`, which
  [Error codes](errors.md) explains. Any request may lead to 400 for what cannot be read, 401
  without the token, 403 for a foreign page, 413 and 415 for a body, 421 for a foreign host, 503
  when too much goes on at once, and 500 for a fault of the gateway.
- Every write leaves a row in the audit log, `admin.OPERATION`, also when it is refused.
"""


def admin_page(notice: str) -> str:
    """Return the page; `notice` stands on top of it."""
    schemas = document(ROUTES, "")["components"]["schemas"]
    lines = [notice, _HEAD, "## Operations", ""]
    lines += ["| operation | what it does | takes | gives | own errors |", "|---|---|---|---|---|"]
    lines += [_row(route) for route in ROUTES]
    lines += ["", "## Values", ""]
    for name, schema in sorted(schemas.items()):
        lines += _value(name, schema)
    return "\n".join(lines).rstrip() + "\n"


def _row(route: Route[Any]) -> str:
    takes = [_link(kind.__name__) for kind in (route.body,) if kind is not None]
    if route.query is not None:
        takes.append(", ".join(f"`?{name}`" for name in route.query.__struct_fields__))
    if route.guarded:
        takes.append("*guarded*")
    gives = _link(route.reply.__name__) + (" and `ETag`" if route.tagged else "")
    own = ", ".join(map(str, sorted({status_of(kind) for kind in route.errors})))
    call = f"`{route.method} {route.path}`"
    return f"| {call} | {route.summary} | {'; '.join(takes)} | {gives} | {own} |"


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _value(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {name}"
    yield ""
    yield " ".join(str(schema.get("description", "")).split())
    yield ""
    if "enum" in schema:
        yield ", ".join(f"`{one}`" for one in schema["enum"])
        yield ""
        return
    yield "| field | type | default |"
    yield "|---|---|---|"
    for field, told in schema.get("properties", {}).items():
        needed = field in schema.get("required", ())
        default = "required" if needed else f"`{json.dumps(told.get('default'))}`"
        yield f"| `{field}` | {_type(told)} | {default} |"
    yield ""


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return _link(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    inner = schema.get("additionalProperties")
    if kind == "object" and isinstance(inner, Mapping):
        return f"object of {_type(inner)}"
    bounds = {"pattern": "like", "minimum": "from", "maximum": "to", "exclusiveMinimum": "over"}
    said = [f"{word} `{schema[key]}`" for key, word in bounds.items() if key in schema]
    return " ".join([str(kind), *said]).replace("|", "\\|")
